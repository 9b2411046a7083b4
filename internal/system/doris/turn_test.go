package doris

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

func upgradeBoth(s *dorisv1.DorisClusterSpec) {
	s.FeSpec.Image, s.BeSpec.Image = "apache/doris:fe-2", "apache/doris:be-2"
}

func TestAFrontendLostWhileBackendsRollComesBackAsItWas(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.edit(upgradeBoth)
	p, _ := w.plan(w.store.Now())
	for pod, want := range map[string]string{"doris-fe-1": "user restart-pod wait", "doris-be-1": "user restart-pod wait"} {
		if got := changesOf(p, "Pod/"+pod); !slices.Equal(got, []string{want}) {
			t.Errorf("of %s the plan says %q", pod, got)
		}
	}
	for _, c := range p.Changes {
		if c.Object.Name == "doris-fe" && c.Verdict == plan.VerdictApply && plan.InTemplate(c.Path) {
			t.Errorf("the template of the frontends is written at once: %+v", c)
		}
	}
	for range 100 {
		if w.moves(1); len(w.evicts) > 0 {
			break
		}
	}
	w.lose("doris-fe-1")
	if got := w.image("doris-fe-1"); got != "apache/doris:fe-1" {
		t.Errorf("a frontend that is lost while backends roll comes back with %s", got)
	}
	w.lives()
	w.rollEnds(append(slices.Clone(allBackends), "doris-fe-2", "doris-fe-1", "doris-fe-0")...)
	if w.db.balanceFlaps() {
		t.Errorf("balancing was put on between backends and frontends: %v", w.db.statements)
	}
}

// balanceFlaps tells whether balancing was stopped again after it had been put on.
func (d *databaseDouble) balanceFlaps() bool {
	on := false
	for _, s := range d.statements {
		switch {
		case strings.Contains(s, "disable_balance") && strings.Contains(s, "false"):
			on = true
		case on && strings.Contains(s, "disable_balance") && strings.Contains(s, "true"):
			return true
		}
	}
	return false
}

func TestFrontendsWaitForNobodyWhereTheyCannot(t *testing.T) {
	t.Parallel()
	t.Run("alone they roll at once", func(t *testing.T) {
		w := newWorld(t, threeByThree)
		w.settle()
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-2" })
		w.settle()
		if len(w.evicts) != 3 {
			t.Errorf("%v went", w.evicts)
		}
	})
	t.Run("a frontend that does not serve gets what mends it while backends roll", func(t *testing.T) {
		w := newWorld(t, threeByThree)
		w.settle()
		w.broken["doris-fe-1"] = true
		w.lose("doris-fe-1")
		w.edit(upgradeBoth)
		w.reconcile()
		if got := w.templateOf("doris-fe").Spec.Containers[0].Image; got != "apache/doris:fe-2" {
			t.Errorf("the template has %s", got)
		}
	})
	t.Run("backends that stop do not hold the template by a lie", func(t *testing.T) {
		w := newWorld(t, threeByThree)
		w.settle()
		badRoll(t, w)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-2" })
		w.settle()
		if got := w.templateOf("doris-fe").Spec.Containers[0].Image; got != "apache/doris:fe-1" {
			t.Errorf("the template has %s", got)
		}
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		w.settle()
		if got := w.templateOf("doris-fe").Spec.Containers[0].Image; got != "apache/doris:fe-2" {
			t.Errorf("mended, the template has %s", got)
		}
	})
}

// A set that is deleted in the middle of a roll comes back with what was stopped for the
// Pod that went, and that is given back.
func TestTheRecordOfARollOutlivesItsSet(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.edit(newBackends)
	stopped := func() bool {
		return slices.ContainsFunc(w.db.backends, func(b client.Backend) bool { return b.State.QueryDisabled })
	}
	for range 100 {
		if w.moves(1); stopped() {
			break
		}
	}
	w.moves(1)
	set := w.set("doris-be")
	if set.Annotations[meta.AnnotationRolling] == "" || !stopped() {
		t.Fatal("nothing is stopped")
	}
	w.db.lenient = true // its Pods go with it
	w.must(w.store.Delete(keyOf(set), set.UID, false))
	w.lives()
	for _, b := range w.db.backends {
		if b.State.QueryDisabled || b.State.LoadDisabled {
			t.Errorf("%s never gets its work back: %+v", b.Host, b.State)
		}
	}
	if text := w.set("doris-be").Annotations[meta.AnnotationRolling]; text != "" {
		t.Errorf("the roll is remembered for ever: %s", text)
	}
}

