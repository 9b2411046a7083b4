package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

var (
	ref      = plan.Ref{Kind: "StatefulSet", Namespace: "ns", Name: "fe"}
	serving  = Verdict{True: true, Reason: "Serving", Message: "serves"}
	complete = Verdict{True: true, Reason: "Complete", Message: "all there"}
	healthy  = &Health{Available: serving, Complete: complete}
	down     = &Health{Available: Verdict{Reason: "Down", Message: "does not serve"}, Complete: Verdict{Reason: "Missing", Message: "1 of 3"}}
	degraded = &Health{Available: serving, Complete: Verdict{Reason: "Missing", Message: "2 of 3"}}
	apply    = plan.Plan{Changes: []plan.Change{{Object: ref, Path: "spec.replicas", Verdict: plan.VerdictApply}}, Steps: []plan.Step{plan.Call{On: ref}}}
	waiting  = plan.Plan{Steps: []plan.Step{plan.Wait{On: ref, Reason: "ForFE", Message: "waits for fe"}}}
	held     = plan.Plan{Changes: []plan.Change{{Object: ref, Path: "spec.b", Verdict: plan.VerdictHold}, {Object: ref, Path: "spec.a", Verdict: plan.VerdictHold}}}
	refused  = plan.Plan{Findings: []plan.Finding{{Severity: plan.Refusal, Field: "spec.x", Reason: "InvalidSpec", Message: "is wrong"}}}
	lacking  = plan.Plan{Findings: []plan.Finding{{Severity: plan.Unsupported, Field: "spec.y", Message: "is not built"}, {Severity: plan.Warning, Field: "spec.z", Message: "careful"}}}
	fleeting = &Failure{Reason: "ApplyFailed", Err: errors.New("try later")}
	forGood  = &Failure{Reason: "ApplyFailed", Err: errors.New("not allowed"), Permanent: true}
)

// heldPods is a plan of these changes and of two held Pods.
func heldPods(more ...plan.Change) plan.Plan {
	p := plan.Plan{Changes: more}
	for _, name := range []string{"fe-1", "fe-0"} {
		p.Changes = append(p.Changes, plan.Change{Object: plan.Ref{Kind: "Pod", Namespace: "ns", Name: name}, Verdict: plan.VerdictHold})
	}
	return p
}

