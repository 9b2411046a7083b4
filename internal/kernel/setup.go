package kernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/event"
	"github.com/fairlead-dev/fairlead/internal/observe"
)

// Registration tells the kernel how to run one system.
type Registration[O Object, W any] struct {
	// Name of the system as in --systems, such as "doriscluster". It must be
	// usable as a controller name.
	Name string
	// New returns an empty custom resource.
	New    func() O
	System System[O, W]
	// Manager is the field manager under which the system's objects are applied.
	Manager string
	// Watches lists the kinds whose objects belong to a custom resource.
	Watches []observe.Watch
	// Workers is how many custom resources are reconciled at once (default 16);
	// Timeout bounds one reconcile but for its report (default two minutes).
	Workers int
	Timeout time.Duration
	// Engine compares objects; shared by all systems.
	Engine *diff.Engine
	// RivalLease is the name of the lease by which another operator for the same
	// kind says that it is at work; empty when there is none.
	RivalLease string
	// Clock is time.Now unless a test says otherwise.
	Clock func() time.Time
	// Around, if it is set, puts something around what writes: for tests, which
	// prove by a faulty writer that its faults are noticed.
	Around func(Writer) Writer

	rival *observe.Rival
}

// rivalPatience is how long the start waits to see whether another operator is
// at work.
const rivalPatience = 10 * time.Second

// reportTime is what a reconcile that ran into its timeout has left to say so.
const reportTime = 15 * time.Second

// Run waits until the API server serves the kind, then reconciles its objects
// until ctx ends. Each namespace gets caches of its own; no namespaces means
// all of them.
func (reg Registration[O, W]) Run(ctx context.Context, mgr manager.Manager, namespaces []string) error {
	if reg.Workers == 0 {
		reg.Workers = 16
	}
	if reg.Timeout == 0 {
		reg.Timeout = 2 * time.Minute
	}
	if reg.Clock == nil {
		reg.Clock = time.Now
	}
	if err := reg.awaitKind(ctx, mgr); err != nil {
		return err
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if reg.RivalLease != "" {
		stop, err := reg.watchRival(ctx, mgr)
		if err != nil {
			return err
		}
		defer stop()
	}
	failed := make(chan error, len(namespaces))
	for _, ns := range namespaces {
		go func() { failed <- reg.runIn(ctx, mgr, ns) }()
	}
	var first error
	for range namespaces {
		if err := <-failed; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

// watchRival begins to watch for another operator, and waits until it is known
// whether one is at work.
func (reg *Registration[O, W]) watchRival(ctx context.Context, mgr manager.Manager) (stop func(), err error) {
	log := mgr.GetLogger().WithValues("system", reg.Name, "lease", reg.RivalLease)
	reg.rival = observe.NewRival(reg.RivalLease, reg.Clock, log)
	lease, selector := reg.rival.Lease()
	leases, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{lease: {Field: selector}},
	})
	if err != nil {
		return nil, fmt.Errorf("cache of leases for %q: %w", reg.Name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := reg.rival.Run(ctx, leases); err != nil {
			log.Error(err, "cannot see whether another operator is at work")
		}
	}()
	reg.rival.Await(ctx, rivalPatience)
	return func() { cancel(); <-done }, nil
}

// kindPoll is how often a missing kind is looked for. Nothing is asked any
// more once it is there.
const kindPoll = 5 * time.Second

func (reg Registration[O, W]) awaitKind(ctx context.Context, mgr manager.Manager) error {
	gvk, err := apiutil.GVKForObject(reg.New(), mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("kind of system %q: %w", reg.Name, err)
	}
	log := mgr.GetLogger().WithValues("system", reg.Name)
	said := false
	err = wait.PollUntilContextCancel(ctx, kindPoll, true, func(context.Context) (bool, error) {
		err := served(mgr.GetRESTMapper(), gvk)
		if err != nil && !said {
			said = true
			log.Info("waiting for the custom resource definition", "kind", gvk.String(), "reason", err.Error())
		}
		return err == nil, nil
	})
	if err != nil {
		return nil //nolint:nilerr // only the context can end the poll, and that is no fault
	}
	log.Info("kind is served", "kind", gvk.String())
	return nil
}

// errNoCRD says that the kind is not served (yet).
var errNoCRD = errors.New("the API server does not serve this kind")

func served(m apimeta.RESTMapper, gvk schema.GroupVersionKind) error {
	_, err := m.RESTMapping(gvk.GroupKind(), gvk.Version)
	if apimeta.IsNoMatchError(err) {
		return fmt.Errorf("%w: %s", errNoCRD, gvk.GroupKind())
	}
	return err
}

// runIn reconciles in one namespace, or in all when it is empty.
func (reg Registration[O, W]) runIn(ctx context.Context, mgr manager.Manager, namespace string) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // asked to stop before it began
	}
	objects, err := reg.cache(ctx, mgr, namespace)
	if err != nil {
		return err
	}
	c, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: objects, EnableReadYourWritesConsistency: new(true)},
		Log:   mgr.GetLogger(),
	})
	if err != nil {
		return fmt.Errorf("client of %q: %w", reg.Name, err)
	}
	meta, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("metadata client of %q: %w", reg.Name, err)
	}
	wake := newWaker()
	if w, wakes := reg.System.(Wakeable); wakes {
		w.WakeBy(namespace, wake.wake)
	}
	refs := observe.NewReferences(mgr.GetAPIReader(), wake.wake)
	ctrl, err := reg.controller(mgr, objects, c, refs, namespace)
	if err != nil {
		return err
	}
	for _, s := range reg.sources(objects, wake, mgr.GetScheme()) {
		if err := ctrl.Watch(s); err != nil {
			return fmt.Errorf("watch of %q: %w", reg.Name, err)
		}
	}
	return together(ctx,
		objects.Start,
		func(ctx context.Context) error { return refs.Watch(ctx, meta, only(namespace)) },
		ctrl.Start,
	)
}

