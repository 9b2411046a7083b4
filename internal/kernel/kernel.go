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
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-dev/fairlead/api/meta"
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

// Explainer is a System that can put a refusal of the API server into the words of
// its custom resource. It returns nothing where it cannot.
type Explainer[O Object] interface {
	Explain(obj O, applied client.Object, err error) []plan.Finding
}

// Rememberer is a System that keeps something in memory for an object, until it is
// told that the object is gone.
type Rememberer interface {
	Forget(owner types.NamespacedName)
}

// Wakeable is a System that learns things beside the reconciles and has an object
// reconciled then. It is told by whom, for each namespace that the operator works
// in, or once with an empty one.
type Wakeable interface {
	WakeBy(namespace string, wake func(types.NamespacedName))
}

// Writer carries out what was planned; *apply.Writer is the real one.
type Writer interface { //nolint:interfacebloat // one method for each kind of write
	// Alive tells whether the owner is there and stays, by the API server.
	Alive(ctx context.Context, owner client.Object) (bool, error)
	// Apply and Status tell whether a request was made.
	Apply(ctx context.Context, owner client.Object, step plan.Apply) (bool, error)
	Create(ctx context.Context, owner client.Object, step plan.Create) error
	Patch(ctx context.Context, step plan.Patch) error
	Adopt(ctx context.Context, step plan.Adopt) error
	Disown(ctx context.Context, step plan.Disown) error
	Delete(ctx context.Context, step plan.Delete) error
	Evict(ctx context.Context, step plan.Evict) error
	Status(ctx context.Context, before, now client.Object) (bool, error)
	// Forget drops what is remembered for an owner that is gone.
	Forget(owner types.NamespacedName)
}

// maxPasses bounds the passes of one reconcile: a plan that never settles must
// not hold a worker for ever.
const maxPasses = 8

// Parts are what a Reconciler works with.
type Parts[O Object, W any] struct {
	// Name of the system, for metrics.
	Name   string
	System System[O, W]
	// New returns an empty custom resource.
	New func() O
	// Client reads and waits for our own writes to appear; Cache reads what is there.
	Client, Cache client.Reader
	References    *observe.References
	Writer        Writer
	Emit          func(O, event.Event)
	Now           func() time.Time
	// Rival tells whether another operator is at work; nil when there can be none.
	Rival *observe.Rival
	// Timeout bounds observing, planning and applying. What is left of the
	// reconcile's own deadline after it is for the report.
	Timeout time.Duration
}

// Reconciler runs one System.
type Reconciler[O Object, W any] struct {
	Parts[O, W]
	conflicts workqueue.TypedRateLimiter[reconcile.Request]
	restless  *restless
	rivalry   *rivalry
	metrics   metrics
}

// NewReconciler returns a Reconciler of the parts, all of which are needed.
func NewReconciler[O Object, W any](p Parts[O, W]) *Reconciler[O, W] {
	return &Reconciler[O, W]{
		Parts:     p,
		conflicts: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, time.Minute),
		restless:  newRestless(p.Now),
		rivalry:   newRivalry(p.Now),
		metrics:   metrics{system: p.Name},
	}
}

// run is the state of one reconcile of one object.
type run[O Object, W any] struct {
	obj   O
	world W
	plan  plan.Plan
	// observed and planned tell that world and plan are of the last pass.
	observed, planned bool
	failure           *status.Failure
	// retry is when a step that was contested, or refused apart, is due again; zero
	// when there is none. apart is the failure of the latter.
	retry time.Duration
	apart *status.Failure
	// alive and gone are what the API server said of obj before the first object
	// was made for it.
	alive, gone bool
	done        []event.Event
	writes      int
	// noted tells that something was written on the object itself.
	noted bool
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler[O, W]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading %q: %w", req.NamespacedName, err)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		// Owned objects go by garbage collection; claims stay.
		r.forget(req)
		return reconcile.Result{}, nil
	}
	if holder := r.Rival.Holder(); holder != "" {
		return r.yield(ctx, req, obj, holder)
	}
	r.rivalry.forget(req)
	if wait := r.restless.pause(req, obj); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	start := r.Now()
	rn := &run[O, W]{obj: obj}
	r.passes(ctx, req.NamespacedName, rn)
	if rn.gone { // its deletion is still to be seen
		r.forget(req)
		return reconcile.Result{}, nil
	}
	err := r.report(ctx, rn)
	r.log(ctx, rn, start)
	r.metrics.reconciled(rn.outcome(), r.Now().Sub(start))
	return r.result(req, rn, err)
}

func (r *Reconciler[O, W]) forget(req reconcile.Request) {
	r.References.Forget(req.NamespacedName)
	r.Writer.Forget(req.NamespacedName)
	r.conflicts.Forget(req)
	r.restless.forget(req)
	r.rivalry.forget(req)
	r.metrics.gone(req.NamespacedName)
	if system, remembers := any(r.System).(Rememberer); remembers {
		system.Forget(req.NamespacedName)
	}
}

