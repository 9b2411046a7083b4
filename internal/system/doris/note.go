package doris

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// note is one thing that the operator remembers of an object, in an annotation of it.
type note struct {
	on  client.Object
	key string
	// is and to are the value in the patch, nil to take it away, and in the change:
	// most records are for nobody to read.
	is       any
	from, to string
	cause    plan.Cause
	// reason says what is written for, and message what it is.
	reason, message string
}

// recordedHere is what is said of a note that is the operator's own business.
const recordedHere = "what the operator remembers of the object"

// write plans a note by itself: it moves nothing.
func (p planner) write(n note) {
	p.build.Step(plan.Change{
		Object: plan.RefOf(n.on), Path: `metadata.annotations["` + n.key + `"]`, From: n.from, To: n.to, Cause: n.cause,
		Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: "Recorded", Message: n.message,
	}, plan.Patch{
		Object: n.on, Manager: FieldManager, Reason: n.reason,
		Fields: map[string]any{"metadata": map[string]any{"annotations": map[string]any{n.key: n.is}}},
	})
}
