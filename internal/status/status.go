// Package status computes conditions: once, at the end of a reconcile, from
// what was observed and planned. It is pure. Messages are stable (sorted,
// shortened, without times), so that an unchanged world writes nothing.
package status

import (
	"fmt"
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
}

// Health is what a system says of itself.
type Health struct {
	// Available tells whether the data system serves its users.
	Available Verdict
	// Complete tells whether every member is there and healthy.
	Complete Verdict
	// Extra holds the system's own conditions, by type.
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
	Paused  bool
}

// Conditions returns the conditions that follow from in, based on the previous
// ones: a transition time moves only when the status of its condition does.
func Conditions(previous []metav1.Condition, in Input) []metav1.Condition {
	out := make([]metav1.Condition, len(previous))
	copy(out, previous)
	set := func(kind string, v Verdict) {
		s := metav1.ConditionFalse
		if v.True {
			s = metav1.ConditionTrue
		}
		apimeta.SetStatusCondition(&out, metav1.Condition{
			Type: kind, Status: s, Reason: v.Reason, Message: v.Message,
			ObservedGeneration: in.Generation, LastTransitionTime: metav1.NewTime(in.Now).Rfc3339Copy(),
		})
	}
	whileTrue := func(kind string, v Verdict) {
		if v.True {
			set(kind, v)
			return
		}
		apimeta.RemoveStatusCondition(&out, kind)
	}

	stalled := stalled(in)
	whileTrue(meta.ConditionStalled, stalled)
	reconciling := reconciling(in, stalled)
	whileTrue(meta.ConditionReconciling, reconciling)
	if in.Health != nil {
		set(meta.ConditionAvailable, in.Health.Available)
		setExtra(in.Health.Extra, set)
	}
	if in.Failure == nil {
		whileTrue(meta.ConditionChangePending, pending(in.Plan.Held()))
		if f := in.Plan.Unsupported(); len(f) > 0 {
			set(meta.ConditionFullySupported, Verdict{Reason: meta.ReasonNotSupportedYet, Message: shorten(messages(f))})
		} else {
			apimeta.RemoveStatusCondition(&out, meta.ConditionFullySupported)
		}
	}
	set(meta.ConditionReady, ready(in, stalled, reconciling))
	sort.Slice(out, func(i, j int) bool { return out[i].Type < out[j].Type })
	return out
}

func setExtra(extra map[string]Verdict, set func(string, Verdict)) {
	kinds := make([]string, 0, len(extra))
	for k := range extra {
		kinds = append(kinds, k)
	}
	sort.Strings(kinds)
	for _, k := range kinds {
		set(k, extra[k])
	}
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
	if in.Paused && !in.Plan.Settled() {
		return Verdict{True: true, Reason: meta.ReasonPaused, Message: fmt.Sprintf("changes wait until the annotation %s is removed", meta.AnnotationPaused)}
	}
	return Verdict{}
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

func pending(held []plan.Change) Verdict {
	if len(held) == 0 {
		return Verdict{}
	}
	paths := make([]string, 0, len(held))
	for _, c := range held {
		paths = append(paths, c.Object.String()+" "+c.Path)
	}
	return Verdict{True: true, Reason: meta.ReasonConsentNeeded, Message: shorten(paths)}
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
