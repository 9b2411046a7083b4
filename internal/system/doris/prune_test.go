package doris

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// withContent is a cluster whose backends read a ConfigMap.
func withContent(policy string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: be-conf}\ndata: {be.conf: \"a = 0\\n\"}\n---\n" + strings.Replace(strings.Replace(threeByThree,
		"beSpec: {", "beSpec: {configMapInfo: {configMapName: be-conf, resolveKey: be.conf}, ", 1), "spec:\n", "spec:\n  configUpdatePolicy: "+policy+"\n", 1)
}

// copies are the copies of ConfigMaps that are there, by their content.
func copies(w *world) []string {
	var out []string
	for _, o := range w.store.Now().List(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "shop") {
		if cm := o.(*corev1.ConfigMap); cm.Annotations[labelCopy] != "" {
			out = append(out, strings.TrimSpace(cm.Data["be.conf"]))
		}
	}
	slices.Sort(out)
	return out
}

func revisions(w *world) []string {
	var out []string
	for _, o := range w.store.Now().List(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), "shop") {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return out
}

func (w *world) content(n int) {
	stranger(w, "be-conf", &corev1.ConfigMap{}, func(cm *corev1.ConfigMap) { cm.Data["be.conf"] = fmt.Sprintf("a = %d\n", n) })
}

func TestWhatNothingNamesIsTakenAwayWhenARollIsOver(t *testing.T) {
	t.Parallel()
	w := settled(t, withContent("Restart"))
	for n := range 5 {
		w.content(n + 1)
		w.reconcile() // the template has each of them, and no Pod has gone yet
		w.controllers()
	}
	if got := copies(w); len(got) < 5 {
		t.Fatalf("before the roll is over there are the copies %q", got)
	}
	p := w.settle()
	if diff := cmp.Diff([]string{"a = 5"}, copies(w)); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
	want := []string{w.set("doris-be").Status.UpdateRevision, w.set("doris-fe").Status.UpdateRevision}
	if diff := cmp.Diff(want, revisions(w)); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	if len(p.Changes) > 0 {
		t.Errorf("then there is nothing to do:\n%s", printPlan(p))
	}
}

func TestWhatSomethingNamesStays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		hold func(w *world)
		want []string
	}{
		{"a Pod that does not come up keeps its content, and so does what the others have", func(w *world) {
			w.broken["doris-be-2"] = true
		}, []string{"a = 0", "a = 1"}},
		{"a Pod that is on an older template keeps its content", func(w *world) {
			w.reconcile()
			w.controllers()
			w.kubelet()
		}, []string{"a = 0", "a = 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := settled(t, withContent("Restart"))
			w.content(1)
			c.hold(w)
			for range 4 {
				w.reconcile()
				w.controllers()
			}
			if diff := cmp.Diff(c.want, copies(w)); diff != "" {
				t.Errorf("copies (-want +got):\n%s", diff)
			}
			if got := revisions(w); len(got) != 3 {
				t.Errorf("revisions %q", got)
			}
		})
	}
}

func TestAConvergedClusterAsksForNoRevisions(t *testing.T) {
	t.Parallel()
	w := settled(t, withContent("Restart"))
	w.content(1)
	w.settle()
	_, observed := w.plan(w.store.Now())
	if observed.Revisions != nil {
		t.Error("the revisions were asked for")
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	w.settle()
	if _, observed = w.plan(w.store.Now()); observed.Revisions != nil {
		t.Error("the revisions were asked for after the roll")
	}
}

func TestAnOrphanedCopyIsTakenAway(t *testing.T) {
	t.Parallel()
	w := settled(t, withContent("Restart"))
	orphan := copyOf(w.dc, &corev1.ConfigMap{Data: map[string]string{"be.conf": "b = 1"}}, "doris-be-conf-orphan")
	orphan.Annotations[labelCopy] = "be-conf"
	_, err := w.store.Create(orphan, FieldManager)
	w.must(err)
	p := w.reconcile()
	if diff := cmp.Diff([]string{"a = 0"}, copies(w)); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
	if len(p.Changes) > 0 || slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Target().Kind == "ControllerRevision" }) {
		t.Errorf("then there is nothing to do:\n%s", printPlan(p))
	}
}
