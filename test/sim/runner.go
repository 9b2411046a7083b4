package sim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/event"
	"github.com/fairlead-dev/fairlead/internal/kernel"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// Dice decide what goes wrong. Roll returns a number from 0 to sides-1; 0 is
// always the case in which all is well, so that a shrinking property test ends
// with as few faults as the failure needs. Nil dice never let anything go wrong.
type Dice interface {
	Roll(what string, sides int) int
}

// Config says what a Runner runs.
type Config[O kernel.Object, W any] struct {
	Cluster *Cluster
	System  kernel.System[O, W]
	New     func() O
	// Key names the custom resource, which must be in the Store.
	Key types.NamespacedName
	// Owner tells to which custom resource an object belongs.
	Owner observe.OwnerFunc
	// Manager is the field manager that the System plans with.
	Manager string
	Engine  *diff.Engine
	Dice    Dice
	// Check is called with the world after each write of the operator; an error
	// ends the run. Nil checks nothing.
	Check func(Snapshot) error
}

// Runner runs the kernel with one System for one custom resource.
type Runner[O kernel.Object, W any] struct {
	Config[O, W]
	// Plan is the newest plan.
	Plan plan.Plan
	// Events are those emitted so far, by all incarnations.
	Events []event.Event
	// Writes counts the requests that changed something or tried to, by verb.
	Writes map[string]int

	life *incarnation[O, W]
	// broken is the first promise that was broken.
	broken error
	now    time.Time
	seen   map[Key]string
}

// NewRunner returns a Runner; the operator starts with the first Reconcile.
func NewRunner[O kernel.Object, W any](c Config[O, W]) *Runner[O, W] {
	return &Runner[O, W]{Config: c, Writes: map[string]int{}, now: epoch, seen: map[Key]string{}}
}

func (r *Runner[O, W]) roll(what string, sides int) int {
	if r.Dice == nil {
		return 0
	}
	return r.Dice.Roll(what, sides)
}

// incarnation is one life of the operator process: its memory, and how far its
// caches have come.
type incarnation[O kernel.Object, W any] struct {
	reconciler *kernel.Reconciler[O, W]
	refs       *observe.References
	floor      map[schema.GroupVersionKind]int64
	dead       bool
}

// errDead is what every call of a dead incarnation returns, so that nothing it
// still does has an effect.
var errDead = fmt.Errorf("the operator was killed")

func (r *Runner[O, W]) start() {
	life := &incarnation[O, W]{floor: map[schema.GroupVersionKind]int64{}}
	cached := Reader{Store: r.Cluster.Store, Owner: r.Owner, At: func(kind schema.GroupVersionKind) (Snapshot, error) {
		if life.dead {
			return Snapshot{}, errDead
		}
		s := r.Cluster.Before(r.roll("writes that "+kind.Kind+" is behind", 4), life.floor[kind])
		life.floor[kind] = s.Version // a cache never goes back
		return s, nil
	}}
	live := Reader{Store: r.Cluster.Store, Owner: r.Owner, At: func(schema.GroupVersionKind) (Snapshot, error) {
		if life.dead {
			return Snapshot{}, errDead
		}
		if r.roll("a live read fails", 20) == 19 {
			return Snapshot{}, fmt.Errorf("the API server does not answer")
		}
		return r.Cluster.Now(), nil
	}}
	life.refs = observe.NewReferences(live, func(types.NamespacedName) {})
	life.reconciler = kernel.NewReconciler(kernel.Parts[O, W]{
		Name: "sim", System: watched[O, W]{r}, New: r.New, Client: cached, Cache: cached, References: life.refs,
		Writer:  newWriter(r, life),
		Emit:    func(_ O, e event.Event) { r.Events = append(r.Events, e) },
		Now:     func() time.Time { return r.now },
		Timeout: time.Minute,
	})
	r.life = life
}

