package doris

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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
}

// Reaching returns the system with a way to the nodes of clusters. Without one it
// plans without what they would say, and changes nothing in them.
func (s *System) Reaching(nodes Nodes, now func() time.Time) *System {
	return &System{engine: s.engine, future: s.future, asker: newAsker(nodes, now)}
}

// WithFuture returns the system as a newer version of the operator would be that
// has one more revision of the rendering, which differs by change. It is for
// tests of upgrades.
func (s *System) WithFuture(change func(*appsv1.StatefulSet)) *System {
	return &System{engine: s.engine, future: change, asker: s.asker}
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
		}
	}
	return fmt.Errorf("doris offers no operation %T", op)
}

// Explain says in fields of the DorisCluster what the API server refused.
func (s *System) Explain(dc *dorisv1.DorisCluster, applied client.Object, err error) []plan.Finding {
	return TranslateRefusal(dc, applied, err)
}
