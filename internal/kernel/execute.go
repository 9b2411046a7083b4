package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/event"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// blockedRetry is how soon an eviction is tried again that a disruption budget
// refused although a planner thought that it may go.
const blockedRetry = 10 * time.Second

// execute carries out the steps up to the barrier. It tells whether anything
// was written, so that another pass may find more to do. A contested step keeps
// no other from being carried out; any other error ends the pass.
func (r *Reconciler[O, W]) execute(ctx context.Context, rn *run[O, W]) bool {
	wrote := false
	for _, step := range rn.plan.Steps {
		if _, waits := step.(plan.Wait); waits {
			return wrote
		}
		did, err := r.step(ctx, rn, step)
		if did {
			rn.writes++
		}
		if refused, is := errors.AsType[*apply.RefusedError](err); is { // said, and nothing to look at again for
			r.refused(rn, step, refused)
			continue
		}
		wrote = wrote || did
		var contested *apply.ContestedError
		var blocked *apply.BlockedError
		var notDone *plan.NotDoneError
		switch {
		case err == nil:
		case errors.As(err, &notDone): // seen when the world is observed again
		case errors.As(err, &contested):
			rn.contested(contested)
		case errors.As(err, &blocked):
			rn.plan.Steps = []plan.Step{plan.Wait{On: blocked.Pod, Reason: meta.ReasonDisruptionBudget, Message: blocked.Error(), Recheck: blockedRetry}}
			return false
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			rn.plan.Steps = []plan.Step{plan.Wait{On: step.Target(), Reason: string(corev1.NamespaceTerminatingCause), Message: "the namespace is being deleted"}}
			return false
		default:
			rn.failure = r.failed(rn, step, err)
			return false
		}
	}
	return wrote
}

// errGone ends a reconcile of which nothing is told.
var errGone = errors.New("the custom resource is gone")

// checkAlive asks the API server, once in a reconcile and before the first object is
// made, whether the custom resource is still there. A cache may be behind: an
// operator that started while the resource went, or saw its objects go before it saw
// the resource go, would make them once more. The error is errGone if it is not there.
func (r *Reconciler[O, W]) checkAlive(ctx context.Context, rn *run[O, W], step plan.Step) error {
	if rn.alive || !makes(step) {
		return nil
	}
	alive, err := r.Writer.Alive(ctx, rn.obj)
	rn.alive, rn.gone = alive, err == nil && !alive
	if rn.gone {
		return errGone
	}
	return err
}

// makes tells whether a step makes an object.
func makes(step plan.Step) bool {
	switch s := step.(type) {
	case plan.Apply:
		return s.Live == ""
	case plan.Create:
		return true
	}
	return false
}

// failed is what is said of a step that failed, in the words of the custom
// resource where the system has them.
func (r *Reconciler[O, W]) failed(rn *run[O, W], step plan.Step, err error) *status.Failure {
	f := &status.Failure{Reason: meta.ReasonApplyFailed, Err: wayOut(err), Permanent: apply.Permanent(err)}
	if apply.Denied(err) {
		return f
	}
	var written client.Object
	switch s := step.(type) {
	case plan.Apply:
		written = s.Object
	case plan.Patch:
		written = s.Object
	}
	explains, can := r.System.(Explainer[O])
	if written == nil || !can {
		return f
	}
	findings := explains.Explain(rn.obj, written, err)
	if len(findings) == 0 {
		return f
	}
	said := make([]string, 0, len(findings))
	for _, f := range findings {
		said = append(said, f.String())
	}
	return &status.Failure{Reason: findings[0].Reason, Err: errors.New(strings.Join(said, "; ")), Permanent: true}
}

// wayOut adds to an answer by which the operator lacks a right who can mend that. All
// else is told by the answer itself.
func wayOut(err error) error {
	if !apply.Denied(err) {
		return err
	}
	return fmt.Errorf("%w: the operator's account lacks this right; grant it (config/rbac, and rbac.create of the chart, have all that it needs), and it goes on by itself within about a minute", err)
}

// refused notes a step apart that the API server refused. What another step says
// comes first.
func (r *Reconciler[O, W]) refused(rn *run[O, W], step plan.Step, err *apply.RefusedError) {
	if rn.failure == nil {
		rn.apart = r.failed(rn, step, err.Err)
		rn.failure = rn.apart
	}
	if rn.retry == 0 || err.RetryAfter < rn.retry {
		rn.retry = err.RetryAfter
	}
}

// contested notes a step that was not carried out because it does not last.
func (rn *run[O, W]) contested(err *apply.ContestedError) {
	if rn.failure == nil {
		rn.failure = &status.Failure{Reason: reasonContested, Err: err, Permanent: true}
	}
	if rn.retry == 0 || err.RetryAfter < rn.retry {
		rn.retry = err.RetryAfter
	}
}

func (r *Reconciler[O, W]) step(ctx context.Context, rn *run[O, W], step plan.Step) (did bool, err error) {
	if err := r.checkAlive(ctx, rn, step); err != nil {
		return false, err
	}
	did = true
	var ev event.Event
	var verb string
	switch s := step.(type) {
	case plan.Apply:
		did, err = r.Writer.Apply(ctx, rn.obj, s)
		verb, ev = "apply", event.Updated(s.Target(), s.Reason)
		if s.Live == "" {
			ev = event.Created(s.Target())
		}
	case plan.Create:
		verb, err, ev = "create", r.Writer.Create(ctx, rn.obj, s), event.Created(s.Target())
	case plan.Call:
		verb, err, ev = "call", r.System.Execute(ctx, rn.world, s.Operation), event.Called(s.Target(), s.Operation.Describe())
	default:
		did, verb, err = r.change(ctx, step)
		ev = event.Updated(step.Target(), step.Why())
		switch step.(type) {
		case plan.Delete:
			ev = event.Deleted(step.Target(), step.Why())
		case plan.Evict:
			ev = event.Evicted(step.Target(), step.Why())
		}
	}
	if did {
		r.metrics.wrote(verb)
	}
	if did && err == nil {
		rn.took(step, ev)
	}
	return did, err
}

// took notes a step that was carried out.
func (rn *run[O, W]) took(step plan.Step, told event.Event) {
	if a, is := step.(plan.Apply); !is || !a.Silent {
		rn.done = append(rn.done, told)
	}
	rn.noted = rn.noted || step.Target() == plan.RefOf(rn.obj)
}

// change carries out a step on an object that exists.
func (r *Reconciler[O, W]) change(ctx context.Context, step plan.Step) (did bool, verb string, err error) {
	switch s := step.(type) {
	case plan.Patch:
		did, err = sent(r.Writer.Patch(ctx, s))
		return did, "patch", err
	case plan.Adopt:
		return true, "adopt", r.Writer.Adopt(ctx, s)
	case plan.Disown:
		return true, "disown", r.Writer.Disown(ctx, s)
	case plan.Delete:
		return true, "delete", r.Writer.Delete(ctx, s)
	case plan.Evict:
		return true, "evict", r.Writer.Evict(ctx, s)
	}
	return false, "", fmt.Errorf("unknown step %T", step)
}

// sent tells whether a patch was sent: one that is contested was not.
func sent(err error) (bool, error) {
	_, contested := errors.AsType[*apply.ContestedError](err)
	refused, isRefused := errors.AsType[*apply.RefusedError](err)
	return !contested && (!isRefused || refused.Sent), err
}