// passes observes, plans and applies until nothing is left to do now.
func (r *Reconciler[O, W]) passes(ctx context.Context, key types.NamespacedName, rn *run[O, W]) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	lease := r.References.Lease(key)
	defer lease.Close()
	defer func() {
		if p := recover(); p != nil {
			rn.failure = panicked(ctx, p)
		}
	}()
	reader := observe.Cached{Client: r.Client, Cache: r.Cache, References: lease, Owner: key}
	for range maxPasses {
		if !r.pass(ctx, reader, rn) || !r.reread(ctx, key, rn) {
			return
		}
	}
	r.metrics.unsettled()
	last := "nothing"
	if n := len(rn.plan.Steps); n > 0 {
		last = rn.plan.Steps[n-1].Target().String() + ": " + rn.plan.Steps[n-1].Why()
	}
	rn.failure = &status.Failure{Reason: reasonNotSettling, Err: fmt.Errorf("there was still something to do after %d rounds; last: %s", maxPasses, last)}
}

// reread reads the object again where something was noted on it: another plan must not
// be made for what it was before. It tells whether there is still an object to plan for.
func (r *Reconciler[O, W]) reread(ctx context.Context, key types.NamespacedName, rn *run[O, W]) bool {
	if !rn.noted {
		return true
	}
	rn.noted = false
	now := r.New()
	if err := r.Client.Get(ctx, key, now); err != nil {
		if rn.gone = apierrors.IsNotFound(err); !rn.gone {
			rn.failure = &status.Failure{Reason: meta.ReasonObserveFailed, Err: fmt.Errorf("reading %q again: %w", key, err)}
		}
		return false
	}
	if rn.gone = now.GetUID() != rn.obj.GetUID() || !now.GetDeletionTimestamp().IsZero(); rn.gone {
		return false // its events lead to what is to be done
	}
	rn.obj = now
	return true
}

// Reasons of conditions that only the kernel sets.
const (
	// reasonNotSettling says that plan after plan found something to do.
	reasonNotSettling = "NotSettling"
	// reasonContested says that somebody else keeps changing an owned field.
	reasonContested = "Contested"
	// reasonOtherOperator says that another operator is at work on the same kind.
	reasonOtherOperator = "OtherOperatorRunning"
)

// panicked logs a panic and makes a failure of it. It must be called with what
// recover returned.
func panicked(ctx context.Context, p any) *status.Failure {
	logf.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "reconcile panicked", "stack", string(debug.Stack()))
	return &status.Failure{Reason: meta.ReasonInternalError, Permanent: true, Err: fmt.Errorf("the operator failed on this object: %v", p)}
}

// pass makes one round and tells whether another may find more to do.
func (r *Reconciler[O, W]) pass(ctx context.Context, reader observe.Reader, rn *run[O, W]) bool {
	rn.planned, rn.failure, rn.retry, rn.apart = false, nil, 0, nil
	world, err := r.System.Observe(ctx, reader, rn.obj)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("gave up after %s: %w", r.Timeout, err)
		}
		rn.failure = &status.Failure{Reason: meta.ReasonObserveFailed, Err: wayOut(err)}
		return false
	}
	rn.world, rn.observed = world, true
	p, err := r.System.Plan(rn.obj, world, r.Now())
	if err == nil && !meta.Paused(rn.obj.GetAnnotations()) {
		err = p.Covered()
	}
	if err != nil {
		rn.failure = &status.Failure{Reason: meta.ReasonInternalError, Err: err, Permanent: true}
		return false
	}
	rn.plan, rn.planned = p, true
	if meta.Paused(rn.obj.GetAnnotations()) {
		return false
	}
	return r.execute(ctx, rn)
}

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

// result derives when to come back: an error backs off, the soonest wait
// without an event, or what is to be looked at again, sets a timer, and everything
// else is left to events.
func (r *Reconciler[O, W]) result(req reconcile.Request, rn *run[O, W], reportErr error) (reconcile.Result, error) {
	err := reportErr
	if rn.failure != nil && rn.failure.Reason != reasonContested && rn.failure != rn.apart {
		err = rn.failure.Err
	}
	if rn.failure != nil && rn.failure.Reason == reasonNotSettling {
		return reconcile.Result{RequeueAfter: r.restless.failed(req, rn.obj)}, nil
	}
	r.restless.forget(req)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: r.conflicts.When(req)}, nil
	}
	r.conflicts.Forget(req)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: rn.soonest()}, nil
}

// soonest is when to look again, though no event may tell; zero for never.
func (rn *run[O, W]) soonest() time.Duration {
	times := []time.Duration{rn.retry, rn.plan.Revisit}
	for _, w := range rn.plan.Waits() {
		times = append(times, w.Recheck)
	}
	times = slices.DeleteFunc(times, func(d time.Duration) bool { return d <= 0 })
	if len(times) == 0 {
		return 0
	}
	return slices.Min(times)
}

func (r *Reconciler[O, W]) log(ctx context.Context, rn *run[O, W], start time.Time) {
	l := logf.FromContext(ctx)
	args := []any{"outcome", rn.outcome(), "writes", rn.writes, "took", r.Now().Sub(start).Round(time.Millisecond).String()}
	if waits := rn.plan.Waits(); len(waits) > 0 {
		args = append(args, "waitsFor", waits[0].Message)
	}
	if held := len(rn.plan.Held()); held > 0 {
		args = append(args, "held", held)
	}
	if rn.failure != nil {
		args = append(args, "reason", rn.failure.Reason, "error", rn.failure.Err.Error())
	}
	if rn.writes == 0 && rn.failure == nil {
		l = l.V(1)
	}
	l.Info("reconciled", args...)
}
