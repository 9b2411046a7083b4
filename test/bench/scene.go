package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/counts"
	"github.com/fairlead-dev/fairlead/test/simnode"
)

// operatorAgent starts the operator's user agent.
const operatorAgent = "fairlead"

// scene measures one number of clusters.
type scene struct {
	*options
	root     string
	n        int
	foreign  bool
	progress io.Writer

	cluster *cluster.Cluster
	client  kubernetes.Interface
	dynamic dynamic.Interface
	places  []place
}

// measured is what one number of clusters came to.
type measured struct {
	clusters int
	floor    time.Duration // the same objects without an operator; zero if not measured
	created  time.Duration // until all DorisClusters were created
	all      time.Duration // until all were available
	each     []time.Duration
	tally    counts.Tally // until it had settled
	idle     counts.Tally
	idleFor  time.Duration
	cpu      time.Duration // until all were available
	idleCPU  time.Duration
	atRest   usage
	foreign  *foreignMemory
}

// foreignMemory is what objects cost that concern nobody.
type foreignMemory struct {
	objects          int // ConfigMaps and Secrets together
	before, live     usage
	restarted        usage
	requestsMeantime counts.Tally
}

func (s *scene) sayf(format string, args ...any) {
	fmt.Fprintf(s.progress, "bench: %d clusters: %s\n", s.n, fmt.Sprintf(format, args...))
}

func (s *scene) run(ctx context.Context) (measured, error) {
	m := measured{clusters: s.n, idleFor: s.idle}
	if s.floor {
		err := s.onPlane(ctx, func(ctx context.Context) error {
			var err error
			m.floor, err = s.runFloor(ctx)
			return err
		})
		if err != nil {
			return m, fmt.Errorf("without an operator: %w", err)
		}
	}
	return m, s.onPlane(ctx, func(ctx context.Context) error { return s.measure(ctx, &m) })
}

// onPlane brings up a control plane with simulated nodes for a while.
func (s *scene) onPlane(ctx context.Context, do func(context.Context) error) (err error) {
	s.cluster, err = cluster.Up(ctx, cluster.Options{Version: s.version, Log: s.progress, DieWithParent: true})
	if err != nil {
		return err
	}
	defer func() {
		// It goes even if the bench was interrupted.
		err = errors.Join(err, s.cluster.Down(context.WithoutCancel(ctx)))
	}()
	config := s.cluster.RESTConfig()
	config.UserAgent, config.QPS = "bench", -1
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	nodes, err := simnode.Start(ctx, s.cluster.RESTConfig(), simnode.Options{Nodes: 10, Start: simnode.Fixed(s.ready)})
	if err != nil {
		return err
	}
	defer nodes.Stop()
	s.places = places(s.n, s.namespaces)
	if err := createNamespaces(ctx, s.client, s.places); err != nil {
		return err
	}
	return do(ctx)
}

// measure runs the operator on the plane.
func (s *scene) measure(ctx context.Context, m *measured) error {
	if err := applyCRDs(ctx, s.dynamic, s.root); err != nil {
		return err
	}
	operator, err := startOperator(ctx, s.options, s.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	defer func() { operator.stop() }()
	if err := s.bringUp(ctx, operator, m); err != nil {
		return err
	}
	if err := s.watchIdle(ctx, operator, m); err != nil {
		return err
	}
	if !s.foreign || s.options.foreign == 0 {
		return nil
	}
	operator, err = s.addForeign(ctx, operator, m)
	return err
}

// bringUp creates all clusters at once and waits until the operator has
// nothing left to do.
func (s *scene) bringUp(ctx context.Context, operator *operator, m *measured) error {
	requests := counts.Client{Log: s.cluster.Audit(), Agent: operatorAgent}
	if _, err := requests.Settle(ctx, s.quiet); err != nil {
		return err
	}
	mark, err := s.cluster.Audit().Mark()
	if err != nil {
		return err
	}
	before, err := operator.measure(ctx)
	if err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	arrivals := s.watchClusters(watching)
	began := time.Now()
	if err := s.createClusters(ctx); err != nil {
		return err
	}
	m.created = time.Since(began)
	s.sayf("created in %s", m.created.Round(time.Millisecond))
	if err := s.awaitAll(ctx, operator, arrivals); err != nil {
		return err
	}
	m.each = arrivals.since(began)
	m.all = m.each[len(m.each)-1]
	after, err := operator.measure(ctx)
	if err != nil {
		return err
	}
	m.cpu = after.cpu - before.cpu
	s.sayf("all available after %s", m.all.Round(time.Millisecond))
	if _, err := requests.Settle(ctx, s.quiet); err != nil {
		return err
	}
	m.tally, err = requests.Since(mark)
	return err
}

func (s *scene) createClusters(ctx context.Context) error {
	base, err := decode(strings.NewReader(clusterManifest))
	if err != nil {
		return err
	}
	return inParallel(ctx, s.n, func(ctx context.Context, i int) error {
		obj := base.DeepCopy()
		obj.SetNamespace(s.places[i].namespace)
		obj.SetName(s.places[i].name)
		_, err := s.dynamic.Resource(dorisClusters).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{})
		return err
	})
}

