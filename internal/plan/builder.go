package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
)

// Want is one object that should be as it was rendered.
type Want struct {
	// Rendered holds exactly the fields that Fairlead owns.
	Rendered client.Object
	// Live is the observed object with its managed fields; nil when absent.
	Live client.Object
	// Cause tells who brought a difference in a field about. The path is empty
	// for the creation of the object.
	Cause func(path string) Cause
	// Reason is a short sentence: what the object is for.
	Reason string
}

// Builder makes a Plan in the order in which its methods are called. After
// Wait, differences are still listed, with the verdict wait, but no steps
// are added: what follows a barrier is planned when the barrier is gone.
type Builder struct {
	diff    *diff.Engine
	manager string
	plan    Plan
	barrier *Wait
	err     error
}

// NewBuilder returns a Builder that compares by engine and applies as manager.
func NewBuilder(engine *diff.Engine, manager string) *Builder {
	return &Builder{diff: engine, manager: manager}
}

// Plan returns what was built so far. The error is that of the first
// comparison that could not be made, which is a fault of the rendering, not of
// the user. With a refusal among the findings there are no steps, and what
// would have been applied waits for the input to be mended.
func (b *Builder) Plan() (Plan, error) {
	p := b.plan
	refused := p.Refused()
	if len(refused) == 0 {
		return p, b.err
	}
	p.Steps = nil
	p.Changes = slices.Clone(p.Changes)
	for i, c := range p.Changes {
		if c.Verdict == VerdictApply || c.Verdict == VerdictWait {
			p.Changes[i].Verdict, p.Changes[i].Reason, p.Changes[i].Message = VerdictRefuse, refused[0].Reason, refused[0].String()
		}
	}
	return p, b.err
}

// Blocked tells whether a barrier has ended the steps.
func (b *Builder) Blocked() bool { return b.barrier != nil }

// Find adds findings.
func (b *Builder) Find(f ...Finding) { b.plan.Findings = append(b.plan.Findings, f...) }

// Wait ends the steps.
func (b *Builder) Wait(w Wait) {
	if b.Blocked() {
		return
	}
	b.barrier = &w
	b.plan.Steps = append(b.plan.Steps, w)
}

// Recheck is Wait for an end that no event announces.
func (b *Builder) Recheck(on Ref, reason, message string, after time.Duration) {
	b.Wait(Wait{On: on, Reason: reason, Message: message, Recheck: after})
}

// Step adds a step that is not an apply, with the change it carries out.
func (b *Builder) Step(c Change, s Step) {
	if c.Verdict == VerdictApply && b.Blocked() {
		c = b.waiting(c)
	}
	b.plan.Changes = append(b.plan.Changes, c)
	if c.Verdict == VerdictApply {
		b.plan.Steps = append(b.plan.Steps, s)
	}
}

// Note adds a change that no step carries out (held, refused or waiting).
func (b *Builder) Note(c Change) { b.plan.Changes = append(b.plan.Changes, c) }

// Want adds the changes that bring one object to its rendered form, and the
// apply that carries out those with the verdict apply.
func (b *Builder) Want(w Want) {
	if b.err != nil {
		return
	}
	if w.Live == nil {
		b.create(w)
		return
	}
	if !w.Live.GetDeletionTimestamp().IsZero() {
		ref := RefOf(w.Rendered)
		b.Wait(Wait{On: ref, Reason: "Terminating", Message: fmt.Sprintf("%s is being deleted and will be made again", ref)})
		b.create(w)
		return
	}
	if err := b.update(w); err != nil {
		b.err = fmt.Errorf("planning %s: %w", RefOf(w.Rendered), err)
	}
}

func (b *Builder) create(w Want) {
	c := Change{Object: RefOf(w.Rendered), To: "created", Cause: w.cause(""), Effect: EffectNone, Verdict: VerdictApply, Reason: "Missing", Message: w.Reason}
	b.Step(c, Apply{Object: w.Rendered, Manager: b.manager, Reason: "create: " + w.Reason})
}

func (b *Builder) update(w Want) error {
	rendered, notes, err := settleImmutable(w.Rendered, w.Live)
	if err != nil {
		return err
	}
	ref := RefOf(w.Rendered)
	for _, n := range notes {
		n.Object, n.Cause = ref, w.cause(n.Path)
		b.Note(n)
	}
	fields, err := b.diff.Compare(rendered, w.Live, b.manager)
	if err != nil {
		return err
	}
	var applied []string
	var held []diff.Field
	for _, f := range fields {
		c := classify(ref, f, w.cause(f.Path))
		if c.Verdict == VerdictApply && b.Blocked() {
			c = b.waiting(c)
		}
		b.plan.Changes = append(b.plan.Changes, c)
		if c.Verdict == VerdictApply {
			applied = append(applied, f.Path)
		} else {
			held = append(held, f)
		}
	}
	if len(applied) == 0 {
		return nil
	}
	// What is held stays as it is live: the step may not go further than the
	// changes that it carries out.
	intent, err := b.diff.Keep(rendered, w.Live, b.manager, held)
	if err != nil {
		return err
	}
	b.plan.Steps = append(b.plan.Steps, Apply{
		Object: intent, Manager: b.manager, Live: w.Live.GetResourceVersion(),
		Reason: "update " + summary(applied),
	})
	return nil
}

func (b *Builder) waiting(c Change) Change {
	c.Verdict, c.Reason, c.Message = VerdictWait, b.barrier.Reason, b.barrier.Message
	return c
}

func (w Want) cause(path string) Cause {
	if w.Cause == nil {
		return CauseUser
	}
	return w.Cause(path)
}

func inTemplate(path string) bool {
	return path == "spec.template" || strings.HasPrefix(path, "spec.template.")
}

// classify judges one differing field by the table of default verdicts.
func classify(ref Ref, f diff.Field, cause Cause) Change {
	c := Change{Object: ref, Path: f.Path, From: f.From, To: f.To, Cause: cause, Effect: EffectNone, Verdict: VerdictApply}
	if ref.Kind == "StatefulSet" && inTemplate(f.Path) {
		c.Effect = EffectRestartPod
	}
	switch {
	case cause == CauseRevision:
		c.Verdict, c.Reason = VerdictHold, "NeedsConsent"
		c.Message = "the operator renders this differently; nothing moves until it is accepted"
	case cause == CauseClass:
		c.Verdict, c.Reason = VerdictHold, "NeedsConsent"
		c.Message = "a shared template says this differently; nothing moves until it is accepted"
	case cause == CauseDrift && inTemplate(f.Path):
		c.Verdict, c.Reason = VerdictHold, "EditedElsewhere"
		c.Message = "somebody else edited the Pod template; restoring it would restart Pods"
	case cause == CauseDrift:
		c.Reason, c.Message = "Restored", "somebody else edited an owned field"
	case cause == CauseRuntime:
		c.Verdict, c.Reason = VerdictHold, "ChangedAtRunTime"
		c.Message = "the setting was changed in the running system; this changes nothing"
	}
	return c
}

func summary(paths []string) string {
	const shown = 3
	if len(paths) <= shown {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:shown], ", "), len(paths)-shown)
}
