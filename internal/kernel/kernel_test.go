package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/event"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// thing is a custom resource that is nothing but its conditions.
type thing struct {
	corev1.ConfigMap
	conditions []metav1.Condition
	observed   int64
}

func (c *thing) GetConditions() []metav1.Condition  { return c.conditions }
func (c *thing) SetConditions(l []metav1.Condition) { c.conditions = l }
func (c *thing) SetObservedGeneration(g int64)      { c.observed = g }
func (c *thing) DeepCopyObject() runtime.Object {
	out := *c
	c.DeepCopyInto(&out.ConfigMap)
	out.conditions = slices.Clone(c.conditions)
	return &out
}

// double is a test double of everything around the kernel: one custom
// resource, a system that says what the test says, a writer that fails as told.
type double struct {
	stored  *thing
	plans   []plan.Plan // one for each pass; the last one stays
	planned int
	onPatch func()
	seen    []string // the version of the object in each pass
	observe func(context.Context) error
	fail    map[string]error // by verb; "status" included
	health  status.Health
	did     []string
	events  []event.Event
	now     time.Time
	// gone is what the API server says of the custom resource, and asked how often.
	gone  bool
	asked int
}

func newDouble(plans ...plan.Plan) *double {
	well := status.Verdict{True: true, Reason: "Well"}
	return &double{
		stored: &thing{ConfigMap: corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", Generation: 3}}},
		plans:  plans, fail: map[string]error{}, health: status.Health{Available: well, Complete: well}, now: time.Unix(1e6, 0),
	}
}

func (d *double) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	t, ok := into.(*thing)
	if !ok || d.stored == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "n")
	}
	*t = *d.stored.DeepCopyObject().(*thing)
	return nil
}

func (d *double) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (d *double) Observe(ctx context.Context, _ observe.Reader, _ *thing) (int, error) {
	if d.observe != nil {
		return 0, d.observe(ctx)
	}
	return 0, nil
}

func (d *double) Plan(t *thing, _ int, _ time.Time) (plan.Plan, error) {
	d.seen = append(d.seen, t.ResourceVersion)
	i := min(d.planned, len(d.plans)-1)
	d.planned++
	if i < 0 {
		return plan.Plan{}, nil
	}
	return d.plans[i], nil
}

func (d *double) Execute(context.Context, int, plan.Operation) error     { return d.note("call") }
func (d *double) Report(*thing, int, plan.Plan, time.Time) status.Health { return d.health }
func (d *double) Delete(context.Context, plan.Delete) error              { return d.note("delete") }

func (d *double) Alive(context.Context, client.Object) (bool, error) {
	d.asked++
	return !d.gone, d.fail["alive"]
}

func (d *double) Patch(_ context.Context, p plan.Patch) error {
	if _, is := p.Object.(*thing); is && d.stored != nil {
		d.stored.ResourceVersion += "+"
	}
	if d.onPatch != nil {
		d.onPatch()
	}
	return d.note("patch")
}

func (d *double) Adopt(context.Context, plan.Adopt) error { return d.note("adopt") }

func (d *double) Disown(context.Context, plan.Disown) error { return d.note("disown") }

func (d *double) Create(context.Context, client.Object, plan.Create) error { return d.note("create") }

func (d *double) Evict(context.Context, plan.Evict) error { return d.note("evict") }
func (d *double) Forget(types.NamespacedName)             { _ = d.note("forget") }
func (d *double) Apply(context.Context, client.Object, plan.Apply) (bool, error) {
	return d.wrote("apply")
}

func (d *double) Status(_ context.Context, _, now client.Object) (bool, error) {
	wrote, err := d.wrote("status")
	if t, ok := now.(*thing); ok && err == nil {
		d.stored = t
	}
	return wrote, err
}

func (d *double) note(verb string) error {
	d.did = append(d.did, verb)
	return d.fail[verb]
}

func (d *double) wrote(verb string) (bool, error) {
	err := d.note(verb)
	var contested *apply.ContestedError
	return !errors.As(err, &contested), err
}

