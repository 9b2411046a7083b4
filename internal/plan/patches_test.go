package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// A patch that comes after another one of the same object would be refused: it joins the
// one right before it. Where something is done in between it does not, since it may tell
// of that.
func TestPatchesOfOneObjectAreOne(t *testing.T) {
	s := newStore(t)
	live := s.applied(configMap("1"))
	annotates := func(key, reason string) plan.Patch {
		return plan.Patch{Object: live, Reason: reason, Fields: map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: reason}}}}
	}
	change := plan.Change{Object: plan.RefOf(live), Verdict: plan.VerdictApply}
	for name, tc := range map[string]struct {
		steps func(*plan.Builder)
		want  []string
		says  map[string]any
	}{
		"right after another patch": {
			func(b *plan.Builder) { b.Step(change, annotates("a", "one")); b.Step(change, annotates("b", "two")) },
			[]string{"plan.Patch ConfigMap/conf: one; two"},
			map[string]any{"a": "one", "b": "two"},
		},
		"what is said later counts": {
			func(b *plan.Builder) { b.Step(change, annotates("a", "one")); b.Step(change, annotates("a", "two")) },
			[]string{"plan.Patch ConfigMap/conf: one; two"},
			map[string]any{"a": "two"},
		},
		"after a step that it may tell of": {
			func(b *plan.Builder) {
				b.Step(change, annotates("a", "one"))
				b.Step(change, plan.Delete{Object: live, Reason: "gone"})
				b.Step(change, annotates("b", "two"))
			},
			[]string{"plan.Patch ConfigMap/conf: one", "plan.Delete ConfigMap/conf: gone", "plan.Patch ConfigMap/conf: two"},
			map[string]any{"a": "one"},
		},
		"of a subresource": {
			func(b *plan.Builder) {
				b.Step(change, annotates("a", "one"))
				scale := annotates("b", "two")
				scale.Subresource = "scale"
				b.Step(change, scale)
			},
			[]string{"plan.Patch ConfigMap/conf: one", "plan.Patch ConfigMap/conf: two"},
			map[string]any{"a": "one"},
		},
		"after an apply": {
			func(b *plan.Builder) {
				b.Want(plan.Want{Rendered: configMap("2"), Live: live})
				b.Step(change, annotates("b", "two"))
			},
			[]string{"plan.Apply ConfigMap/conf: update data.k", "plan.Patch ConfigMap/conf: two"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := build(t, tc.steps)
			p.Changes = nil
			if d := cmp.Diff(tc.want, lines(p)); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
			if first, is := p.Steps[0].(plan.Patch); is {
				got := first.Fields["metadata"].(map[string]any)["annotations"]
				if d := cmp.Diff(any(tc.says), got); d != "" {
					t.Errorf("fields (-want +got):\n%s", d)
				}
			}
		})
	}
}
