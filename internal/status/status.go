// Package status computes conditions: once, at the end of a reconcile, from
// what was observed and planned. It is pure. Messages are stable (sorted,
// shortened, without times), so that an unchanged world writes nothing.
package status

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Verdict is one answer with its reason.
type Verdict struct {
	True bool
	// Reason is one CamelCase word, Message a sentence for people.
	Reason, Message string
	// Tell has an event made when a condition of the system's own begins to say this.
	Tell bool
}

// Health is what a system says of itself.
type Health struct {
	// Available tells whether the data system serves its users.
	Available Verdict
	// Complete tells whether every member is there and healthy.
	Complete Verdict
	// Extra holds the system's own conditions, by type. One that was there before
	// and is not in it any more is removed.
	Extra map[string]Verdict
}

// Failure is an error that ended a reconcile.
type Failure struct {
	// Reason is one CamelCase word.
	Reason string
	Err    error
	// Permanent tells that only a person can mend it.
	Permanent bool
}

// Input is everything that the conditions are computed from.
type Input struct {
	Generation int64
	Now        time.Time
	Plan       plan.Plan
	// Health is nil when the system could not be asked; what was known is kept.
	Health  *Health
	Failure *Failure
	// Planned tells that Plan is whole, although there is a Failure.
	Planned bool
	Paused  bool
}

// common are the condition types that every system has; all others are extra.
var common = map[string]bool{
	meta.ConditionReady: true, meta.ConditionReconciling: true, meta.ConditionStalled: true,
	meta.ConditionAvailable: true, meta.ConditionChangePending: true, meta.ConditionFullySupported: true,
}

// Conditions returns the conditions that follow from in, based on the previous
// ones: a transition time moves only when the status of its condition does.
// What cannot be known (because the system could not be asked, or could not be
// planned for) stays as it was.
func Conditions(previous []metav1.Condition, in Input) []metav1.Condition {
	out := conditions{list: slices.Clone(previous), in: in}
	stalled := stalled(in)
	out.whileTrue(meta.ConditionStalled, stalled)
	reconciling := reconciling(in, stalled)
	out.whileTrue(meta.ConditionReconciling, reconciling)
	if in.Health != nil {
		out.set(meta.ConditionAvailable, in.Health.Available)
		out.setExtra(in.Health.Extra)
	}
	if in.Failure == nil || in.Planned {
		out.whileTrue(meta.ConditionChangePending, pending(in.Plan))
		out.setSupported(in.Plan.Unsupported())
	}
	out.set(meta.ConditionReady, ready(in, stalled, reconciling))
	sort.Slice(out.list, func(i, j int) bool { return out.list[i].Type < out.list[j].Type })
	return out.list
}

// conditions is a list under construction.
type conditions struct {
	list []metav1.Condition
	in   Input
}

func (c *conditions) set(kind string, v Verdict) {
	s := metav1.ConditionFalse
	if v.True {
		s = metav1.ConditionTrue
	}
	if v.Reason == "" {
		v.Reason = "Unspecified" // the API server refuses a condition without a reason
	}
	apimeta.SetStatusCondition(&c.list, metav1.Condition{
		Type: kind, Status: s, Reason: v.Reason, Message: stable(v.Message),
		ObservedGeneration: c.in.Generation, LastTransitionTime: metav1.NewTime(c.in.Now).Rfc3339Copy(),
	})
}

// whileTrue sets a condition that is there only while it applies.
func (c *conditions) whileTrue(kind string, v Verdict) {
	if v.True {
		c.set(kind, v)
		return
	}
	apimeta.RemoveStatusCondition(&c.list, kind)
}

func (c *conditions) setExtra(extra map[string]Verdict) {
	c.list = slices.DeleteFunc(c.list, func(k metav1.Condition) bool {
		_, still := extra[k.Type]
		return !common[k.Type] && !still
	})
	for _, k := range slices.Sorted(maps.Keys(extra)) {
		c.set(k, extra[k])
	}
}

func (c *conditions) setSupported(unsupported []plan.Finding) {
	if len(unsupported) == 0 {
		apimeta.RemoveStatusCondition(&c.list, meta.ConditionFullySupported)
		return
	}
	c.set(meta.ConditionFullySupported, Verdict{Reason: meta.ReasonNotSupportedYet, Message: shorten(messages(unsupported))})
}