func TestASizeThatWasRefusedSaysNothingOfAnother(t *testing.T) {
	t.Parallel()
	w := withSizes(t)
	w.edit(func(s *dorisv1.DorisClusterSpec) { memory(s, "2Gi") })
	stranger(w, "doris-be-1", &corev1.Pod{}, func(pod *corev1.Pod) {
		pod.Annotations[meta.AnnotationResizeRefused] = `{"requests":{"memory":"9Gi"}}`
	})
	w.settle()
	if len(w.evicts) > 0 || len(w.sizes.resized) != 3 {
		t.Errorf("resized %v, replaced %v", w.sizes.resized, w.evicts)
	}
}

func TestRankOfFrontendsByTheStatus(t *testing.T) {
	t.Parallel()
	dc := &dorisv1.DorisCluster{}
	if got := RankOf(dc, dorisv1.ComponentFE, "doris-fe-0"); got != rankFollower {
		t.Errorf("nobody has said who is what, and the rank is %d", got)
	}
	dc.Status.FeStatus = &dorisv1.ComponentStatus{FollowerInstances: []string{"doris-fe-0", "doris-fe-1"}, MasterInstance: "doris-fe-1"}
	for pod, want := range map[string]int{"doris-fe-0": rankFollower, "doris-fe-1": rankMaster, "doris-fe-2": rankObserver} {
		if got := RankOf(dc, dorisv1.ComponentFE, pod); got != want {
			t.Errorf("%s has rank %d, want %d", pod, got, want)
		}
	}
	if got := RankOf(dc, dorisv1.ComponentBE, "doris-be-0"); got >= rankObserver {
		t.Errorf("a backend has rank %d", got)
	}
}

// A backend that shall leave, and cannot for now, is not replaced, and nobody waits for it.
func TestFrontendsDoNotWaitForBackendsThatLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeByThree)
	w.settle()
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(2)) })
	w.settle()
	w.edit(upgradeBoth)
	w.settle()
	for pod, want := range map[string]string{"doris-be-2": "be-1", "doris-be-0": "be-2", "doris-fe-0": "fe-2"} {
		if got := w.image(pod); got != "apache/doris:"+want {
			t.Errorf("%s has %s; Ready is %q", pod, got, condition(w.dc, meta.ConditionReady))
		}
	}
}

// Backends that refer to what is not there wait for a person, who has to be told.
func TestFrontendsAndBackendsThatLackSomething(t *testing.T) {
	t.Parallel()
	lacks := func(s *dorisv1.DorisClusterSpec) {
		s.BeSpec.ConfigMapInfo = dorisv1.ConfigMapInfo{ConfigMapName: "nowhere", ResolveKey: "be.conf"}
	}
	for name, c := range map[string]struct {
		edit func(w *world)
		went int
	}{
		"frontends are restarted all the same": {func(w *world) {
			w.edit(lacks)
			w.asks(map[string]string{restartKey(dorisv1.ComponentFE): "2026-05-06T00:00:00Z"})
		}, 3},
		"frontends get no version before them": {func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) {
				lacks(s)
				s.FeSpec.Image = "apache/doris:fe-2"
			})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, threeByThree)
			w.settle()
			c.edit(w)
			w.settle()
			if said := condition(w.dc, meta.ConditionStalled); len(w.evicts) != c.went || !strings.Contains(said, meta.ReasonMissingReference) || !strings.Contains(said, "nowhere") {
				t.Errorf("%v went; Stalled is %q, Ready %q", w.evicts, said, condition(w.dc, meta.ConditionReady))
			}
			w.evicts = nil
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.ConfigMapInfo = dorisv1.ConfigMapInfo{} })
			w.settle()
			if said := condition(w.dc, meta.ConditionReady); len(w.evicts) != 3-c.went || !strings.HasPrefix(said, "True") {
				t.Errorf("mended, %v went; Ready is %q", w.evicts, said)
			}
		})
	}
}
