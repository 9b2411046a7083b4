package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Counts are what a plan comes to.
type Counts struct {
	// Fields of Objects are to be changed now, but for the operator's own records,
	// and Waiting later.
	Fields, Objects, Waiting int
	// Pods are to be replaced, and Spared only where what is tried first cannot be
	// done; Held are sets of changes, and Unapprovable held changes of none.
	Pods, Held, Unapprovable, Refused int
	Spared                            map[plan.Effect]int
	// Pending tells that something is to be applied, be it a record.
	Pending bool
}

// Count counts.
func (r Result) Count() Counts {
	n := Counts{
		Held: len(r.Sets), Refused: len(r.Refused()), Spared: map[plan.Effect]int{},
		Pending: slices.ContainsFunc(r.Changes, func(c plan.Change) bool { return goesOn(c) && !stays(c.Verdict, c.Reason) }),
	}
	objects := map[plan.Ref]bool{}
	for _, c := range r.Changes {
		switch {
		case c.Object.Kind == "Pod" && replaces(c.Effect, c.Verdict, c.Reason): // below, each Pod once
		case c.Object.Kind == "Pod" && (c.Path == "" || !goesOn(c)), plan.Bookkeeping(c.Path):
		case c.Verdict == plan.VerdictApply:
			n.Fields++
			objects[c.Object] = true
		default:
			countOther(&n, c, len(r.Refused()) > 0)
		}
	}
	n.Objects = len(objects)
	for _, effect := range r.replacements() {
		if spares(effect) {
			n.Spared[effect]++
		} else {
			n.Pods++
		}
	}
	return n
}

// goesOn tells whether a change is carried out, now or in its turn.
func goesOn(c plan.Change) bool {
	return c.Verdict == plan.VerdictApply || c.Verdict == plan.VerdictWait
}

// replacements are the Pods that go, each by what takes it furthest.
func (r Result) replacements() map[string]plan.Effect {
	pods := map[string]plan.Effect{}
	for _, c := range r.Changes {
		if c.Object.Kind != "Pod" || !replaces(c.Effect, c.Verdict, c.Reason) {
			continue
		}
		if was, twice := pods[c.Object.Name]; !twice || spares(was) {
			pods[c.Object.Name] = c.Effect
		}
	}
	return pods
}

// spares tells whether a Pod stays if its node or its process can do what is tried
// first.
func spares(effect plan.Effect) bool {
	return effect == plan.EffectResizeOrRestart || effect == plan.EffectReloadOrRestart
}

// pods says what becomes of how many Pods.
func (n Counts) pods() []string {
	var parts []string
	for effect, what := range map[plan.Effect]string{plan.EffectReloadOrRestart: "told the new settings", plan.EffectResizeOrRestart: "resized in place"} {
		if n.Spared[effect] > 0 {
			parts = append(parts, screen.Many(n.Spared[effect], "Pod")+" "+what+" or else replaced")
		}
	}
	slices.Sort(parts)
	if n.Pods > 0 {
		parts = append([]string{screen.Many(n.Pods, "Pod") + " replaced"}, parts...)
	}
	if len(parts) > 0 {
		parts[len(parts)-1] += ", one at a time"
	}
	return parts
}

// countOther counts a change that is not carried out now.
func countOther(n *Counts, c plan.Change, refused bool) {
	switch {
	case c.Verdict == plan.VerdictWait:
		n.Waiting++
	case asked(c) && !refused:
		n.Refused++
	case unapprovable(c):
		n.Unapprovable++
	}
}

// unapprovable tells whether a change is held and no consent carries it out. What
// only reports a setting of the running system is no such change.
func unapprovable(c plan.Change) bool {
	return c.Verdict == plan.VerdictHold && c.Approve == "" && c.Cause != plan.CauseRuntime
}

func summary(r Result) string {
	n := r.Count()
	if len(r.Refused()) > 0 {
		return "refused; nothing would be changed"
	}
	var parts []string
	switch {
	case n.Fields > 0:
		parts = append(parts, fmt.Sprintf("%s of %s to apply", screen.Many(n.Fields, "change"), screen.Many(n.Objects, "object")))
	case n.Pods > 0 || len(n.Spared) > 0 || n.Waiting > 0:
	case n.Pending:
		parts = append(parts, "records to bring up to date")
	default:
		parts = append(parts, "nothing to do")
	}
	parts = append(parts, n.pods()...)
	if n.Waiting > 0 {
		parts = append(parts, screen.Many(n.Waiting, "change")+" waiting")
	}
	if n.Held > 0 {
		parts = append(parts, screen.Many(n.Held, "set")+" of changes held until approved")
	}
	if n.Unapprovable > 0 {
		parts = append(parts, screen.Many(n.Unapprovable, "change")+" held")
	}
	if n.Refused > 0 {
		parts = append(parts, screen.Many(n.Refused, "change")+" refused")
	}
	return strings.Join(parts, ", ")
}
