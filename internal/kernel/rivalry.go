package kernel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-dev/fairlead/internal/status"
)

// While another operator is at work, an object is looked at again after
// rivalPoll, which asks nothing of the API server, and its status is written at
// most once in rivalSays: the other one may write it too, and takes our conditions
// away where its definition does not know them.
const (
	rivalPoll = 5 * time.Second
	rivalSays = time.Minute
)

// yield leaves an object to the other operator and says so.
func (r *Reconciler[O, W]) yield(ctx context.Context, req reconcile.Request, obj O, holder string) (reconcile.Result, error) {
	if !r.rivalry.due(req) {
		return reconcile.Result{RequeueAfter: rivalPoll}, nil
	}
	obj.SetManagedFields(nil)
	rn := &run[O, W]{obj: obj, failure: &status.Failure{
		Reason: reasonOtherOperator, Permanent: true,
		Err: fmt.Errorf("another operator (%s) is at work on the same kind; nothing is done here while it is. Scale it down, and this one goes on by itself", holder),
	}}
	start := r.Now()
	err := r.report(ctx, rn)
	r.log(ctx, rn, start)
	r.metrics.reconciled(rn.outcome(), r.Now().Sub(start))
	return reconcile.Result{RequeueAfter: rivalPoll}, err
}

// rivalry remembers when it was last said of an object that another operator is
// at work on it.
type rivalry struct {
	now  func() time.Time
	mu   sync.Mutex
	said map[reconcile.Request]time.Time
}

func newRivalry(now func() time.Time) *rivalry {
	return &rivalry{now: now, said: map[reconcile.Request]time.Time{}}
}

func (y *rivalry) due(req reconcile.Request) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if last, before := y.said[req]; before && y.now().Sub(last) < rivalSays {
		return false
	}
	y.said[req] = y.now()
	return true
}

func (y *rivalry) forget(req reconcile.Request) {
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.said, req)
}
