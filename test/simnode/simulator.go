package simnode

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// Simulator plays the kubelets of its nodes until it is stopped.
type Simulator struct {
	opts      Options
	client    kubernetes.Interface
	recorder  record.EventRecorder
	addresses *addressPool
	informers informers
	pods      workqueue.TypedRateLimitingInterface[types.NamespacedName]
	claims    workqueue.TypedRateLimitingInterface[types.NamespacedName]

	stop context.CancelFunc
	done sync.WaitGroup

	mu          sync.Mutex
	machines    map[types.NamespacedName]*machine
	lives       map[types.NamespacedName]uint64 // Pods of that name so far
	claimStates map[types.UID]*claimState
	mounts      map[types.NamespacedName]map[types.NamespacedName]mountRecord // claim → Pods
	waiters     map[waitKey]map[types.NamespacedName]bool
	mounted     map[types.NamespacedName]Volumes
	processes   map[types.NamespacedName]map[string]Process
	commands    map[types.NamespacedName][]command
	injected    []*Rule
	nodeRules   map[string]rules
	nodeIPs     map[string]string
}

// waitKey is a ConfigMap or Secret that Pods wait for.
type waitKey struct {
	namespace string
	reference
}

// Run simulates nodes until the context ends.
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	s, err := Start(ctx, cfg, opts)
	if err != nil {
		return err
	}
	<-ctx.Done()
	s.Stop()
	return nil
}

// Start makes the nodes and the storage class, and simulates them until the
// context ends or [Simulator.Stop] is called. The objects stay; a later Start
// takes them and their Pods over.
func Start(ctx context.Context, cfg *rest.Config, opts Options) (*Simulator, error) {
	s, err := newSimulator(cfg, opts)
	if err != nil {
		return nil, err
	}
	version, err := s.client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the server's version: %w", err)
	}
	if err := createStorage(ctx, s.client); err != nil {
		return nil, err
	}
	if err := createNodes(ctx, s.client, &s.opts, version.GitVersion); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	if err := s.startInformers(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	s.startWorkers(ctx)
	return s, nil
}

// Stop ends the simulation and waits until nothing of it runs any more. The
// objects in the cluster stay as they are.
func (s *Simulator) Stop() {
	s.stop()
	s.pods.ShutDown()
	s.claims.ShutDown()
	s.informers.shutdown()
	s.done.Wait()
}

func newSimulator(cfg *rest.Config, opts Options) (*Simulator, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.QPS, cfg.RateLimiter = UserAgent, -1, nil
	metadataClient, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make metadata client: %w", err)
	}
	cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	opts = opts.withDefaults()
	return &Simulator{
		opts: opts, client: client,
		addresses:   newAddressPool(opts.PodRange),
		informers:   newInformers(client, metadataClient),
		pods:        newQueue(opts),
		claims:      newQueue(opts),
		stop:        func() {},
		machines:    map[types.NamespacedName]*machine{},
		lives:       map[types.NamespacedName]uint64{},
		claimStates: map[types.UID]*claimState{},
		mounts:      map[types.NamespacedName]map[types.NamespacedName]mountRecord{},
		waiters:     map[waitKey]map[types.NamespacedName]bool{},
		mounted:     map[types.NamespacedName]Volumes{},
		processes:   map[types.NamespacedName]map[string]Process{},
		commands:    map[types.NamespacedName][]command{},
		nodeRules:   map[string]rules{},
		nodeIPs:     map[string]string{},
	}, nil
}

func newQueue(opts Options) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName](),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: opts.Clock},
	)
}

func (s *Simulator) startInformers(ctx context.Context) error {
	// Nodes first: a Pod is looked at only when its node is known.
	if err := s.informers.startNodes(ctx, s.handleNode()); err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.client.CoreV1().Events("")})
	s.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet"})
	return s.informers.start(ctx, handlers{
		pod: s.handlePod(), claim: s.handleClaim(), volume: s.handleVolume(ctx),
		configMap: s.handleContent(configMapKind), secret: s.handleContent(secretKind),
	})
}

func (s *Simulator) startWorkers(ctx context.Context) {
	for range s.opts.Workers {
		s.done.Go(func() { work(ctx, s.pods, s.syncPod, s.opts.Log.With("kind", "Pod")) })
	}
	for range max(1, s.opts.Workers/4) {
		s.done.Go(func() { work(ctx, s.claims, s.syncClaim, s.opts.Log.With("kind", "PersistentVolumeClaim")) })
	}
}

// Inject asks for a fault until the returned function is called.
func (s *Simulator) Inject(rule Rule) (remove func()) {
	held := &rule
	s.mu.Lock()
	s.injected = append(s.injected, held)
	s.mu.Unlock()
	s.enqueueAll()
	return func() {
		s.mu.Lock()
		for i, r := range s.injected {
			if r == held {
				s.injected = append(s.injected[:i:i], s.injected[i+1:]...)
				break
			}
		}
		s.mu.Unlock()
		s.enqueueAll()
	}
}

// RestartContainer ends the process of a Pod's containers (all whose name
// fits the pattern) with that exit code, as if it had exited by itself; it
// starts again in place.
func (s *Simulator) RestartContainer(namespace, pod, container string, exitCode int32, text string) {
	s.order(namespace, pod, command{container: container, exitCode: exitCode, text: text})
}

// Evict fails a Pod once, as a node does that runs out of memory. (Evictions
// through the API need nothing of this kind: they are deletions.)
func (s *Simulator) Evict(namespace, pod, message string) {
	s.order(namespace, pod, command{evict: true, text: message})
}

func (s *Simulator) order(namespace, pod string, c command) {
	key := types.NamespacedName{Namespace: namespace, Name: pod}
	s.mu.Lock()
	s.commands[key] = append(s.commands[key], c)
	s.mu.Unlock()
	s.pods.Add(key)
}

// Process tells what the last process of a container had read when it
// started. It is not found for a Pod that has not started or is gone.
func (s *Simulator) Process(namespace, pod, container string) (Process, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, found := s.processes[types.NamespacedName{Namespace: namespace, Name: pod}][container]
	return p, found
}

// Mounted tells what the ConfigMap, Secret, projected and downward API
// volumes of a Pod held when its containers last started, by volume and path;
// nil if the Pod has not started or is gone.
func (s *Simulator) Mounted(namespace, pod string) map[string]map[string]string {
	key := types.NamespacedName{Namespace: namespace, Name: pod}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mounted[key]
}

// eventTarget refers to a Pod or claim in an event.
func eventTarget(kind string, meta metav1.ObjectMeta) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: kind, Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
	}
}
