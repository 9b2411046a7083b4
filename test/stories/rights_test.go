package stories

import (
	"testing"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/story"
)

// usesItsRights holds that the story had the operator use the rights that the table
// in package story says it does.
func (s *scene) usesItsRights(mark audit.Mark) {
	s.Helper()
	if s.op == nil || s.Failed() || s.Skipped() {
		return
	}
	requests, err := s.cluster.Audit().Since(mark)
	if err != nil {
		s.Fatal(err)
	}
	if err := story.CheckExercised(root, "stories/"+s.Name(), story.Using{
		Account: "system:serviceaccount:" + story.SystemNamespace + ":" + story.AccountName,
		Own:     story.SystemNamespace, Works: []string{s.namespace}, Lease: story.AccountName,
	}, requests); err != nil {
		s.Error(err)
	}
}

// TestListsInsteadOfStreams runs the operator as against an API server that cannot
// stream a list: it lists what is there and watches from then on. What was there
// before it counts as what comes later.
func TestListsInsteadOfStreams(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create(small)
	s.operate(func(o *settings) { o.Lists = true })
	s.settled("doris")
	oursIsPutBack(s)
}