// told prints conditions: type=status reason (message).
func told(list []metav1.Condition) []string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s=%s %s (%s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

func TestConditions(t *testing.T) {
	const available = "Available=True Serving (serves)"
	for _, tc := range []struct {
		name string
		in   Input
		want []string
	}{
		{"settled and healthy, ready", Input{Health: healthy}, []string{available, "Ready=True Reconciled (as the spec wants it)"}},
		{"settled, a member is missing: serves and is not ready", Input{Health: degraded}, []string{
			available, "Ready=False Missing (2 of 3)", "Reconciling=True Missing (2 of 3)",
		}},
		{"settled, does not serve", Input{Health: down}, []string{
			"Available=False Down (does not serve)", "Ready=False Down (does not serve)", "Reconciling=True Missing (1 of 3)",
		}},
		{"something to apply", Input{Health: healthy, Plan: apply}, []string{
			available, "Ready=False Progressing (applying the spec)", "Reconciling=True Progressing (applying the spec)",
		}},
		{"a barrier is named", Input{Health: healthy, Plan: waiting}, []string{
			available, "Ready=False ForFE (waits for fe)", "Reconciling=True ForFE (waits for fe)",
		}},
		{"held changes leave it ready", Input{Health: healthy, Plan: held}, []string{
			available, "ChangePending=True ConsentNeeded (StatefulSet/fe spec.a; StatefulSet/fe spec.b)", "Ready=True Reconciled (as the spec wants it)",
		}},
		{"held Pods do not hide the set that they are held for", Input{Health: healthy, Plan: heldPods(held.Changes...)}, []string{
			available, "ChangePending=True ConsentNeeded (StatefulSet/fe spec.a; StatefulSet/fe spec.b)", "Ready=True Reconciled (as the spec wants it)",
		}},
		{"nothing but Pods is held, they are named", Input{Health: healthy, Plan: heldPods()}, []string{
			available, "ChangePending=True ConsentNeeded (Pod/fe-0; Pod/fe-1)", "Ready=True Reconciled (as the spec wants it)",
		}},
		{"refused input stalls", Input{Health: healthy, Plan: refused}, []string{
			available, "Ready=False InvalidSpec (spec.x: is wrong)", "Stalled=True InvalidSpec (spec.x: is wrong)",
		}},
		{"unsupported input is named and leaves it ready", Input{Health: healthy, Plan: lacking}, []string{
			available, "FullySupported=False NotSupportedYet (spec.y: is not built)", "Ready=True Reconciled (as the spec wants it)",
		}},
		{"paused with nothing to do, ready", Input{Health: healthy, Paused: true}, []string{available, "Ready=True Paused (as the spec wants it; paused)"}},
		{"paused with something to do, stalled", Input{Health: healthy, Paused: true, Plan: apply}, []string{
			available, "Ready=False Paused (changes wait until the annotation fairlead.dev/paused is removed)",
			"Stalled=True Paused (changes wait until the annotation fairlead.dev/paused is removed)",
		}},
		{"paused while Pods come up, nothing is held back", Input{Health: degraded, Paused: true, Plan: waiting}, []string{
			available, "Ready=False ForFE (waits for fe)", "Reconciling=True ForFE (waits for fe)",
		}},
		{"paused and refused, the refusal is told", Input{Health: healthy, Paused: true, Plan: refused}, []string{
			available, "Ready=False InvalidSpec (spec.x: is wrong)", "Stalled=True InvalidSpec (spec.x: is wrong)",
		}},
		{"failure that passes", Input{Health: healthy, Failure: fleeting}, []string{
			available, "Ready=False ApplyFailed (try later)", "Reconciling=True ApplyFailed (try later)",
		}},
		{"failure for good", Input{Health: healthy, Failure: forGood}, []string{
			available, "Ready=False ApplyFailed (not allowed)", "Stalled=True ApplyFailed (not allowed)",
		}},
		{"failure goes before what the plan says", Input{Health: down, Failure: forGood, Plan: refused, Paused: true}, []string{
			"Available=False Down (does not serve)", "Ready=False ApplyFailed (not allowed)", "Stalled=True ApplyFailed (not allowed)",
		}},
		{"failure before anything is known", Input{Failure: fleeting}, []string{
			"Ready=False ApplyFailed (try later)", "Reconciling=True ApplyFailed (try later)",
		}},
		{"failure of a step, the plan is whole", Input{Health: healthy, Failure: forGood, Plan: held, Planned: true}, []string{
			available, "ChangePending=True ConsentNeeded (StatefulSet/fe spec.a; StatefulSet/fe spec.b)",
			"Ready=False ApplyFailed (not allowed)", "Stalled=True ApplyFailed (not allowed)",
		}},
		{"the system's own conditions are there", Input{Health: &Health{Available: serving, Complete: complete, Extra: map[string]Verdict{"B": {Reason: "R"}, "A": {True: true, Reason: "R"}}}}, []string{
			"A=True R ()", available, "B=False R ()", "Ready=True Reconciled (as the spec wants it)",
		}},
		{"a missing reason is filled in, the API server wants one", Input{Health: &Health{Available: Verdict{True: true}, Complete: complete}}, []string{
			"Available=True Unspecified ()", "Ready=True Reconciled (as the spec wants it)",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.in.Generation, tc.in.Now = 7, time.Unix(1000, 0)
			got := Conditions(nil, tc.in)
			if d := cmp.Diff(tc.want, told(got)); d != "" {
				t.Errorf("conditions (-want +got):\n%s", d)
			}
			for _, c := range got {
				if c.ObservedGeneration != 7 || c.LastTransitionTime.Unix() != 1000 {
					t.Errorf("%s: generation %d, turned at %v", c.Type, c.ObservedGeneration, c.LastTransitionTime)
				}
			}
		})
	}
}

func TestWhatCannotBeKnownStays(t *testing.T) {
	before := Conditions(nil, Input{Generation: 1, Now: time.Unix(1000, 0), Plan: held, Health: &Health{
		Available: serving, Complete: complete, Extra: map[string]Verdict{"Own": {True: true, Reason: "R"}},
	}})
	after := Conditions(before, Input{Generation: 2, Now: time.Unix(2000, 0), Failure: fleeting})
	want := []string{
		"Available=True Serving (serves)", "ChangePending=True ConsentNeeded (StatefulSet/fe spec.a; StatefulSet/fe spec.b)", "Own=True R ()",
		"Ready=False ApplyFailed (try later)", "Reconciling=True ApplyFailed (try later)",
	}
	if d := cmp.Diff(want, told(after)); d != "" {
		t.Errorf("conditions (-want +got):\n%s", d)
	}
	for _, c := range after {
		if c.Type == meta.ConditionAvailable && c.ObservedGeneration != 1 {
			t.Errorf("Available claims to know generation %d", c.ObservedGeneration)
		}
	}
	again := Conditions(after, Input{Generation: 2, Now: time.Unix(3000, 0), Health: healthy})
	if d := cmp.Diff([]string{"Available=True Serving (serves)", "Ready=True Reconciled (as the spec wants it)"}, told(again)); d != "" {
		t.Errorf("conditions that no longer apply (-want +got):\n%s", d)
	}
}

func TestTransitionTimeMovesWithTheStatusAlone(t *testing.T) {
	at := func(list []metav1.Condition, kind string) int64 {
		i := slices.IndexFunc(list, func(c metav1.Condition) bool { return c.Type == kind })
		return list[i].LastTransitionTime.Unix()
	}
	first := Conditions(nil, Input{Generation: 1, Now: time.Unix(1000, 0), Health: degraded})
	kept := slices.Clone(first)
	other := *degraded
	other.Complete.Message = "1 of 3"
	second := Conditions(first, Input{Generation: 2, Now: time.Unix(2000, 0), Health: &other})
	third := Conditions(second, Input{Generation: 2, Now: time.Unix(3000, 0), Health: healthy})
	if got := at(second, meta.ConditionReady); got != 1000 {
		t.Errorf("another message moved the time of Ready to %d", got)
	}
	if got := at(third, meta.ConditionReady); got != 3000 {
		t.Errorf("Ready turned at 3000 and says %d", got)
	}
	if got := at(third, meta.ConditionAvailable); got != 1000 {
		t.Errorf("Available did not turn and says %d", got)
	}
	if d := cmp.Diff(kept, first); d != "" {
		t.Errorf("the previous conditions were changed:\n%s", d)
	}
}

func TestMessagesAreStableAndBounded(t *testing.T) {
	message := func(err string) string {
		got := Conditions(nil, Input{Failure: &Failure{Reason: "R", Err: errors.New(err)}})
		return got[0].Message
	}
	for _, tc := range []struct{ name, a, b string }{
		{"local port of IPv4", "read tcp 10.0.0.1:40000->10.0.0.2:443: connection reset", "read tcp 10.0.0.1:40001->10.0.0.2:443: connection reset"},
		{"local port of IPv6", "read tcp [::1]:40000->[::1]:443: reset", "read tcp [::1]:40001->[::1]:443: reset"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if a, b := message(tc.a), message(tc.b); a != b {
				t.Errorf("%q and %q", a, b)
			}
			if got := message(tc.a); !strings.Contains(got, ":443: ") {
				t.Errorf("the remote address is gone: %q", got)
			}
		})
	}
	if got := message(strings.Repeat("é", 5000)); len(got) > longest+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-8:])
	}
	var many plan.Plan
	for _, n := range []int{5, 1, 4, 2, 3} {
		many.Changes = append(many.Changes, plan.Change{Object: ref, Path: fmt.Sprintf("f%d", n), Verdict: plan.VerdictHold})
	}
	got := Conditions(nil, Input{Plan: many, Health: healthy})[1].Message
	if want := "StatefulSet/fe f1; StatefulSet/fe f2; StatefulSet/fe f3; and 2 more"; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
}

