package truth

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/dial"
	"github.com/fairlead-dev/fairlead/internal/operator"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/simnode"
	"github.com/fairlead-dev/fairlead/test/story"
)

// agent is the user agent of the operator.
const agent = "fairlead/"

// pace is how plans are held against what happens.
type pace struct {
	// lanes are sequences of edits that run side by side, and edits how many edits one
	// cluster gets.
	lanes, edits int
	// patience bounds one edit, and belated is how late the operator may hear of it on a
	// machine that is busy. They are no measures of speed.
	patience, belated time.Duration
}

var (
	simulated  = pace{lanes: 6, edits: 5, patience: 5 * time.Minute, belated: 20 * time.Second}
	onRealNode = pace{lanes: 2, edits: 5, patience: 8 * time.Minute, belated: time.Minute}
)

// nodesVariable says with "real" that Pods run on a real node.
const nodesVariable = "FAIRLEAD_TRUTH_NODES"

func onNode() bool { return os.Getenv(nodesVariable) == "real" }

// paced is the pace of this run.
func paced() pace {
	if onNode() {
		return onRealNode
	}
	return simulated
}

// plansVariable says how many plans are held against what happens.
const plansVariable = "FAIRLEAD_TRUTH_PLANS"

// wanted is how many plans there shall be at least; none unless somebody says so.
func wanted() int {
	n, err := strconv.Atoi(os.Getenv(plansVariable))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

func TestMain(m *testing.M) {
	flag.Parse()
	each := paced().lanes * paced().edits
	checks := max(1, (wanted()+each-1)/each)
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(checks), "rapid.shrinktime": "3m"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	nodes := cluster.None
	if onNode() {
		nodes = cluster.Real
	}
	clustertest.Main(m, cluster.Options{Nodes: nodes})
}

// stage is what all lanes share: a control plane with simulated nodes and one
// operator.
var stage struct {
	once    sync.Once
	client  client.WithWatch
	cluster *cluster.Cluster
	err     error
	// plans that were held against what happened, and what became of them.
	plans, refused, held, replaced atomic.Int64
	names                          atomic.Int64
}

func setStage(t *testing.T) {
	t.Helper()
	c := clustertest.Shared(t)
	stage.once.Do(func() { stage.cluster, stage.err = c, setUp(t, c) })
	if stage.err != nil {
		t.Fatal(stage.err)
	}
}

func setUp(t *testing.T, c *cluster.Cluster) error {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	scheme, err := story.Scheme()
	if err != nil {
		return err
	}
	admin := c.RESTConfig()
	admin.QPS = -1
	if stage.client, err = client.NewWithWatch(admin, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if onNode() {
		return runsOnNode(t, c)
	}
	return runsHere(context.Background(), c)
}

// runsHere has the operator in this process, and simulated nodes.
func runsHere(ctx context.Context, c *cluster.Cluster) error {
	if err := story.Install(ctx, stage.client, "../../config/install/fairlead.yaml", func(kind string) bool { return kind != "Deployment" }); err != nil {
		return err
	}
	if _, err := simnode.Start(ctx, c.RESTConfig(), simnode.Options{
		Nodes: 6, Start: simnode.Fixed(50 * time.Millisecond), Ready: simnode.Fixed(50 * time.Millisecond),
		// A Pod that is gone at once stays disrupted for minutes in the eyes of the disruption controller.
		Stop: simnode.Fixed(300 * time.Millisecond),
	}); err != nil {
		return err
	}
	if err := story.AwaitKind(ctx, stage.client, paced().patience); err != nil {
		return err
	}
	direct, err := dial.Via("")
	if err != nil {
		return err
	}
	cfg := c.RESTConfig()
	cfg.QPS = -1
	go func() {
		err := operator.Run(ctx, cfg, operator.Options{
			Systems: operator.SystemNames(), MetricsAddress: "0", HealthAddress: "0", Workers: 16, Dial: direct, Log: logr.Discard(),
			Around: operator.Around{Doris: func(d operator.Doris) operator.Doris {
				return d.(*doris.System).WithPause(time.Millisecond)
			}},
		})
		fmt.Fprintln(os.Stderr, "the operator ended:", err)
	}()
	return nil
}
