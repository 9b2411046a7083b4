// Package kernel is the loop that every data system of Fairlead runs in:
//
//	event or timer ─▶ Observe ─▶ Plan ─▶ Apply ─▶ Report
//
// A system supplies what it observes, what it plans and how it reports; the
// kernel owns everything else: reading the custom resource, pausing, carrying
// out steps, conditions, events, requeueing, and keeping a fault in one object
// away from all others.
//
// One reconcile may go through several passes: after steps without a barrier
// the world is observed again (the client waits until the cache has seen our
// writes), and status is written once, when there is nothing left to do now.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/event"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// Object is a custom resource that the kernel can report on.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
	SetObservedGeneration(int64)
}

// System is everything that the kernel asks of one data system. O is its
// custom resource, W what it observes.
type System[O Object, W any] interface {
	// Observe reads. It changes nothing.
	Observe(ctx context.Context, r observe.Reader, obj O) (W, error)
	// Plan decides. It is pure: the same input gives the same plan. An error is
	// a fault of the rendering, not of the input; that is a finding.
	Plan(obj O, world W, now time.Time) (plan.Plan, error)
	// Execute carries out one operation on the data system.
	Execute(ctx context.Context, world W, op plan.Operation) error
	// Report fills the system's own status fields of obj, a copy, and says how
	// the system is. It is pure.
	Report(obj O, world W, p plan.Plan, now time.Time) status.Health
}

// maxPasses bounds the passes of one reconcile: a plan that never settles must
// not hold a worker for ever. The rest is left to the next event.
const maxPasses = 8

// Reconciler runs one System.
type Reconciler[O Object, W any] struct {
	system  System[O, W]
	empty   func() O
	client  client.Reader
	cache   client.Reader
	refs    *observe.References
	writer  *apply.Writer
	emit    func(O, event.Event)
	now     func() time.Time
	metrics *metrics
}

// run is the state of one reconcile of one object.
type run[O Object, W any] struct {
	obj      O
	world    W
	observed bool
	plan     plan.Plan
	failure  *status.Failure
	done     []event.Event
	writes   int
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler[O, W]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.empty()
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.refs.Forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading %q: %w", req.NamespacedName, err)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		// Owned objects go by garbage collection; claims stay.
		r.refs.Forget(req.NamespacedName)
		r.writer.Forget(obj.GetUID())
		return reconcile.Result{}, nil
	}
	start := r.now()
	rn := &run[O, W]{obj: obj}
	r.passes(ctx, req.NamespacedName, rn)
	err := r.report(ctx, rn)
	r.log(ctx, rn, start)
	r.metrics.reconciled(rn.outcome(), r.now().Sub(start))
	return r.result(rn, err)
}

// passes observes, plans and applies until nothing is left to do now.
func (r *Reconciler[O, W]) passes(ctx context.Context, key types.NamespacedName, rn *run[O, W]) {
	lease := r.refs.Lease(key)
	defer lease.Close()
	defer func() {
		if p := recover(); p != nil {
			logf.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "reconcile panicked", "stack", string(debug.Stack()))
			rn.failure = &status.Failure{Reason: meta.ReasonInternalError, Permanent: true, Err: fmt.Errorf("the operator failed on this object: %v", p)}
		}
	}()
	reader := observe.Cached{Client: r.client, Cache: r.cache, References: lease, Owner: key}
	for range maxPasses {
		if !r.pass(ctx, reader, rn) {
			return
		}
	}
}

// pass makes one round and tells whether another may find more to do.
func (r *Reconciler[O, W]) pass(ctx context.Context, reader observe.Reader, rn *run[O, W]) bool {
	world, err := r.system.Observe(ctx, reader, rn.obj)
	if err != nil {
		rn.failure = &status.Failure{Reason: meta.ReasonObserveFailed, Err: err}
		return false
	}
	rn.world, rn.observed = world, true
	p, err := r.system.Plan(rn.obj, world, r.now())
	if err != nil {
		rn.failure = &status.Failure{Reason: meta.ReasonInternalError, Err: err, Permanent: true}
		return false
	}
	rn.plan = p
	if meta.Paused(rn.obj.GetAnnotations()) {
		return false
	}
	if err := p.Covered(); err != nil {
		rn.failure = &status.Failure{Reason: meta.ReasonInternalError, Err: err, Permanent: true}
		return false
	}
	return r.execute(ctx, rn)
}

// execute carries out the steps up to the barrier. It tells whether anything
// was written and no barrier ended the steps.
func (r *Reconciler[O, W]) execute(ctx context.Context, rn *run[O, W]) bool {
	wrote := false
	for _, step := range rn.plan.Steps {
		if _, waits := step.(plan.Wait); waits {
			return wrote
		}
		did, err := r.step(ctx, rn, step)
		if did {
			rn.writes++
			wrote = true
		}
		if err != nil {
			rn.failure = failureOf(err)
			return false
		}
	}
	return wrote
}

func (r *Reconciler[O, W]) step(ctx context.Context, rn *run[O, W], step plan.Step) (did bool, err error) {
	did = true
	var ev event.Event
	switch s := step.(type) {
	case plan.Apply:
		did, err = r.writer.Apply(ctx, rn.obj, s)
		ev = event.Updated(s.Target(), s.Reason)
		if s.Live == "" {
			ev = event.Created(s.Target())
		}
	case plan.Delete:
		err, ev = r.writer.Delete(ctx, s), event.Deleted(s.Target(), s.Reason)
	case plan.Evict:
		err, ev = r.writer.Evict(ctx, s), event.Evicted(s.Target(), s.Reason)
	case plan.Call:
		err, ev = r.system.Execute(ctx, rn.world, s.Operation), event.Called(s.Operation.Describe())
	default:
		return false, fmt.Errorf("unknown step %T", step)
	}
	if did && err == nil {
		rn.done = append(rn.done, ev)
	}
	return did, err
}

