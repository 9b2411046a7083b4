package doris

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// FieldManager owns the fields that are rendered for a DorisCluster.
const FieldManager = "fairlead-doriscluster"

// System is the DorisCluster kind.
type System struct {
	engine *diff.Engine
	future func(*appsv1.StatefulSet)
}

// WithFuture returns the system as a newer version of the operator would be that
// has one more revision of the rendering, which differs by change. It is for
// tests of upgrades.
func (s *System) WithFuture(change func(*appsv1.StatefulSet)) *System {
	return &System{engine: s.engine, future: change}
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

// Execute carries out an operation on the database. None is planned yet.
func (s *System) Execute(_ context.Context, _ World, op plan.Operation) error {
	return fmt.Errorf("doris offers no operation %T", op)
}
