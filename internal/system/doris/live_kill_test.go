package doris

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// TestLiveKilledAtEveryStep kills the operator before and after each thing that it
// does about an edit. The end is the same as without: every process has the
// content, and no Pod went twice, or at all where none had to.
func TestLiveKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text, key, value string
		gone                   int
	}{
		{"a setting that can be set", "max_tablet_version_num = 4711\n", "max_tablet_version_num", "4711", 0},
		{"a setting that is read at the start", "max_tablet_version_num = 3000\nbrpc_num_threads = 4711\n", "brpc_num_threads", "4711", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kills := 0
			for n := 1; ; n += stride() {
				w := newWorld(t, liveSmall).withNodes()
				w.settle()
				w.conf("be", tc.text)
				if !w.killedAt(n) {
					break
				}
				kills++
				for range 3 {
					w.now = w.now.Add(2 * time.Minute)
					w.settle()
				}
				for _, pod := range liveMembers[1:] {
					if got := w.nodes.procs[pod].values[tc.key]; got != tc.value {
						t.Errorf("kill %d: %s has %s", n, pod, got)
					}
				}
				if len(w.evicts) != tc.gone {
					t.Errorf("kill %d: gone are %v", n, w.evicts)
				}
				if got := condition(w.dc, meta.ConditionConfigurationInSync); !strings.HasPrefix(got, "True") {
					t.Errorf("kill %d: ConfigurationInSync is %q", n, got)
				}
			}
			if kills*stride() < 6 {
				t.Errorf("killed %d times only", kills)
			}
			t.Logf("killed at %d points", kills)
		})
	}
}

// killedAt lets everybody act until the operator is killed at its nth point, which
// are before and after each step. It tells whether there is such a point.
func (w *world) killedAt(nth int) bool {
	w.Helper()
	point := 0
	for range 40 {
		before := w.store.Now().Version
		p, _ := w.plan(w.store.Now())
		for _, s := range p.Steps {
			if _, waits := s.(plan.Wait); waits {
				break
			}
			for _, after := range []bool{false, true} {
				if after {
					w.must(w.step(s))
				}
				if point++; point == nth {
					w.system = New(testEngine).Reaching(w.nodes, func() time.Time { return w.now })
					return true
				}
			}
		}
		w.controllers()
		w.kubelet()
		if w.store.Now().Version == before && len(p.Steps) == 0 {
			return false
		}
	}
	w.Fatalf("it never settles: %s", fmt.Sprint(w.evicts))
	return false
}