func failureOf(err error) *status.Failure {
	return &status.Failure{Reason: meta.ReasonApplyFailed, Err: err, Permanent: apply.Permanent(err)}
}

// report writes the status where it differs, and emits what happened.
func (r *Reconciler[O, W]) report(ctx context.Context, rn *run[O, W]) error {
	for _, e := range rn.done {
		r.emit(rn.obj, e)
	}
	if rn.failure != nil && apierrors.IsConflict(rn.failure.Err) {
		return rn.failure.Err
	}
	now, ok := rn.obj.DeepCopyObject().(O)
	if !ok {
		return fmt.Errorf("a copy of %T has another type", rn.obj)
	}
	in := status.Input{
		Generation: rn.obj.GetGeneration(), Now: r.now(), Plan: rn.plan,
		Failure: rn.failure, Paused: meta.Paused(rn.obj.GetAnnotations()),
	}
	if rn.observed {
		in.Health = r.health(ctx, now, rn)
		if in.Failure == nil {
			in.Failure = rn.failure
		}
	}
	now.SetConditions(status.Conditions(rn.obj.GetConditions(), in))
	now.SetObservedGeneration(rn.obj.GetGeneration())
	for _, e := range transitions(rn.obj.GetConditions(), now.GetConditions()) {
		r.emit(rn.obj, e)
	}
	if reflect.DeepEqual(rn.obj, now) {
		return nil
	}
	rn.writes++
	return r.writer.Status(ctx, rn.obj, now)
}

// health asks the system, and turns a panic in its answer into a failure.
func (r *Reconciler[O, W]) health(ctx context.Context, now O, rn *run[O, W]) (h *status.Health) {
	defer func() {
		if p := recover(); p != nil {
			logf.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "report panicked", "stack", string(debug.Stack()))
			rn.failure = &status.Failure{Reason: meta.ReasonInternalError, Permanent: true, Err: fmt.Errorf("the operator failed on this object: %v", p)}
			h = nil
		}
	}()
	got := r.system.Report(now, rn.world, rn.plan, r.now())
	return &got
}

// result derives when to come back: an error backs off, the soonest wait
// without an event sets a timer, everything else is left to events.
func (r *Reconciler[O, W]) result(rn *run[O, W], reportErr error) (reconcile.Result, error) {
	if rn.failure != nil {
		if apierrors.IsConflict(rn.failure.Err) {
			return reconcile.Result{RequeueAfter: conflictRetry}, nil
		}
		return reconcile.Result{}, rn.failure.Err
	}
	if reportErr != nil {
		return reconcile.Result{}, reportErr
	}
	var soonest time.Duration
	for _, w := range rn.plan.Waits() {
		if w.Recheck > 0 && (soonest == 0 || w.Recheck < soonest) {
			soonest = w.Recheck
		}
	}
	return reconcile.Result{RequeueAfter: soonest}, nil
}

// conflictRetry is how soon a lost race is tried again on fresh data.
const conflictRetry = 50 * time.Millisecond

func (rn *run[O, W]) outcome() string {
	switch {
	case rn.failure != nil && rn.failure.Permanent:
		return "stalled"
	case rn.failure != nil:
		return "failed"
	case len(rn.plan.Refused()) > 0:
		return "refused"
	case !rn.plan.Settled():
		return "progressing"
	}
	return "settled"
}

func (r *Reconciler[O, W]) log(ctx context.Context, rn *run[O, W], start time.Time) {
	l := logf.FromContext(ctx)
	args := []any{"outcome", rn.outcome(), "writes", rn.writes, "took", r.now().Sub(start).Round(time.Millisecond).String()}
	if waits := rn.plan.Waits(); len(waits) > 0 {
		args = append(args, "waitsFor", waits[0].Message)
	}
	if held := len(rn.plan.Held()); held > 0 {
		args = append(args, "held", held)
	}
	if rn.writes == 0 && rn.failure == nil {
		l = l.V(1)
	}
	l.Info("reconciled", args...)
}

// transitions are the events that follow from changed conditions.
func transitions(before, after []metav1.Condition) []event.Event {
	var out []event.Event
	if c, changed := turnedTrue(before, after, meta.ConditionStalled); changed {
		out = append(out, event.Stalled(c.Reason, c.Message))
	}
	if c, changed := turnedTrue(before, after, meta.ConditionChangePending); changed {
		out = append(out, event.ChangesHeld(c.Message))
	}
	if _, changed := turnedTrue(before, after, meta.ConditionReady); changed {
		out = append(out, event.Ready())
	}
	return out
}

// turnedTrue finds a condition that is True now and was not, or whose message
// says something new.
func turnedTrue(before, after []metav1.Condition, kind string) (metav1.Condition, bool) {
	now, was := find(after, kind), find(before, kind)
	if now.Status != metav1.ConditionTrue {
		return now, false
	}
	return now, was.Status != metav1.ConditionTrue || (kind != meta.ConditionReady && was.Message != now.Message)
}

func find(list []metav1.Condition, kind string) metav1.Condition {
	for _, c := range list {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// errNoCRD says that the kind is not served (yet).
var errNoCRD = errors.New("the API server does not serve this kind")
