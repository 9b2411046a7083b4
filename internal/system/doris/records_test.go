package doris

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// remove deletes a set behind the operator's back, with its Pods.
func (w *world) remove(set string) {
	w.Helper()
	live := object(w, set, &appsv1.StatefulSet{})
	w.must(w.store.Delete(keyOf(live), live.UID, false))
	w.controllers()
}

func TestASetThatIsDeletedComesBackAsItWas(t *testing.T) {
	t.Parallel()
	t.Run("while a roll is stopped it has the template that was put back, and the change stays held", func(t *testing.T) {
		t.Parallel()
		w := settled(t, threeByThree)
		before := badRoll(t, w)
		held := w.reconcile().HeldSets()
		w.remove("doris-be")
		w.settle()
		if diff := cmp.Diff(before, w.templateOf("doris-be")); diff != "" {
			t.Errorf("the template (-before +got):\n%s", diff)
		}
		for _, pod := range []string{"doris-be-0", "doris-be-1", "doris-be-2"} {
			if got := w.image(pod); got != "apache/doris:be-1" {
				t.Errorf("%s has %s", pod, got)
			}
		}
		if diff := cmp.Diff(held, w.reconcile().HeldSets()); diff != "" {
			t.Errorf("held (-before +got):\n%s", diff)
		}
		if len(w.evicts) > 0 {
			t.Errorf("%v went", w.evicts)
		}
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		w.settle()
		if got := w.image("doris-be-0"); got != "apache/doris:be-2" {
			t.Errorf("mended, doris-be-0 has %s", got)
		}
	})
	t.Run("a change that was made meanwhile is rolled out like any other, and the claims are as they are asked for", func(t *testing.T) {
		t.Parallel()
		w := settled(t, threeByThree)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		w.remove("doris-be")
		p := w.reconcile()
		if got := w.templateOf("doris-be").Spec.Containers[0].Image; got != "apache/doris:be-2" {
			t.Errorf("the template has %s after\n%s", got, printPlan(p))
		}
		set := object(w, "doris-be", &appsv1.StatefulSet{})
		if good, known := readLastGood(set); known {
			t.Errorf("no Pod ran on it, and it would go back to %+v", good)
		}
	})
	t.Run("the resource repeats what the set remembers, once everything is written", func(t *testing.T) {
		t.Parallel()
		w := settled(t, threeByThree)
		badRoll(t, w)
		p := w.system.planner(w.dc, World{})
		if set := object(w, "doris-be", &appsv1.StatefulSet{}); !p.repeated(set) {
			t.Errorf("the status says %v", w.dc.Status.Workloads)
		}
		if set := object(w, "doris-fe", &appsv1.StatefulSet{}); !p.repeated(set) {
			t.Errorf("the status says %v", w.dc.Status.Workloads)
		}
		stranger(w, "doris-fe", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Annotations[meta.AnnotationConsents] = "9" })
		if p.repeated(object(w, "doris-fe", &appsv1.StatefulSet{})) {
			t.Error("it is said to be repeated before it is")
		}
	})
}

func TestRecordsThatAreTakenAwayAreRestored(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	badRoll(t, w)
	before := object(w, "doris-be", &appsv1.StatefulSet{})
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
		for key := range s.Annotations {
			if strings.HasPrefix(key, meta.Prefix) {
				delete(s.Annotations, key)
			}
		}
	})
	w.settle()
	after := object(w, "doris-be", &appsv1.StatefulSet{})
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		t.Errorf("the template (-before +got):\n%s", diff)
	}
	for _, key := range slices.Concat(remembered[:3], []string{meta.AnnotationRevision}) {
		if before.Annotations[key] != after.Annotations[key] {
			t.Errorf("%s is %q and was %q", key, after.Annotations[key], before.Annotations[key])
		}
	}
	if len(w.evicts) > 0 {
		t.Errorf("%v went", w.evicts)
	}
}

// repeated tells whether the status of the resource has what is remembered of a set
// now.
func (p planner) repeated(set *appsv1.StatefulSet) bool {
	now := map[string]string{}
	for key, value := range recordsOf(set) {
		now[meta.Prefix+key] = value
	}
	said, _ := inStatus(p.dc, set.Name)
	return maps.Equal(now, said)
}