// Whatever comes before, the outcome depends on the input alone but for what
// cannot be known, computing it twice changes nothing, and the set is sound.
func TestConditionsProperties(t *testing.T) {
	input := rapid.Custom(func(t *rapid.T) Input {
		return Input{
			Generation: rapid.Int64Range(1, 5).Draw(t, "generation"),
			Now:        time.Unix(rapid.Int64Range(1, 1e6).Draw(t, "now"), 0),
			Plan:       rapid.SampledFrom([]plan.Plan{{}, apply, waiting, held, refused, lacking}).Draw(t, "plan"),
			Health:     rapid.SampledFrom([]*Health{nil, healthy, down, degraded}).Draw(t, "health"),
			Failure:    rapid.SampledFrom([]*Failure{nil, fleeting, forGood}).Draw(t, "failure"),
			Planned:    rapid.Bool().Draw(t, "planned"),
			Paused:     rapid.Bool().Draw(t, "paused"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var list []metav1.Condition
		for _, in := range rapid.SliceOfN(input, 1, 6).Draw(t, "inputs") {
			list = Conditions(list, in)
			later := in
			later.Now = in.Now.Add(time.Hour)
			if d := cmp.Diff(list, Conditions(list, later)); d != "" {
				t.Fatalf("an unchanged world changes conditions an hour later:\n%s", d)
			}
			sound(t, list)
		}
	})
}

func sound(t *rapid.T, list []metav1.Condition) {
	by := map[string]metav1.Condition{}
	for i, c := range list {
		if i > 0 && list[i-1].Type >= c.Type {
			t.Fatalf("not sorted: %v", told(list))
		}
		by[c.Type] = c
	}
	_, stalled := by[meta.ConditionStalled]
	_, reconciling := by[meta.ConditionReconciling]
	ready := by[meta.ConditionReady].Status
	if stalled && reconciling || ready == metav1.ConditionTrue && (stalled || reconciling) || ready == "" {
		t.Fatalf("contradictory: %v", told(list))
	}
	if ready == metav1.ConditionFalse && !stalled && !reconciling && by[meta.ConditionAvailable].Status != metav1.ConditionFalse {
		t.Fatalf("not ready for no reason: %v", told(list))
	}
}
