package doris

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// waitOf is the first thing that a plan waits for.
func waitOf(p plan.Plan) plan.Wait {
	if waits := p.Waits(); len(waits) > 0 {
		return waits[0]
	}
	return plan.Wait{}
}

func TestTheFirstPodOfAComponentIsWatchedBeforeTheNextGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeByThree)
	w.clocked = true
	w.settle()
	w.now = w.now.Add(time.Hour)
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.FeSpec.Image, s.BeSpec.Image = "apache/doris:fe-2", "apache/doris:be-2"
	})
	for _, step := range []struct {
		pause time.Duration // time that passes before
		went  []string
		waits string
		left  time.Duration
	}{
		{0, []string{"doris-be-2"}, "replacing Pods: waiting for doris-be-2 to be good for 10s", rollPause},
		{4 * time.Second, []string{"doris-be-2"}, "replacing Pods: waiting for doris-be-2 to be good for 10s", 6 * time.Second},
		{6 * time.Second, []string{"doris-be-2", "doris-be-1", "doris-be-0"}, "replacing Pods: waiting for doris-be-1 to be good for 10s", rollPause},
		{10 * time.Second, []string{"doris-be-2", "doris-be-1", "doris-be-0", "doris-fe-2"}, "replacing Pods: waiting for doris-fe-2 to be good for 10s", rollPause},
		{10 * time.Second, []string{"doris-be-2", "doris-be-1", "doris-be-0", "doris-fe-2", "doris-fe-1", "doris-fe-0"}, "", 0},
	} {
		w.now = w.now.Add(step.pause)
		got := waitOf(w.settle())
		if diff := cmp.Diff(step.went, w.evicts); diff != "" {
			t.Fatalf("Pods that went (-want +got):\n%s", diff)
		}
		if got.Recheck != step.left || got.Message != step.waits {
			t.Errorf("after %v it waits %v: %q", w.evicts, got.Recheck, got.Message)
		}
	}
}

func TestThePauseOfARollCanBeChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, smallCluster)
	w.system = w.system.WithPause(time.Minute)
	w.clocked = true
	w.settle()
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-2" })
	if got := waitOf(w.settle()); got.Recheck != time.Minute {
		t.Errorf("it waits %v: %q", got.Recheck, got.Message)
	}
	w.now = w.now.Add(time.Minute)
	if w.settle(); len(w.evicts) != 1 {
		t.Errorf("%v went", w.evicts)
	}
}
