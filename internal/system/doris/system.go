package doris

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// FieldManager owns the fields that are rendered for a DorisCluster.
const FieldManager = "fairlead-doriscluster"

// UpstreamLease is the name of the lease that the existing operator holds while it
// is at work.
const UpstreamLease = "e1370669.selectdb.com"

// System is the DorisCluster kind.
type System struct {
	engine *diff.Engine
	future func(*appsv1.StatefulSet)
	// asker asks the nodes of clusters; nil where they cannot be reached.
	asker *asker
	// pause is how long a roll watches the first Pod of a component, where tuned does
	// not say it; zero means rollPause.
	pause time.Duration
	// tuned says what holds for a cluster; nil where nothing does.
	tuned func(namespace string, annotations map[string]string) Tuning
	// digests reads Secrets and compares them; nil where they cannot be read.
	digests *digester
}

// rollPause is how long the first Pod of a component that was replaced has to serve
// before the next one goes, and all that were replaced before another component begins.
const rollPause = 10 * time.Second

// WithPause returns the system with another pause in rolls.
func (s *System) WithPause(pause time.Duration) *System {
	out := *s
	out.pause = pause
	return &out
}

// Tuning are options of the operator's configuration as they are for a cluster.
// They say when something happens, and never what.
type Tuning struct {
	// RollPause is how long a roll watches the first Pod of a component, and
	// DatabaseInterval how often a database in which nothing moves is asked.
	RollPause, DatabaseInterval time.Duration
	// Faults say which annotations of the cluster are not followed and why.
	Faults []string
}

// TunedBy returns the system with options that tuned tells for each cluster, by
// its namespace and annotations.
func (s *System) TunedBy(tuned func(namespace string, annotations map[string]string) Tuning) *System {
	out := *s
	out.tuned = tuned
	return &out
}

// tuning are the options of a cluster.
func (s *System) tuning(dc *dorisv1.DorisCluster) Tuning {
	var t Tuning
	if s.tuned != nil {
		t = s.tuned(dc.Namespace, dc.Annotations)
	}
	t.RollPause = cmp.Or(t.RollPause, s.pause, rollPause)
	t.DatabaseInterval = cmp.Or(t.DatabaseInterval, askEvery)
	return t
}

// Reaching returns the system with a way to the nodes of clusters. Without one it
// plans without what they would say, and changes nothing in them.
func (s *System) Reaching(nodes Nodes, now func() time.Time) *System {
	out := *s
	out.asker = newAsker(nodes, now)
	return &out
}

// Counting has each call to a node or a database told: which one (members, change,
// settings, set, poll), and how it ended (ok, denied, refused, unreachable).
func (s *System) Counting(counted func(call, outcome string)) *System {
	if s.asker != nil {
		s.asker.counted = counted
	}
	return s
}

// WithFuture returns the system as a newer version of the operator would be that
// has one more revision of the rendering, which differs by change. It is for
// tests of upgrades.
func (s *System) WithFuture(change func(*appsv1.StatefulSet)) *System {
	out := *s
	out.future = change
	return &out
}

// WakeBy sets what reconciles the clusters of a namespace (empty: of all) when a node
// or a database has answered that took its time. Without it answers are waited for.
func (s *System) WakeBy(namespace string, wake func(types.NamespacedName)) {
	if s.asker != nil {
		s.asker.beside.wakeBy(namespace, wake)
	}
}

// latest is the newest revision of the rendering.
func (s *System) latest() int {
	if s.future != nil {
		return LatestRevision + 1
	}
	return LatestRevision
}

// New returns the system; it compares objects by engine.
func New(engine *diff.Engine) *System { return &System{engine: engine} }

// Execute carries out an operation on the database.
func (s *System) Execute(ctx context.Context, _ World, op plan.Operation) error {
	if s.asker != nil {
		switch o := op.(type) {
		case setSettings:
			return s.asker.set(ctx, o)
		case changeMember:
			return s.asker.changes(ctx, o)
		case routeBackend:
			return s.asker.routes(ctx, o)
		case setTags:
			return s.asker.tags(ctx, o)
		case setBalance:
			return s.asker.balances(ctx, o)
		case dumpMetadata:
			return s.asker.dump(ctx, o)
		}
	}
	return fmt.Errorf("doris offers no operation %T", op)
}

// Explain says in fields of the DorisCluster what the API server refused.
func (s *System) Explain(dc *dorisv1.DorisCluster, applied client.Object, err error) []plan.Finding {
	if claim, is := applied.(*corev1.PersistentVolumeClaim); is {
		return explainClaim(dc, claim, err)
	}
	return TranslateRefusal(dc, applied, err)
}
