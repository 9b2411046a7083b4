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