func (d *double) reconciler() *Reconciler[*thing, int] {
	return NewReconciler(Parts[*thing, int]{
		Name: "double", System: d, New: func() *thing { return &thing{} }, Client: d, Cache: d,
		References: observe.NewReferences(d, func(types.NamespacedName) {}), Writer: d,
		Emit: func(_ *thing, e event.Event) { d.events = append(d.events, e) }, Now: func() time.Time { return d.now }, Timeout: 100 * time.Millisecond,
	})
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "n"}}

func (d *double) told(kind string) string {
	for _, c := range d.stored.conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

func (d *double) reasons() (out []string) {
	for _, e := range d.events {
		out = append(out, e.Reason)
	}
	return out
}

var (
	target   = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	allowed  = plan.Change{Object: plan.RefOf(target), Verdict: plan.VerdictApply}
	conflict = apierrors.NewConflict(schema.GroupResource{}, "p", errors.New("it changed"))
)

type operation struct{}

func (operation) Describe() string { return "ask" }

// steps is a plan of these steps, all on the target.
func steps(list ...plan.Step) plan.Plan {
	return plan.Plan{Changes: []plan.Change{allowed}, Steps: list}
}

var (
	applyIt  = plan.Apply{Object: target, Live: "1", Reason: "update it"}
	createIt = plan.Apply{Object: target, Reason: "create it"}
	deleteIt = plan.Delete{Object: target}
	evictIt  = plan.Evict{Pod: target}
	callIt   = plan.Call{On: plan.RefOf(target), Operation: operation{}}
	waitFor  = plan.Wait{On: plan.RefOf(target), Reason: "Waiting", Message: "for it", Recheck: 7 * time.Second}
)

func silent(step plan.Step) plan.Step {
	apply := step.(plan.Apply)
	apply.Silent = true
	return apply
}

func TestReconcile(t *testing.T) {
	for _, tc := range []struct {
		name   string
		double *double
		fail   map[string]error
		did    []string
		events []string
		after  time.Duration // requeue; -1 for an error that backs off
		ready  string
	}{
		{name: "nothing to do", double: newDouble(), did: []string{"status"}, events: []string{"Ready"}, ready: "True Reconciled as the spec wants it"},
		{
			name: "steps, then nothing more", double: newDouble(steps(createIt, applyIt, deleteIt, evictIt, callIt), plan.Plan{}),
			did: []string{"apply", "apply", "delete", "evict", "call", "status"}, events: []string{"Created", "Updated", "Deleted", "Evicted", "Called", "Ready"}, ready: "True Reconciled as the spec wants it",
		},
		{
			name: "notes of what was observed have no event", double: newDouble(steps(silent(applyIt), silent(createIt)), plan.Plan{}),
			did: []string{"apply", "apply", "status"}, events: []string{"Ready"}, ready: "True Reconciled as the spec wants it",
		},
		{
			name: "a step behind nothing, then a barrier", double: newDouble(steps(applyIt, waitFor), steps(waitFor)),
			did: []string{"apply", "status"}, events: []string{"Updated"}, after: 7 * time.Second, ready: "False Waiting for it",
		},
		{name: "a barrier alone needs no second pass", double: newDouble(steps(waitFor)), did: []string{"status"}, after: 7 * time.Second, ready: "False Waiting for it"},
		{
			name: "steps that leave the changes are not taken", double: newDouble(plan.Plan{Steps: []plan.Step{applyIt}}),
			did: []string{"status"}, events: []string{"InternalError"}, after: -1, ready: "False InternalError step on Pod/p (update it) has no change to apply",
		},
		{
			name: "failed step ends the pass and is told", double: newDouble(steps(applyIt, deleteIt)), fail: map[string]error{"apply": errors.New("no")},
			did: []string{"apply", "status"}, after: -1, ready: "False ApplyFailed no",
		},
		{
			name: "forbidden step stalls", double: newDouble(steps(deleteIt)), fail: map[string]error{"delete": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("no"))},
			did: []string{"delete", "status"}, events: []string{"ApplyFailed"}, after: -1, ready: `False ApplyFailed pods "p" is forbidden: no`,
		},
		{
			name: "step that the account has no right to stalls and says how it goes on", double: newDouble(steps(deleteIt)),
			fail: map[string]error{"delete": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(`User "u" cannot delete resource "pods" in API group "" in the namespace "n"`))},
			did:  []string{"delete", "status"}, events: []string{"ApplyFailed"}, after: -1,
			ready: `False ApplyFailed pods "p" is forbidden: User "u" cannot delete resource "pods" in API group "" in the namespace "n": the operator's account lacks this right; grant it (config/rbac, and rbac.create of the chart, have all that it needs), and it goes on by itself within about a minute`,
		},
		{
			name: "conflict is silent and soon tried again", double: newDouble(steps(deleteIt)), fail: map[string]error{"delete": fmt.Errorf("deleting: %w", conflict)},
			did: []string{"delete"}, after: 20 * time.Millisecond,
		},
		{
			name: "refused eviction waits and names the budget", double: newDouble(steps(evictIt)), fail: map[string]error{"evict": &apply.BlockedError{Pod: plan.RefOf(target), Message: "budget says no"}},
			did: []string{"evict", "status"}, after: blockedRetry, ready: "False DisruptionBudget evicting Pod/p: budget says no",
		},
		{
			name: "namespace that is being deleted is left alone", double: newDouble(steps(applyIt)), fail: map[string]error{"apply": fmt.Errorf("applying: %w", terminating())},
			did: []string{"apply", "status"}, ready: "False NamespaceTerminating the namespace is being deleted",
		},
		{
			name: "contested step keeps no other from being taken", double: newDouble(steps(applyIt, deleteIt), steps(applyIt)), fail: map[string]error{"apply": &apply.ContestedError{Object: plan.RefOf(target), What: "x", RetryAfter: time.Minute}},
			did: []string{"apply", "delete", "apply", "status"}, events: []string{"Deleted", "Contested"}, after: time.Minute, ready: "False Contested Pod/p: somebody else keeps changing what the operator sets (x)",
		},
		{
			name: "call that is not done is told by nothing but the next observation", double: newDouble(steps(callIt, deleteIt), steps(waitFor)), fail: map[string]error{"call": &plan.NotDoneError{Reason: "x"}},
			did: []string{"call", "delete", "status"}, events: []string{"Deleted"}, after: 7 * time.Second, ready: "False Waiting for it",
		},
		{name: "events of conditions follow the write", double: newDouble(), fail: map[string]error{"status": errors.New("no")}, did: []string{"status"}, after: -1},
		{
			name: "status that may not be written is told by an event", double: newDouble(), fail: map[string]error{"status": apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "n", errors.New("no"))},
			did: []string{"status"}, events: []string{"NotReported"}, after: -1,
		},
		{name: "conflict of the status is silent", double: newDouble(), fail: map[string]error{"status": conflict}, did: []string{"status"}, after: 20 * time.Millisecond},
		{
			name: "plan that never settles rests", double: newDouble(steps(applyIt)), did: append(slices.Repeat([]string{"apply"}, maxPasses), "status"),
			events: slices.Repeat([]string{"Updated"}, maxPasses), after: time.Second, ready: "False NotSettling there was still something to do after 8 rounds; last: Pod/p: update it",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := tc.double
			if tc.fail != nil {
				d.fail = tc.fail
			}
			res, err := d.reconciler().Reconcile(t.Context(), request)
			if (tc.after < 0) != (err != nil) {
				t.Errorf("error = %v", err)
			}
			if res.RequeueAfter != max(tc.after, 0) {
				t.Errorf("comes back after %s, want %s", res.RequeueAfter, tc.after)
			}
			if d := cmp.Diff(tc.did, d.did); d != "" {
				t.Errorf("did (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.events, d.reasons()); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
			if got := d.told(meta.ConditionReady); got != tc.ready {
				t.Errorf("Ready = %q, want %q", got, tc.ready)
			}
		})
	}
}

