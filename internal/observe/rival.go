package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rival watches the lease by which another operator for the same kinds says that
// it is at work, in whatever namespace it runs. It costs one watch.
type Rival struct {
	lease string
	now   func() time.Time
	log   logr.Logger

	mu     sync.Mutex
	leases map[types.NamespacedName]*coordinationv1.Lease
	synced chan struct{}
	once   sync.Once
}

// NewRival returns a Rival that knows the other operator by the name of its lease.
func NewRival(lease string, now func() time.Time, log logr.Logger) *Rival {
	return &Rival{lease: lease, now: now, log: log, leases: map[types.NamespacedName]*coordinationv1.Lease{}, synced: make(chan struct{})}
}

// Lease is what the cache that Run is given must hold, and Selector which of them.
func (r *Rival) Lease() (o client.Object, selector fields.Selector) {
	return &coordinationv1.Lease{}, fields.OneTermEqualSelector("metadata.name", r.lease)
}

// Run watches until ctx ends, through a cache that it starts. Where it may not
// look, nobody is found.
func (r *Rival) Run(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching leases: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    r.seen,
		UpdateFunc: func(_, o any) { r.seen(o) },
		DeleteFunc: r.gone,
	}); err != nil {
		return fmt.Errorf("watching leases: %w", err)
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			r.ready()
		}
	}()
	return c.Start(ctx)
}

func (r *Rival) ready() { r.once.Do(func() { close(r.synced) }) }

// Await waits until it is known whether another operator is at work, or the
// patience ends: without the right to look nobody is found.
func (r *Rival) Await(ctx context.Context, patience time.Duration) {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-r.synced:
	case <-ctx.Done():
	case <-t.C:
		r.log.Info("cannot see whether another operator is at work on the same kinds; see that none is", "lease", r.lease)
	}
}

// Blind tells whether it may not look, or has not been answered yet.
func (r *Rival) Blind() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.synced:
		return false
	default:
		return true
	}
}

func (r *Rival) seen(o any) {
	lease, ok := o.(*coordinationv1.Lease)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leases[types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}] = lease
}

func (r *Rival) gone(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	lease, ok := o.(*coordinationv1.Lease)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.leases, types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name})
}

// Holder tells which other operator is at work: "namespace/identity", empty when
// none is. A lease that is not renewed any more counts for nothing once it is out.
func (r *Rival) Holder() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	holder := ""
	for name, lease := range r.leases {
		if id := heldBy(lease, r.now()); id != "" {
			if found := name.Namespace + "/" + id; holder == "" || found < holder {
				holder = found
			}
		}
	}
	return holder
}

// heldBy returns who holds a lease now.
func heldBy(l *coordinationv1.Lease, now time.Time) string {
	s := l.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return ""
	}
	if now.After(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second)) {
		return ""
	}
	return *s.HolderIdentity
}
