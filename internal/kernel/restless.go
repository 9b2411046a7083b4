package kernel

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// restless keeps objects whose plans never settle from being a hot loop: each
// round writes, and each write is an event that asks for the next round at once.
// Such an object rests, longer each time, unless its spec changes. It is safe
// for concurrent use.
type restless struct {
	now    func() time.Time
	pauses workqueue.TypedRateLimiter[reconcile.Request]

	mu   sync.Mutex
	rest map[reconcile.Request]rest
}

type rest struct {
	until      time.Time
	generation int64
}

func newRestless(now func() time.Time) *restless {
	return &restless{
		now: now, rest: map[reconcile.Request]rest{},
		pauses: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, 5*time.Minute),
	}
}

// failed notes that the plans of an object did not settle, and returns how
// long it has to rest.
func (r *restless) failed(req reconcile.Request, o client.Object) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := r.pauses.When(req)
	r.rest[req] = rest{until: r.now().Add(pause), generation: o.GetGeneration()}
	return pause
}

// pause is how long an object has to rest yet.
func (r *restless) pause(req reconcile.Request, o client.Object) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	held, ok := r.rest[req]
	if !ok || held.generation != o.GetGeneration() {
		return 0
	}
	return max(0, held.until.Sub(r.now()))
}

func (r *restless) forget(req reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.rest[req]; ok {
		delete(r.rest, req)
		r.pauses.Forget(req)
	}
}
