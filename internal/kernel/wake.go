package kernel

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// waker is a source of reconcile requests that come from References.
type waker struct {
	queues chan workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newWaker() *waker {
	return &waker{queues: make(chan workqueue.TypedRateLimitingInterface[reconcile.Request], 1)}
}

// Start implements source.Source.
func (w *waker) Start(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.queues <- q
	return nil
}

// wake asks for a reconcile; it waits until the controller has started.
func (w *waker) wake(name types.NamespacedName) {
	q := <-w.queues
	w.queues <- q
	q.Add(reconcile.Request{NamespacedName: name})
}