// Reconcile runs one reconcile, in a new incarnation when there is none or the
// last one died. The first error says which promise was broken; the second is
// what the kernel would back off for.
func (r *Runner[O, W]) Reconcile(ctx context.Context) (broken, failed error) {
	r.now = r.now.Add(time.Minute)
	if r.life == nil || r.life.dead {
		r.start()
	}
	r.announce()
	_, failed = r.life.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: r.Key})
	return r.broken, failed
}

// Kill ends the present incarnation.
func (r *Runner[O, W]) Kill() { r.life = nil }

// announce is the metadata watch of ConfigMaps and Secrets.
func (r *Runner[O, W]) announce() {
	now := map[Key]string{}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for _, o := range r.Cluster.Now().List(corev1.SchemeGroupVersion.WithKind(kind), "") {
			now[Key{corev1.SchemeGroupVersion.WithKind(kind), client.ObjectKeyFromObject(o)}] = o.GetResourceVersion()
		}
	}
	for key := range r.seen {
		if _, still := now[key]; !still {
			r.life.refs.Announce(key.Kind.Kind, key.NamespacedName, "")
		}
	}
	for key, version := range now {
		r.life.refs.Announce(key.Kind.Kind, key.NamespacedName, version)
	}
	r.seen = now
}

// Settle turns faults off and reconciles, letting the stand-ins work in
// between, until a settled plan was made and nothing moves. It fails when a
// promise is broken or that takes more than patience rounds.
func (r *Runner[O, W]) Settle(ctx context.Context, patience int) error {
	dice := r.Dice
	r.Dice = nil
	defer func() { r.Dice = dice }()
	var last error
	for range patience {
		version := r.Cluster.Now().Version
		broken, failed := r.Reconcile(ctx)
		if broken != nil {
			return broken
		}
		last = failed
		moved, err := r.Cluster.Advance()
		if err != nil {
			return err
		}
		if failed == nil && !moved && r.Cluster.Now().Version == version && r.Plan.Settled() {
			return nil
		}
	}
	return fmt.Errorf("not settled after %d rounds; last error: %w; plan: %+v", patience, last, r.Plan)
}

// watched is the System as the kernel sees it: what it plans is kept, and is
// the same when it is asked twice.
type watched[O kernel.Object, W any] struct{ r *Runner[O, W] }

func (s watched[O, W]) Observe(ctx context.Context, reader observe.Reader, obj O) (W, error) {
	return s.r.System.Observe(ctx, reader, obj)
}

func (s watched[O, W]) Plan(obj O, world W, now time.Time) (plan.Plan, error) {
	p, err := s.r.System.Plan(obj, world, now)
	if err != nil {
		return p, err
	}
	s.r.Plan = p
	again, err := s.r.System.Plan(obj, world, now)
	if err != nil {
		return p, err
	}
	one, err := printed(p)
	if err != nil {
		return p, err
	}
	two, err := printed(again)
	if err != nil {
		return p, err
	}
	if one != two {
		s.r.breaksf("the same input gave two plans:\n%s\n%s", one, two)
	}
	return p, nil
}

func printed(p plan.Plan) (string, error) {
	raw, err := json.Marshal(struct {
		plan.Plan
		Steps []plan.Step
	}{p, p.Steps})
	return string(raw), err
}

func (s watched[O, W]) Execute(ctx context.Context, world W, op plan.Operation) error {
	if s.r.life.dead {
		return errDead
	}
	s.r.Writes["call"]++
	return s.r.System.Execute(ctx, world, op)
}

func (s watched[O, W]) Report(obj O, world W, p plan.Plan, now time.Time) status.Health {
	return s.r.System.Report(obj, world, p, now)
}

func (r *Runner[O, W]) breaksf(format string, args ...any) {
	if r.broken == nil {
		r.broken = fmt.Errorf(format, args...)
	}
}

func labelsOf(o client.Object) labels.Set { return o.GetLabels() }