// together runs all until the first ends with an error, or ctx ends.
func together(ctx context.Context, runs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, len(runs))
	for _, run := range runs {
		go func() { done <- run(ctx) }()
	}
	var first error
	for range runs {
		if err := <-done; err != nil && first == nil {
			first = err
		}
		cancel()
	}
	return first
}

func only(namespace string) []string {
	if namespace == metav1.NamespaceAll {
		return nil
	}
	return []string{namespace}
}

func (reg Registration[O, W]) cache(ctx context.Context, mgr manager.Manager, namespace string) (cache.Cache, error) {
	opts := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: keepOwn(reg.Manager),
		ByObject:         map[client.Object]cache.ByObject{reg.New(): {Transform: keepAuthors}},
	}
	if namespace != metav1.NamespaceAll {
		opts.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	for _, w := range reg.Watches {
		by := cache.ByObject{Label: w.Selector}
		if _, isPod := w.Object.(*corev1.Pod); isPod {
			by.Transform = slimPod
		}
		opts.ByObject[w.Object] = by
	}
	c, err := cache.New(mgr.GetConfig(), opts)
	if err != nil {
		return nil, fmt.Errorf("cache of %q: %w", reg.Name, err)
	}
	for _, w := range reg.Watches {
		err := c.IndexField(ctx, w.Object, observe.OwnerIndex, func(o client.Object) []string {
			if owner := w.Owner(o); owner != "" {
				return []string{owner}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("index of %T: %w", w.Object, err)
		}
	}
	return c, nil
}

func (reg Registration[O, W]) controller(mgr manager.Manager, objects cache.Cache, c client.Client, refs *observe.References, namespace string) (controller.Controller, error) {
	recorder := mgr.GetEventRecorder("fairlead")
	var writer Writer = apply.NewWriter(c, mgr.GetAPIReader(), reg.Engine, reg.Clock)
	if reg.Around != nil {
		writer = reg.Around(writer)
	}
	r := NewReconciler(Parts[O, W]{
		Name: reg.Name, System: reg.System, New: reg.New, Client: c, Cache: objects, References: refs,
		Writer: writer,
		Emit: func(o O, e event.Event) {
			recorder.Eventf(o, related(e), e.Type, e.Reason, e.Action, "%s", e.Message)
		},
		Now: reg.Clock, Timeout: reg.Timeout, Rival: reg.rival,
	})
	name := reg.Name
	if namespace != metav1.NamespaceAll {
		name += "-" + namespace
	}
	ctrl, err := controller.NewUnmanaged(name, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: reg.Workers, ReconciliationTimeout: reg.Timeout + reportTime,
		RecoverPanic: new(true), Logger: mgr.GetLogger(), SkipNameValidation: new(true),
		CacheSyncTimeout: forever,
		RateLimiter:      workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, time.Minute),
	})
	if err != nil {
		return nil, fmt.Errorf("controller of %q: %w", reg.Name, err)
	}
	return ctrl, nil
}

// related is the object that an event is about besides the custom resource.
func related(e event.Event) runtime.Object {
	if e.Related.Kind == "" {
		return nil
	}
	return &corev1.ObjectReference{Kind: e.Related.Kind, Namespace: e.Related.Namespace, Name: e.Related.Name}
}

// forever is how long a controller waits for its caches: a kind that cannot be
// listed yet (a missing permission, say) is said in the log and is no reason to
// end, which would hurt all other systems.
const forever = 100 * 365 * 24 * time.Hour

// sources are what wakes a custom resource: itself, what belongs to it, and
// what it refers to.
func (reg Registration[O, W]) sources(objects cache.Cache, wake *waker, scheme *runtime.Scheme) []source.Source {
	out := []source.Source{
		source.Kind[client.Object](objects, reg.New(), &handler.EnqueueRequestForObject{}, predicate.Funcs{UpdateFunc: moreThanStatus}),
		wake,
	}
	for _, w := range reg.Watches {
		var when []predicate.Predicate
		if w.Neighbours {
			when = append(when, predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{
				UpdateFunc: func(e ctrlevent.UpdateEvent) bool { return w.Matters != nil && w.Matters(e.ObjectOld, e.ObjectNew) },
			}))
		}
		out = append(out, source.Kind(objects, w.Object, handler.EnqueueRequestsFromMapFunc(reg.concerned(w, objects, scheme)), when...))
	}
	return out
}

// moreThanStatus keeps the operator from being woken by its own reports.
func moreThanStatus(e ctrlevent.UpdateEvent) bool {
	was, is := e.ObjectOld, e.ObjectNew
	return was.GetUID() != is.GetUID() || was.GetGeneration() != is.GetGeneration() ||
		!was.GetDeletionTimestamp().Equal(is.GetDeletionTimestamp()) ||
		!maps.Equal(was.GetAnnotations(), is.GetAnnotations()) || !maps.Equal(was.GetLabels(), is.GetLabels())
}

// Runnable adapts a registration to a manager. It runs on the leader only.
func Runnable(mgr manager.Manager, namespaces []string, run func(context.Context, manager.Manager, []string) error) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		return run(logf.IntoContext(ctx, mgr.GetLogger()), mgr, namespaces)
	})
}
