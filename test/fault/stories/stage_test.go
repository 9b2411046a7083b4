package stories

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/inpods"
	"github.com/fairlead-dev/fairlead/test/simnode"
	"github.com/fairlead-dev/fairlead/test/story"
)

// stage is what all runs share: one cluster with all that is installed, and no
// operator but those of the runs.
type stage struct {
	config *rest.Config
	client client.WithWatch
	nodes  *simnode.Simulator
	states *states
	token  string
	// active bounds the runs in which something happens, alive those that exist:
	// most of a run is waiting whether there is quiet.
	active, alive chan struct{}
	// told are stories as they went without a fault. Tests run one after the other.
	told map[string]*outcome
	// running are the processes in the Pods of namespaces (*inpods.Nodes).
	running sync.Map
}

var shared struct {
	once  sync.Once
	stage *stage
	err   error
}

func onStage(t *testing.T) *stage {
	t.Helper()
	c := clustertest.Shared(t)
	shared.once.Do(func() { shared.stage, shared.err = setStage(context.Background(), c.RESTConfig()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.stage
}

func setStage(ctx context.Context, cfg *rest.Config) (*stage, error) {
	ctrl.SetLogger(logr.Discard())
	cfg.QPS = -1
	scheme, err := story.Scheme()
	if err != nil {
		return nil, err
	}
	s := &stage{config: cfg, active: make(chan struct{}, atOnce()), alive: make(chan struct{}, 16), told: map[string]*outcome{}}
	if s.client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if s.states, err = newStates(cfg); err != nil {
		return nil, err
	}
	if err := story.Install(ctx, s.client, "../../../config/install/fairlead.yaml", func(kind string) bool { return kind != "Deployment" }); err != nil {
		return nil, err
	}
	if s.token, err = story.Token(ctx, cfg); err != nil {
		return nil, err
	}
	s.nodes, err = simnode.Start(ctx, cfg, simnode.Options{
		Nodes: 6, Start: simnode.Fixed(100 * time.Millisecond), Ready: simnode.Fixed(50 * time.Millisecond),
		// The disruption controller counts an evicted Pod that it never saw going as
		// disrupted for two minutes, and so the next one of its name.
		Stop: simnode.Fixed(500 * time.Millisecond),
		OnStart: func(p simnode.Process) {
			if n, has := s.running.Load(p.Namespace); has {
				n.(*inpods.Nodes).Start(ctx, p)
			}
		},
		OnStop: func(p simnode.Process) {
			if n, has := s.running.Load(p.Namespace); has {
				n.(*inpods.Nodes).Stop(p)
			}
		},
		Backoff: simnode.Backoff{First: 500 * time.Millisecond, Max: time.Second},
	})
	if err != nil {
		return nil, err
	}
	return s, story.AwaitKind(ctx, s.client, patience)
}

// atOnce is how many runs act at the same time.
func atOnce() int {
	if n, err := strconv.Atoi(os.Getenv("FAIRLEAD_FAULT_PARALLEL")); err == nil && n > 0 {
		return n
	}
	return 3
}

func (s *stage) namespace(ctx context.Context) (string, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fault-"}}
	if err := s.client.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("make a namespace: %w", err)
	}
	return ns.Name, nil
}

// clear deletes a namespace, without waiting.
func (s *stage) clear(ctx context.Context, namespace string) error {
	return s.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}
