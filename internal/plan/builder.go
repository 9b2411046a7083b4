package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
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
	// Approved tells that a person consented to changes that Rendered holds.
	Approved bool
	// Restart is the effect of a change of a Pod template; EffectRestartPod when
	// it is left empty.
	Restart Effect
	// Says is a sentence about changes of the Pod template, where there is more to say
	// than their effect.
	Says string
	// Update says what an update is for, where that is not told by the fields that
	// it changes.
	Update string
	// Exact has an update refused when Live is not the newest any more.
	Exact bool
	// Silent has no event made of it; see Apply.
	Silent bool
	// Left are fields that differ and stay as they are live, without being said.
	Left func(path string) bool
}

// consents is how many were used up: the count is ours, and only grows.
func (w Want) consents() int { return max(Consents(w.Live), Consents(w.Rendered)) }

// Builder makes a Plan in the order in which its methods are called. After
// Wait, differences are still listed, with the verdict wait, but no steps
// are added: what follows a barrier is planned when the barrier is gone.
type Builder struct {
	diff    *diff.Engine
	manager string
	plan    Plan
	barrier *Wait
	err     error
	// approvals are the digests that a person consents to, and whether a held set
	// had that digest.
	approvals map[string]bool
}

// NewBuilder returns a Builder that compares by engine and applies as manager.
func NewBuilder(engine *diff.Engine, manager string) *Builder {
	return &Builder{diff: engine, manager: manager, approvals: map[string]bool{}}
}

// Plan returns what was built so far. The error is that of the first
// comparison that could not be made, which is a fault of the rendering, not of
// the user. With a refusal among the findings there are no steps, and what
// would have been applied waits for the input to be mended: nobody is asked to
// consent to an edit that is refused. What came about by other things than the
// input stays held.
func (b *Builder) Plan() (Plan, error) {
	p := b.plan
	p.Findings = append(slices.Clone(p.Findings), b.staleApprovals()...)
	refused := p.Refused()
	if len(refused) == 0 {
		return p, b.err
	}
	p.Steps = nil
	p.Changes = slices.Clone(p.Changes)
	for i, c := range p.Changes {
		edited := c.Verdict == VerdictHold && (c.Cause == CauseUser || c.Cause == CauseConfig)
		if c.Verdict == VerdictApply || c.Verdict == VerdictWait || edited {
			c.Verdict, c.Reason, c.Message, c.Approve = VerdictRefuse, refused[0].Reason, refused[0].String(), ""
			p.Changes[i] = c
		}
	}
	return p, b.err
}

// Blocked tells whether a barrier has ended the steps.
func (b *Builder) Blocked() bool { return b.barrier != nil }

// Refused tells whether a refusal was found.
func (b *Builder) Refused() bool { return len(b.plan.Refused()) > 0 }

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
func (b *Builder) Step(c Change, s Step) { b.Carry([]Change{c}, s) }

