package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
)

// Step is one thing to do now. The set of steps is closed: Apply, Create, Patch,
// Adopt, Disown, Delete, Evict, Call and Wait.
type Step interface {
	// Why is a short sentence for logs and events.
	Why() string
	// Target is the object concerned.
	Target() Ref
	step()
}

// Apply makes the owned fields of one object as they are in Object, by
// server-side apply.
type Apply struct {
	Object client.Object
	// Manager is the field manager that owns the fields; see Manager.
	Manager string
	// Live is the resource version that the decision was made on; empty when
	// the object is to be created.
	Live string
	// UID is that of the object that the decision was made on: the apply is refused
	// with a conflict when it is gone, which else would make it anew.
	UID types.UID
	// Exact has the apply refused when the object is not of the version Live any
	// more: it also says what was observed rather than chosen, which would undo what
	// somebody else wrote in between.
	Exact bool
	// Silent has no event made of it: it notes what was observed, and changes nothing for
	// anybody.
	Silent bool
	// Reason is a short sentence.
	Reason string
}

// Patch changes single fields of an object that exists, where an apply would say
// more than is meant: one that was made by another operator and is not rendered
// by us yet. It is a JSON merge patch and is refused when the object is not the
// observed one any more.
type Patch struct {
	// Object is the observed object.
	Object client.Object
	// Fields is the merge patch without the preconditions.
	Fields  map[string]any
	Manager string
	Reason  string
	// Subresource is what the fields are of; empty for the object itself.
	Subresource string
	// Else is patched into the object itself where the API server refuses Fields in
	// the subresource, so that the refusal is seen when the object is.
	Else map[string]any
	// Apart tells that nothing else depends on it: a refusal is reported, keeps no
	// other step from being carried out, and is not asked for again at once.
	Apart bool
}

// Create makes an object word for word as it is given. It is for one that was there
// before and may say what an apply cannot: a list that holds an entry twice.
type Create struct {
	Object  client.Object
	Manager string
	Reason  string
}

// Adopt moves the ownership of fields to the manager, so that a later apply may
// also remove them. No field of the object changes.
type Adopt struct {
	// Object is the observed object.
	Object client.Object
	// Rendered names the fields: those of it that lie below the path Below and are
	// not among Except.
	Rendered client.Object
	Below    string
	Except   []diff.Field
	Manager  string
	Reason   string
}

// Disown gives up all fields that a manager owns in an object, without changing
// them, and changes some others: the object is somebody else's from then on.
type Disown struct {
	// Object is the observed object.
	Object client.Object
	// Fields is a merge patch without preconditions.
	Fields  map[string]any
	Manager string
	Reason  string
}

// Delete removes one object, only if it still is the one that was observed.
type Delete struct {
	Object client.Object
	// Unwatched tells that the kind is not watched, so that nothing shows when the
	// object is gone.
	Unwatched bool
	// Orphan leaves what the object controls where it is, and has the deletion
	// refused when the object is not of the observed version any more.
	Orphan bool
	Reason string
}

// Evict asks the API server to evict a Pod, so that disruption budgets are
// honoured.
type Evict struct {
	Pod    client.Object
	Reason string
}

// Operation is something asked of a data system rather than of Kubernetes.
type Operation interface {
	// Describe is one line without any secret.
	Describe() string
}

// Call runs one Operation.
type Call struct {
	On        Ref
	Operation Operation
	Reason    string
}

// Wait ends the steps: what follows depends on something that is not there yet.
type Wait struct {
	On      Ref
	Reason  string // CamelCase
	Message string
	// Recheck is set when no event announces the end of the wait.
	Recheck time.Duration
	// Person tells that it does not end by itself: a person has to do something.
	Person bool
}

// Why says what the step is for.
func (a Apply) Why() string { return a.Reason }

// Target is the applied object.
func (a Apply) Target() Ref { return RefOf(a.Object) }

// Why says what the step is for.
func (p Patch) Why() string { return p.Reason }

// Target is the patched object.
func (p Patch) Target() Ref { return RefOf(p.Object) }

// Why says what the step is for.
func (c Create) Why() string { return c.Reason }

// Target is the object that is made.
func (c Create) Target() Ref { return RefOf(c.Object) }

// Why says what the step is for.
func (a Adopt) Why() string { return a.Reason }

// Target is the object whose fields get another owner.
func (a Adopt) Target() Ref { return RefOf(a.Object) }

// Why says what the step is for.
func (d Disown) Why() string { return d.Reason }

// Target is the object that is given up.
func (d Disown) Target() Ref { return RefOf(d.Object) }

// Why says what the step is for.
func (d Delete) Why() string { return d.Reason }

// Target is the deleted object.
func (d Delete) Target() Ref { return RefOf(d.Object) }

// Why says what the step is for.
func (e Evict) Why() string { return e.Reason }

// Target is the evicted Pod.
func (e Evict) Target() Ref { return RefOf(e.Pod) }

// Why says what the step is for.
func (c Call) Why() string { return c.Reason }

// Target is the object the operation concerns.
func (c Call) Target() Ref { return c.On }

// Why says what is waited for.
func (w Wait) Why() string { return w.Message }

// Target is the object waited for.
func (w Wait) Target() Ref { return w.On }

func (Apply) step()  {}
func (Create) step() {}
func (Patch) step()  {}
func (Adopt) step()  {}
func (Disown) step() {}
func (Delete) step() {}
func (Evict) step()  {}
func (Call) step()   {}
func (Wait) step()   {}