func stalled(in Input) Verdict {
	if in.Failure != nil {
		if !in.Failure.Permanent {
			return Verdict{}
		}
		return Verdict{True: true, Reason: in.Failure.Reason, Message: in.Failure.Err.Error()}
	}
	if refused := in.Plan.Refused(); len(refused) > 0 {
		return Verdict{True: true, Reason: refused[0].Reason, Message: shorten(messages(refused))}
	}
	if in.Failure == nil {
		if missing := forPersons(in.Plan.Waits()); len(missing) > 0 {
			return Verdict{True: true, Reason: missing[0].Reason, Message: missing[0].Message}
		}
	}
	if in.Paused && wouldWrite(in.Plan) {
		return Verdict{True: true, Reason: meta.ReasonPaused, Message: fmt.Sprintf("changes wait until the annotation %s is removed", meta.AnnotationPaused)}
	}
	return Verdict{}
}

// forPersons are the waits that do not end by themselves.
func forPersons(waits []plan.Wait) []plan.Wait {
	return slices.DeleteFunc(slices.Clone(waits), func(w plan.Wait) bool { return !w.Person })
}

// wouldWrite tells whether a plan has anything to carry out.
func wouldWrite(p plan.Plan) bool {
	return slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Verdict == plan.VerdictApply })
}

func reconciling(in Input, stalled Verdict) Verdict {
	switch {
	case stalled.True:
		return Verdict{}
	case in.Failure != nil:
		return Verdict{True: true, Reason: in.Failure.Reason, Message: in.Failure.Err.Error()}
	case !in.Plan.Settled():
		if waits := in.Plan.Waits(); len(waits) > 0 {
			return Verdict{True: true, Reason: waits[0].Reason, Message: waits[0].Message}
		}
		return Verdict{True: true, Reason: meta.ReasonProgressing, Message: "applying the spec"}
	case in.Health != nil && !in.Health.Complete.True:
		return Verdict{True: true, Reason: in.Health.Complete.Reason, Message: in.Health.Complete.Message}
	}
	return Verdict{}
}

func ready(in Input, stalled, reconciling Verdict) Verdict {
	switch {
	case stalled.True:
		return Verdict{Reason: stalled.Reason, Message: stalled.Message}
	case in.Health != nil && !in.Health.Available.True:
		return Verdict{Reason: in.Health.Available.Reason, Message: in.Health.Available.Message}
	case reconciling.True:
		return Verdict{Reason: reconciling.Reason, Message: reconciling.Message}
	case in.Paused:
		return Verdict{True: true, Reason: meta.ReasonPaused, Message: "as the spec wants it; paused"}
	}
	return Verdict{True: true, Reason: meta.ReasonReconciled, Message: "as the spec wants it"}
}

func pending(p plan.Plan) Verdict {
	held := p.Held()
	if len(held) == 0 {
		return Verdict{}
	}
	var paths, pods []string
	for _, c := range held {
		path := strings.TrimSpace(c.Object.String() + " " + c.Path)
		if c.Object.Kind == "Pod" { // held because its template is, which says it better
			pods = append(pods, path)
			continue
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		paths = pods
	}
	said := []string{shorten(paths)}
	for _, f := range p.Findings {
		if f.Reason == meta.ReasonStaleApproval {
			said = append(said, f.String()) // somebody waits for what was not consented to
		}
	}
	return Verdict{True: true, Reason: meta.ReasonConsentNeeded, Message: strings.Join(said, "; ")}
}

func messages(findings []plan.Finding) []string {
	out := make([]string, 0, len(findings))
	for _, f := range findings {
		out = append(out, f.String())
	}
	return out
}

// shorten joins the first three, sorted, and counts the rest.
func shorten(parts []string) string {
	const shown = 3
	sorted := append([]string(nil), parts...)
	sort.Strings(sorted)
	if len(sorted) <= shown {
		return strings.Join(sorted, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(sorted[:shown], "; "), len(sorted)-shown)
}

// longest bounds a message; the API's own limit is 32768.
const longest = 2048

// ephemeral is the part of a network error that is another one each time.
var ephemeral = regexp.MustCompile(`(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:.%]+\]):\d+->`)

// stable takes out of a message what would make it differ from the last one
// although nothing is different: the local ports of connections.
func stable(message string) string {
	message = strings.ToValidUTF8(ephemeral.ReplaceAllString(message, ""), "?")
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "…"
	}
	return message
}