// Carry adds a step that is not an apply, with the changes it carries out.
func (b *Builder) Carry(changes []Change, s Step) {
	carried := false
	for _, c := range changes {
		if c.Verdict == VerdictApply && b.Blocked() {
			c = b.waiting(c)
		}
		carried = carried || c.Verdict == VerdictApply
		b.plan.Changes = append(b.plan.Changes, c)
	}
	if carried {
		b.add(s)
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
	b.Step(c, Apply{Object: w.Rendered, Manager: b.manager, Silent: w.Silent, Reason: "create: " + w.Reason})
}

func (b *Builder) update(w Want) error {
	rendered, notes, err := settleImmutable(w.Rendered, w.Live)
	if err != nil {
		return err
	}
	used := w.consents()
	if used > 0 {
		rendered = withAnnotation(rendered, meta.AnnotationConsents, strconv.Itoa(used))
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
	u := b.judge(w, fields)
	if len(u.applied) == 0 {
		return nil
	}
	if w.Exact && b.writes(ref) {
		return nil // what is written before it makes another version; it follows when that is seen
	}
	// What is held stays as it is live: the step may not go further than the
	// changes that it carries out.
	intent, err := b.diff.Keep(rendered, w.Live, b.manager, u.held)
	if err != nil {
		return err
	}
	if w.Approved || u.approved {
		intent = withAnnotation(intent, meta.AnnotationConsents, strconv.Itoa(used+1))
	}
	b.plan.Steps = append(b.plan.Steps, Apply{
		Object: intent, Manager: b.manager, Live: w.Live.GetResourceVersion(), UID: w.Live.GetUID(), Exact: w.Exact, Silent: w.Silent,
		Reason: cmp.Or(w.Update, "update "+summary(u.said)),
	})
	return nil
}

// update is what becomes of the differing fields of one object.
type update struct {
	applied []string
	// said are those of applied that are worth saying.
	said []string
	held []diff.Field
	// approved tells that a person consented to some of what is applied.
	approved bool
}

// judge adds the changes of the differing fields and tells which are carried out.
func (b *Builder) judge(w Want, fields []diff.Field) update {
	var u update
	var judged []Change
	var kept []diff.Field // of the judged changes
	for _, f := range fields {
		if w.Left != nil && w.Left(f.Path) {
			u.held = append(u.held, f)
			continue
		}
		c := classify(RefOf(w.Rendered), f, w.cause(f.Path), w.Restart)
		if c.Message == "" && InTemplate(c.Path) {
			c.Message = w.Says
		}
		judged, kept = append(judged, c), append(kept, f)
	}
	u.approved = b.consent(judged, w.consents())
	for i, c := range judged {
		if c.Verdict == VerdictApply && b.Blocked() {
			c = b.waiting(c)
		}
		b.plan.Changes = append(b.plan.Changes, c)
		if c.Verdict != VerdictApply {
			u.held = append(u.held, kept[i])
			continue
		}
		u.applied = append(u.applied, c.Path)
		if !Bookkeeping(c.Path) {
			u.said = append(u.said, c.Path)
		}
	}
	return u
}

// consent gives the held ones among changes the digest of their set, one set for
// each cause, and turns those to which a person consents into ones to apply.
func (b *Builder) consent(changes []Change, used int) (approved bool) {
	held := map[Cause][]Change{}
	for _, c := range changes {
		if c.Verdict == VerdictHold && c.Cause != CauseRuntime {
			held[c.Cause] = append(held[c.Cause], c)
		}
	}
	for i, c := range changes {
		if c.Verdict != VerdictHold || c.Cause == CauseRuntime {
			continue
		}
		changes[i].Approve = Digest(used, held[c.Cause])
		if b.consented(changes[i].Approve) {
			changes[i].Verdict, changes[i].Reason, changes[i].Message, changes[i].Approve = VerdictApply, meta.ReasonApproved, "a person consented", ""
			approved = true
		}
	}
	return approved
}

// withAnnotation returns the object with an annotation more.
func withAnnotation(o client.Object, key, value string) client.Object {
	out, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return o
	}
	annotations := maps.Clone(out.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	out.SetAnnotations(annotations)
	return out
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

// InTemplate tells whether a path of a workload is in its Pod template.
func InTemplate(path string) bool {
	return path == "spec.template" || strings.HasPrefix(path, "spec.template.")
}

// Bookkeeping tells whether a path is one of the annotations, on the object or in
// its Pod template, in which the operator keeps its own records.
func Bookkeeping(path string) bool {
	return strings.HasPrefix(path, `metadata.annotations["`+meta.Prefix) || strings.HasPrefix(path, `spec.template.metadata.annotations["`+meta.Prefix)
}

// classify judges one differing field by the table of default verdicts.
func classify(ref Ref, f diff.Field, cause Cause, restart Effect) Change {
	c := Change{Object: ref, Path: f.Path, From: f.From, To: f.To, Cause: cause, Effect: EffectNone, Verdict: VerdictApply}
	if ref.Kind == "StatefulSet" && InTemplate(f.Path) {
		c.Effect = cmp.Or(restart, EffectRestartPod)
	}
	if Bookkeeping(f.Path) {
		c.From, c.To, c.Reason, c.Message = "", "", "Recorded", "what the operator remembers of the object"
		return c
	}
	switch {
	case cause == CauseRevision:
		c.Verdict, c.Reason = VerdictHold, "NeedsConsent"
		c.Message = "differs from what the operator renders; it stays as it was found until a person accepts"
	case cause == CauseClass:
		c.Verdict, c.Reason = VerdictHold, "NeedsConsent"
		c.Message = "a shared template says this differently; nothing moves until it is accepted"
	case cause == CauseDrift && InTemplate(f.Path):
		c.Verdict, c.Reason = VerdictHold, "EditedElsewhere"
		c.Message = "somebody else edited the Pod template; it stays until a person accepts that it is put back"
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
	if len(paths) == 0 {
		return "what the operator remembers of it"
	}
	if len(paths) <= shown {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:shown], ", "), len(paths)-shown)
}
