package plan

import (
	"fmt"
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

// Plan returns what was built. The error is that of the first comparison that
// could not be made, which is a fault of the rendering, not of the user.
func (b *Builder) Plan() (Plan, error) { return b.plan, b.err }

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
		ref := b.ref(w.Rendered)
		b.Wait(Wait{On: ref, Reason: "Terminating", Message: fmt.Sprintf("%s is being deleted and will be made again", ref)})
		return
	}
	if err := b.update(w); err != nil {
		b.err = fmt.Errorf("planning %s: %w", b.ref(w.Rendered), err)
	}
}

func (b *Builder) create(w Want) {
	c := Change{Object: b.ref(w.Rendered), To: "created", Cause: w.cause(""), Effect: EffectNone, Verdict: VerdictApply, Reason: "Missing", Message: w.Reason}
	b.Step(c, Apply{Object: w.Rendered, Manager: b.manager, Reason: "create: " + w.Reason})
}

func (b *Builder) update(w Want) error {
	rendered, notes, err := settleImmutable(w.Rendered, w.Live)
	if err != nil {
		return err
	}
	ref := b.ref(w.Rendered)
	for _, n := range notes {
		n.Object, n.Cause = ref, w.cause(n.Path)
		b.Note(n)
	}
	fields, err := b.diff.Compare(rendered, w.Live, b.manager)
	if err != nil {
		return err
	}
	var applied []string
	templateHeld := false
	for _, f := range fields {
		c := classify(ref, f, w.cause(f.Path))
		if c.Verdict == VerdictApply && b.Blocked() {
			c = b.waiting(c)
		}
		b.plan.Changes = append(b.plan.Changes, c)
		switch {
		case c.Verdict == VerdictApply:
			applied = append(applied, f.Path)
		case c.Verdict == VerdictHold && inTemplate(f.Path):
			templateHeld = true
		}
	}
	if len(applied) == 0 {
		return nil
	}
	if templateHeld {
		if rendered, err = b.keepTemplate(rendered, w.Live); err != nil {
			return err
		}
	}
	b.plan.Steps = append(b.plan.Steps, Apply{
		Object: rendered, Manager: b.manager, Live: w.Live.GetResourceVersion(),
		Reason: "update " + summary(applied),
	})
	return nil
}

// keepTemplate puts in place of the rendered Pod template what we own of the
// live one, so that applying the other fields leaves the Pods alone.
func (b *Builder) keepTemplate(rendered, live client.Object) (client.Object, error) {
	u, err := b.diff.Intent(rendered)
	if err != nil {
		return nil, err
	}
	owned, err := b.diff.Owned(live, b.manager)
	if err != nil {
		return nil, err
	}
	spec, _ := u.Object["spec"].(map[string]any)
	ownedSpec, _ := owned["spec"].(map[string]any)
	delete(spec, "template")
	if t, ok := ownedSpec["template"]; ok {
		spec["template"] = t
	}
	return u, nil
}

func (b *Builder) waiting(c Change) Change {
	c.Verdict, c.Reason, c.Message = VerdictWait, b.barrier.Reason, b.barrier.Message
	return c
}

func (b *Builder) ref(o client.Object) Ref {
	return RefOf(o)
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
	case cause == CauseRevision || cause == CauseClass:
		c.Verdict, c.Reason = VerdictHold, "NeedsConsent"
		c.Message = "the operator renders this differently; nothing moves until it is accepted"
		if !inTemplate(f.Path) && c.Effect == EffectNone {
			c.Verdict, c.Reason, c.Message = VerdictApply, "", ""
		}
	case cause == CauseDrift && inTemplate(f.Path):
		c.Verdict, c.Reason = VerdictHold, "EditedElsewhere"
		c.Message = "somebody else edited the Pod template; restoring it would restart Pods"
	case cause == CauseDrift:
		c.Reason, c.Message = "Restored", "somebody else edited an owned field"
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
