package doris

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// patience is how long a reconcile waits for what a node or a database says. Most
// answer within milliseconds. Whoever takes longer delays no other cluster: its answer
// wakes the reconcile of its own.
const patience = 250 * time.Millisecond

// meanwhile runs what may take long beside the reconciles that ask for it.
type meanwhile struct {
	mu      sync.Mutex
	running map[types.UID]*errand
	// faults are panics that nobody was there to hear of.
	faults map[types.UID]any
	// wakes tell the kernel to reconcile a cluster, by the namespace that they are for;
	// the empty one is for all.
	wakes map[string]func(types.NamespacedName)
	// patience is how long is waited where somebody can be woken later.
	patience time.Duration
}

// errand is one question that is under way.
type errand struct {
	done chan struct{}
	// missed tells that somebody went on without the answer.
	missed bool
	// fault is what a panic said.
	fault any
}

func newMeanwhile() *meanwhile {
	return &meanwhile{running: map[types.UID]*errand{}, faults: map[types.UID]any{}, wakes: map[string]func(types.NamespacedName){}, patience: patience}
}

// wakeBy sets what wakes the clusters of a namespace.
func (m *meanwhile) wakeBy(namespace string, wake func(types.NamespacedName)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wakes[namespace] = wake
}

func (m *meanwhile) wakeOf(namespace string) func(types.NamespacedName) {
	if wake := m.wakes[namespace]; wake != nil {
		return wake
	}
	return m.wakes[""]
}

// do runs a question, at most one at a time for each subject, and tells whether it
// was over in time. If it was not, the cluster is woken when it is. Where nobody
// can be woken it waits to the end. The question goes on when the reconcile ends. A
// panic of it is one of the reconcile, or of the next.
func (m *meanwhile) do(ctx context.Context, subject types.UID, cluster types.NamespacedName, ask func(context.Context)) bool {
	e, wake := m.begin(ctx, subject, cluster, ask)
	if wake == nil {
		<-e.done
		return e.answered()
	}
	timer := time.NewTimer(m.patience)
	defer timer.Stop()
	select {
	case <-e.done:
		return e.answered()
	case <-timer.C:
	case <-ctx.Done():
	}
	m.mu.Lock()
	over := m.running[subject] != e
	e.missed = e.missed || !over
	m.mu.Unlock()
	return over && e.answered()
}

// begin returns the errand of a subject, which it begins where none is under way.
func (m *meanwhile) begin(ctx context.Context, subject types.UID, cluster types.NamespacedName, ask func(context.Context)) (*errand, func(types.NamespacedName)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if fault := m.faults[subject]; fault != nil {
		delete(m.faults, subject)
		panic(fault)
	}
	e := m.running[subject]
	if e == nil {
		e = &errand{done: make(chan struct{})}
		m.running[subject] = e
		go m.run(context.WithoutCancel(ctx), e, subject, cluster, ask)
	}
	return e, m.wakeOf(cluster.Namespace)
}

func (m *meanwhile) run(ctx context.Context, e *errand, subject types.UID, cluster types.NamespacedName, ask func(context.Context)) {
	defer func() {
		e.fault = recover()
		m.mu.Lock()
		delete(m.running, subject)
		missed, wake := e.missed, m.wakeOf(cluster.Namespace)
		if missed && e.fault != nil {
			m.faults[subject] = e.fault
		}
		close(e.done)
		m.mu.Unlock()
		if missed && wake != nil {
			wake(cluster)
		}
	}()
	ask(ctx)
}

// answered panics as the question did.
func (e *errand) answered() bool {
	if e.fault != nil {
		panic(e.fault)
	}
	return true
}