func TestStatusOfAnUnchangedWorldIsWrittenOnce(t *testing.T) {
	d := newDouble()
	r := d.reconciler()
	for range 5 {
		d.now = d.now.Add(time.Hour)
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"status"}, d.did); d != "" {
		t.Errorf("did (-want +got):\n%s", d)
	}
	if d.stored.observed != 3 {
		t.Errorf("observed generation %d, want 3", d.stored.observed)
	}
}

// What is noted on the object itself is seen by the next plan of the same reconcile, so
// that a note is neither made again nor taken for missing.
func TestTheObjectIsReadAgainAfterANoteOnIt(t *testing.T) {
	noteOn := func(o client.Object) plan.Plan {
		return plan.Plan{Changes: []plan.Change{{Object: plan.RefOf(o), Verdict: plan.VerdictApply}}, Steps: []plan.Step{plan.Patch{Object: o}}}
	}
	for name, c := range map[string]struct {
		plans    []plan.Plan
		goes     bool
		did, saw []string
	}{
		"a note on the object": {
			plans: []plan.Plan{noteOn(newDouble().stored), steps(applyIt), {}},
			did:   []string{"patch", "apply", "status"}, saw: []string{"1", "1+", "1+"},
		},
		"a note on something else": {
			plans: []plan.Plan{noteOn(target), {}},
			did:   []string{"patch", "status"}, saw: []string{"1", "1"},
		},
		"an object that goes meanwhile is planned for no more": {
			plans: []plan.Plan{noteOn(newDouble().stored), steps(applyIt)}, goes: true,
			did: []string{"patch", "forget", "forget"}, saw: []string{"1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(c.plans...)
			d.stored.ResourceVersion = "1"
			if c.goes {
				d.onPatch = func() { d.stored = nil }
			}
			if _, err := d.reconciler().Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.did, d.did); diff != "" {
				t.Errorf("did (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.saw, d.seen); diff != "" {
				t.Errorf("versions that were planned for (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectThatIsGoneOrGoingIsForgottenAndNotWrittenTo(t *testing.T) {
	for name, arrange := range map[string]func(*double){
		"gone":  func(d *double) { d.stored = nil },
		"going": func(d *double) { d.stored.DeletionTimestamp = &metav1.Time{Time: d.now} },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(steps(applyIt))
			arrange(d)
			res, err := d.reconciler().Reconcile(t.Context(), request)
			if err != nil || res != (reconcile.Result{}) {
				t.Errorf("result %+v, %v", res, err)
			}
			// By the writer and by the system, which the double both is.
			if d := cmp.Diff([]string{"forget", "forget"}, d.did); d != "" {
				t.Errorf("did (-want +got):\n%s", d)
			}
		})
	}
}

// A cache may show a custom resource that is gone: nothing is made for it, and nothing
// is said of it.
func TestNothingIsMadeForAnObjectThatIsGone(t *testing.T) {
	created := plan.Create{Object: target, Reason: "create it"}
	for _, tc := range []struct {
		name  string
		steps []plan.Step
		gone  bool
		fail  error
		did   []string
		asked int
	}{
		{name: "apply of a new object", steps: []plan.Step{applyIt, createIt}, gone: true, did: []string{"apply", "forget", "forget"}, asked: 1},
		{name: "create", steps: []plan.Step{applyIt, created}, gone: true, did: []string{"apply", "forget", "forget"}, asked: 1},
		{name: "delete needs no asking", steps: []plan.Step{applyIt, deleteIt}, gone: true, did: []string{"apply", "delete", "status"}},
		{name: "once for all that is made", steps: []plan.Step{applyIt, created, createIt}, did: []string{"apply", "create", "apply", "status"}, asked: 1},
		{name: "an answer that fails", steps: []plan.Step{applyIt, created}, fail: errors.New("no answer"), did: []string{"apply", "status"}, asked: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDouble(steps(tc.steps...), plan.Plan{})
			d.gone, d.fail["alive"] = tc.gone, tc.fail
			if _, err := d.reconciler().Reconcile(t.Context(), request); (err != nil) != (tc.fail != nil) {
				t.Errorf("error = %v", err)
			}
			if diff := cmp.Diff(tc.did, d.did); diff != "" {
				t.Errorf("did (-want +got):\n%s", diff)
			}
			if d.asked != tc.asked {
				t.Errorf("asked %d times, want %d", d.asked, tc.asked)
			}
		})
	}
}

func TestHangingObservationIsEndedAndStillReported(t *testing.T) {
	d := newDouble()
	d.observe = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	if _, err := d.reconciler().Reconcile(t.Context(), request); err == nil {
		t.Error("no error to back off for")
	}
	if got, want := d.told(meta.ConditionReconciling), "True ObserveFailed gave up after 100ms: context deadline exceeded"; got != want {
		t.Errorf("Reconciling = %q, want %q", got, want)
	}
}

func TestRestlessObjectRestsLongerEachTimeUnlessItsSpecChanges(t *testing.T) {
	d := newDouble(steps(applyIt))
	r := d.reconciler()
	come := func() (time.Duration, int) {
		d.did = nil
		res, err := r.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return res.RequeueAfter, len(d.did)
	}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		rest, did := come()
		if rest != want || did < maxPasses {
			t.Fatalf("rests %s after %d actions, want %s", rest, did, want)
		}
		d.now = d.now.Add(rest / 2)
		if rest, did = come(); rest != want/2 || did != 0 {
			t.Fatalf("woken while it rests: rests %s after %d actions, want %s more and none", rest, did, want/2)
		}
		d.now = d.now.Add(rest)
	}
	come()
	d.stored.Generation++
	if _, did := come(); did < maxPasses {
		t.Error("a new spec is not tried at once")
	}
	d.plans = []plan.Plan{{}}
	d.now = d.now.Add(time.Hour)
	come()
	d.plans = []plan.Plan{steps(applyIt)}
	if rest, _ := come(); rest != time.Second {
		t.Errorf("rests %s although it was settled in between, want 1s", rest)
	}
}

func TestConflictsBackOff(t *testing.T) {
	d := newDouble(steps(deleteIt))
	d.fail["delete"] = conflict
	r := d.reconciler()
	last := time.Duration(0)
	for range 8 {
		res, err := r.Reconcile(t.Context(), request)
		if err != nil || res.RequeueAfter <= last {
			t.Fatalf("comes back after %s, last time %s; error %v", res.RequeueAfter, last, err)
		}
		last = res.RequeueAfter
	}
	d.fail = map[string]error{}
	d.plans = []plan.Plan{{}}
	if res, err := r.Reconcile(t.Context(), request); err != nil || res.RequeueAfter != 0 {
		t.Errorf("result %+v, %v after the conflict", res, err)
	}
}

func TestMoreThanStatus(t *testing.T) {
	base := func() *thing {
		return &thing{ConfigMap: corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 1, ResourceVersion: "1", Annotations: map[string]string{"a": "1"}}}}
	}
	for _, tc := range []struct {
		name   string
		change func(*thing)
		want   bool
	}{
		{"status alone", func(c *thing) { c.ResourceVersion, c.conditions = "2", []metav1.Condition{{Type: "Ready"}} }, false},
		{"spec", func(c *thing) { c.Generation = 2 }, true},
		{"annotation", func(c *thing) { c.Annotations["a"] = "2" }, true},
		{"label", func(c *thing) { c.Labels = map[string]string{"l": ""} }, true},
		{"deletion", func(c *thing) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		{"made again under the same name", func(c *thing) { c.UID = "v" }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := base()
			tc.change(now)
			if got := moreThanStatus(ctrlevent.UpdateEvent{ObjectOld: base(), ObjectNew: now}); got != tc.want {
				t.Errorf("moreThanStatus = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTransitionsTellWhatIsNew(t *testing.T) {
	list := func(kind string, s metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: s, Reason: "R", Message: message}}
	}
	for _, tc := range []struct {
		name          string
		before, after []metav1.Condition
		want          []string
	}{
		{"turns ready", nil, list(meta.ConditionReady, metav1.ConditionTrue, "x"), []string{"Ready"}},
		{"stays ready with another message", list(meta.ConditionReady, metav1.ConditionTrue, "x"), list(meta.ConditionReady, metav1.ConditionTrue, "y"), nil},
		{"stalls", nil, list(meta.ConditionStalled, metav1.ConditionTrue, "x"), []string{"R"}},
		{"stays stalled", list(meta.ConditionStalled, metav1.ConditionTrue, "x"), list(meta.ConditionStalled, metav1.ConditionTrue, "x"), nil},
		{"stalls for another reason", list(meta.ConditionStalled, metav1.ConditionTrue, "x"), list(meta.ConditionStalled, metav1.ConditionTrue, "y"), []string{"R"}},
		{"goes on", list(meta.ConditionStalled, metav1.ConditionTrue, "x"), nil, nil},
		{"changes are held", nil, list(meta.ConditionChangePending, metav1.ConditionTrue, "x"), []string{"ChangesHeld"}},
		{"other changes are held", list(meta.ConditionChangePending, metav1.ConditionTrue, "x"), list(meta.ConditionChangePending, metav1.ConditionTrue, "y"), []string{"ChangesHeld"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, e := range transitions(tc.before, tc.after) {
				got = append(got, e.Reason)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
		})
	}
}

func TestKeepOwnDropsOtherManagers(t *testing.T) {
	apply, update := metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "other", Operation: apply}, {Manager: "ours", Operation: apply}, {Manager: "ours", Operation: update}, {Manager: "ours", Operation: apply, Subresource: "scale"},
	}}, Data: map[string]string{"k": "v"}}
	for range 2 { // a transform may see its own result again
		got, err := keepOwn("ours")(cm)
		if err != nil {
			t.Fatal(err)
		}
		want := []metav1.ManagedFieldsEntry{{Manager: "ours", Operation: apply}, {Manager: "ours", Operation: apply, Subresource: "scale"}}
		if d := cmp.Diff(want, cm.ManagedFields); d != "" || got != any(cm) || cm.Data["k"] != "v" {
			t.Errorf("managed fields (-want +got):\n%s", d)
		}
	}
	if got, err := keepOwn("ours")("other"); got != "other" || err != nil {
		t.Errorf("something else became %v, %v", got, err)
	}
}

