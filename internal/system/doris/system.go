package doris

import (
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// FieldManager owns the fields that are rendered for a DorisCluster.
const FieldManager = "fairlead-doriscluster"

// System is the DorisCluster kind.
type System struct {
	engine *diff.Engine
}

// New returns the system; it compares objects by engine.
func New(engine *diff.Engine) *System { return &System{engine: engine} }

// Execute carries out an operation on the database. None is planned yet.
func (s *System) Execute(_ context.Context, _ World, op plan.Operation) error {
	return fmt.Errorf("doris offers no operation %T", op)
}