// arrivals are the moments at which clusters were first seen available.
type arrivals struct {
	mu     sync.Mutex
	at     map[string]time.Time
	wanted int
	all    chan struct{}
}

func (a *arrivals) see(obj any) {
	cluster, ok := obj.(*unstructured.Unstructured)
	if !ok || !available(cluster) {
		return
	}
	a.arrive(cluster.GetNamespace() + "/" + cluster.GetName())
}

func (a *arrivals) arrive(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, seen := a.at[name]; seen {
		return
	}
	a.at[name] = time.Now()
	if len(a.at) == a.wanted {
		close(a.all)
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}

// since lists how long each took, the shortest first.
func (a *arrivals) since(began time.Time) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var took []time.Duration
	for _, at := range a.at {
		took = append(took, at.Sub(began))
	}
	slices.Sort(took)
	return took
}

func newArrivals(wanted int) *arrivals {
	return &arrivals{at: map[string]time.Time{}, wanted: wanted, all: make(chan struct{})}
}

func (s *scene) watchClusters(ctx context.Context) *arrivals {
	a := newArrivals(s.n)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(s.dynamic, 0)
	informer := factory.ForResource(dorisClusters).Informer()
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: a.see, UpdateFunc: func(_, obj any) { a.see(obj) },
	}) // fails only on an informer that was stopped
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return a
}

func (s *scene) awaitAll(ctx context.Context, operator *operator, a *arrivals) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tell := time.NewTicker(5 * time.Second)
	defer tell.Stop()
	told := -1
	var ended <-chan struct{}
	if operator != nil {
		ended = operator.ended
	}
	for {
		select {
		case <-a.all:
			return nil
		case <-ended:
			return operator.alive()
		case <-ctx.Done():
			return fmt.Errorf("%d of %d are available: %w%s", a.count(), s.n, context.Cause(ctx), s.laggard(context.WithoutCancel(ctx), a))
		case <-tell.C:
			if n := a.count(); n != told {
				told = n
				s.sayf("%d available", n)
			}
		}
	}
}

// laggard describes one cluster that is not available, for the error.
func (s *scene) laggard(ctx context.Context, a *arrivals) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, p := range s.places {
		a.mu.Lock()
		_, arrived := a.at[p.namespace+"/"+p.name]
		a.mu.Unlock()
		if arrived {
			continue
		}
		obj, err := s.dynamic.Resource(dorisClusters).Namespace(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return fmt.Sprintf("; %s/%s: %v", p.namespace, p.name, err)
		}
		text, _ := json.Marshal(obj.Object["status"]) // came as JSON
		return fmt.Sprintf("; the status of %s/%s is %s", p.namespace, p.name, text)
	}
	return ""
}

// watchIdle counts what the operator does when there is nothing to do.
func (s *scene) watchIdle(ctx context.Context, operator *operator, m *measured) error {
	s.sayf("idle for %s", s.idle)
	mark, err := s.cluster.Audit().Mark()
	if err != nil {
		return err
	}
	before, err := operator.measure(ctx)
	if err != nil {
		return err
	}
	if m.atRest, err = operator.settledMemory(ctx, s.idle); err != nil {
		return err
	}
	m.idleCPU = m.atRest.cpu - before.cpu
	m.idle, err = counts.Client{Log: s.cluster.Audit(), Agent: operatorAgent}.Since(mark)
	return err
}

// addForeign tells what ConfigMaps and Secrets cost that concern nobody: in a
// running operator, and in one that starts with them there. Each is compared
// with an operator that was started anew without them.
func (s *scene) addForeign(ctx context.Context, operator *operator, m *measured) (*operator, error) {
	f := &foreignMemory{objects: 2 * s.options.foreign}
	s.sayf("adding %d foreign objects of %d bytes", f.objects, s.foreignSize)
	operator, err := s.restart(ctx, operator)
	if err != nil {
		return operator, err
	}
	if f.before, err = operator.settledMemory(ctx, memoryOver); err != nil {
		return operator, err
	}
	mark, err := s.cluster.Audit().Mark()
	if err != nil {
		return operator, err
	}
	if err := createForeign(ctx, s.client, s.options.foreign, s.foreignSize); err != nil {
		return operator, err
	}
	if f.live, err = operator.settledMemory(ctx, memoryOver); err != nil {
		return operator, err
	}
	if f.requestsMeantime, err = (counts.Client{Log: s.cluster.Audit(), Agent: operatorAgent}).Since(mark); err != nil {
		return operator, err
	}
	if operator, err = s.restart(ctx, operator); err != nil {
		return operator, err
	}
	f.restarted, err = operator.settledMemory(ctx, memoryOver)
	m.foreign = f
	return operator, err
}

// memoryOver is how long memory is watched for its least. The Go runtime
// gives memory back to the system in the background, over seconds.
const memoryOver = 20 * time.Second

// restart replaces the operator by a new one that has settled.
func (s *scene) restart(ctx context.Context, operator *operator) (*operator, error) {
	operator.stop()
	next, err := startOperator(ctx, s.options, s.cluster.Kubeconfig())
	if err != nil {
		return operator, err
	}
	_, err = counts.Client{Log: s.cluster.Audit(), Agent: operatorAgent}.Settle(ctx, s.quiet)
	return next, err
}