func TestKeepAuthorsKeepsWhoWroteTheSpec(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl-edit"}, {Manager: "ours", Subresource: "status"}, {Manager: "argo", Operation: metav1.ManagedFieldsOperationApply},
	}}}
	if _, err := keepAuthors(cm); err != nil {
		t.Fatal(err)
	}
	want := []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit"}, {Manager: "argo", Operation: metav1.ManagedFieldsOperationApply}}
	if d := cmp.Diff(want, cm.ManagedFields); d != "" {
		t.Errorf("managed fields (-want +got):\n%s", d)
	}
	if got, err := keepAuthors("other"); got != "other" || err != nil {
		t.Errorf("something else became %v, %v", got, err)
	}
}

func TestSlimPodKeepsWhatItIsJudgedBy(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec: corev1.PodSpec{
			NodeName: "node", Volumes: []corev1.Volume{{Name: "v"}},
			Containers:     []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "r"}}}}},
			InitContainers: []corev1.Container{{Name: "d", Image: "j", Command: []string{"x"}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady}}},
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}},
		Spec: corev1.PodSpec{
			NodeName:       "node",
			Containers:     []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "r"}}}}},
			InitContainers: []corev1.Container{{Name: "d", Image: "j"}},
		},
		Status: pod.Status,
	}
	got, err := slimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(any(want), got); d != "" {
		t.Errorf("pod (-want +got):\n%s", d)
	}
	if got, err := slimPod("other"); got != "other" || err != nil {
		t.Errorf("something else became %v, %v", got, err)
	}
}

// terminating is how the API server answers a creation in a namespace that is
// being deleted.
func terminating() error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("because it is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// TestFailureIsLoggedWithItsText reads the log line of a reconcile that failed.
func TestFailureIsLoggedWithItsText(t *testing.T) {
	var said strings.Builder
	log := funcr.New(func(_, args string) { said.WriteString(args + "\n") }, funcr.Options{})
	d := newDouble(steps(applyIt))
	d.fail = map[string]error{"apply": errors.New("the disk is full")}
	_, _ = d.reconciler().Reconcile(logf.IntoContext(t.Context(), log), request)
	if got := said.String(); !strings.Contains(got, `"outcome"="failed"`) || !strings.Contains(got, `"error"="the disk is full"`) || !strings.Contains(got, `"reason"="ApplyFailed"`) {
		t.Errorf("the log says %s", got)
	}
}
