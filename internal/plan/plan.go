// Package plan is the vocabulary in which Fairlead says what it is about to do.
//
// A plan is two values. Changes are every difference between the live objects
// and the wanted ones: complete, printable, the thing a person approves. Steps
// are what to do right now, up to the next barrier (a Wait). Nothing is stored
// between reconciles: every plan is made afresh from what can be observed, so
// a crash between two steps leaves a world that the next plan understands.
//
// The package is pure: no clock, no client, no randomness.
package plan

import (
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
)

// Cause says who brought a difference about.
type Cause string

// The causes of a change.
const (
	// CauseUser is an edit of the custom resource.
	CauseUser Cause = "user"
	// CauseConfig is an edit of a ConfigMap or Secret that the resource refers to.
	CauseConfig Cause = "config"
	// CauseClass is an edit of a template shared by several resources.
	CauseClass Cause = "class"
	// CauseRevision is a difference in the operator's own rendering.
	CauseRevision Cause = "revision"
	// CauseDrift is an edit of an owned object by somebody else.
	CauseDrift Cause = "drift"
	// CauseRuntime is a setting changed in the running system.
	CauseRuntime Cause = "runtime"
)

// Effect says what a change does to what is running.
type Effect string

// The effects of a change, from mildest to gravest.
const (
	EffectNone             Effect = "none"
	EffectReload           Effect = "reload"
	EffectResize           Effect = "resize"
	EffectRestartContainer Effect = "restart-container"
	EffectRestartPod       Effect = "restart-pod"
	EffectRecreate         Effect = "recreate"
	EffectDataLoss         Effect = "data-loss"
)

// Verdict says what Fairlead does about a change.
type Verdict string

// The verdicts on a change.
const (
	// VerdictApply carries the change out.
	VerdictApply Verdict = "apply"
	// VerdictHold keeps it until a person consents.
	VerdictHold Verdict = "hold"
	// VerdictRefuse never carries it out; the message says what to do instead.
	VerdictRefuse Verdict = "refuse"
	// VerdictWait carries it out once the named condition holds.
	VerdictWait Verdict = "wait"
)

// Ref names an object within a plan.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func (r Ref) String() string { return r.Kind + "/" + r.Name }

// Change is one difference between a live object and the wanted one.
type Change struct {
	Object Ref `json:"object"`
	// Path of the field in the object, for example
	// `spec.template.spec.containers[name="fe"].image`; empty when the whole
	// object is created or deleted.
	Path string `json:"path,omitempty"`
	// From and To are the two values in print. Those of Secrets are withheld.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`

	Cause   Cause   `json:"cause"`
	Effect  Effect  `json:"effect"`
	Verdict Verdict `json:"verdict"`
	// Reason is one CamelCase word, Message a sentence for people.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Approve is the digest that consents to the held set this change is in.
	Approve string `json:"approve,omitempty"`
}

// Severity grades a finding.
type Severity string

// The severities of a finding.
const (
	// Refusal stops every step on the object until the input is mended.
	Refusal Severity = "Refusal"
	// Unsupported names an input whose behaviour Fairlead does not offer (yet).
	Unsupported Severity = "Unsupported"
	// Warning is advice.
	Warning Severity = "Warning"
)

// Finding is something about the input that a person should know.
type Finding struct {
	Severity Severity `json:"severity"`
	// Field is the path in the custom resource, such as `spec.feSpec.replicas`.
	Field   string `json:"field"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (f Finding) String() string { return f.Field + ": " + f.Message }

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
	// Exact has the apply refused when the object is not of the version Live any
	// more: it also says what was observed rather than chosen, which would undo what
	// somebody else wrote in between.
	Exact bool
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

// Plan is what one reconcile means to do.
type Plan struct {
	Changes  []Change  `json:"changes"`
	Steps    []Step    `json:"-"`
	Findings []Finding `json:"findings,omitempty"`
	// Revisit is when to look again although nothing is waited for: at something
	// that no event tells of. Zero means never.
	Revisit time.Duration `json:"-"`
}

// Settled tells whether nothing is left to do and nothing is waited for. Held
// and refused changes do not unsettle a plan: nothing will be done about them.
func (p Plan) Settled() bool {
	if len(p.Steps) > 0 {
		return false
	}
	for _, c := range p.Changes {
		if c.Verdict == VerdictApply || c.Verdict == VerdictWait {
			return false
		}
	}
	return true
}

// Refused returns the findings that stop every step.
func (p Plan) Refused() []Finding { return p.findings(Refusal) }

// Unsupported returns the inputs whose behaviour is not offered.
func (p Plan) Unsupported() []Finding { return p.findings(Unsupported) }

func (p Plan) findings(s Severity) []Finding {
	var out []Finding
	for _, f := range p.Findings {
		if f.Severity == s {
			out = append(out, f)
		}
	}
	return out
}

// Held returns the changes that wait for consent.
func (p Plan) Held() []Change {
	var out []Change
	for _, c := range p.Changes {
		if c.Verdict == VerdictHold {
			out = append(out, c)
		}
	}
	return out
}

// Waits returns the barriers of the plan in order.
func (p Plan) Waits() []Wait {
	var out []Wait
	for _, s := range p.Steps {
		if w, ok := s.(Wait); ok {
			out = append(out, w)
		}
	}
	return out
}

// Covered checks the promise that executed steps never leave the changes they
// came from: every writing step must act on an object that has a change with
// the verdict apply, no step may follow a barrier, and there are none at all
// while the input is refused. It returns an error that names the first step
// that breaks it. (That an apply changes no other field than those is held by
// Builder and by its tests.)
func (p Plan) Covered() error {
	allowed := map[Ref]bool{}
	for _, c := range p.Changes {
		if c.Verdict == VerdictApply {
			allowed[c.Object] = true
		}
	}
	for i, s := range p.Steps {
		if len(p.Refused()) > 0 {
			return fmt.Errorf("step on %s (%s) although the input is refused", s.Target(), s.Why())
		}
		if _, waits := s.(Wait); waits {
			if rest := p.Steps[i+1:]; len(rest) > 0 {
				return fmt.Errorf("step on %s (%s) follows a barrier", rest[0].Target(), rest[0].Why())
			}
			continue
		}
		if !allowed[s.Target()] {
			return fmt.Errorf("step on %s (%s) has no change to apply", s.Target(), s.Why())
		}
	}
	return nil
}

// RefOf names an object; its kind is taken from the type when the object does
// not carry it.
func RefOf(o client.Object) Ref {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = fmt.Sprintf("%T", o)
		kind = kind[strings.LastIndex(kind, ".")+1:]
	}
	return Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}
