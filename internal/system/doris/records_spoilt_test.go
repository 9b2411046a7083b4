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
	"github.com/fairlead-dev/fairlead/internal/plan"
)

func TestRecordsThatSomebodyChangesAreNotBelieved(t *testing.T) {
	t.Parallel()
	stop := func(t *testing.T, w *world) {
		t.Helper()
		badRoll(t, w)
		w.dc.Annotations = map[string]string{meta.AnnotationApprove: w.reconcile().HeldSets()[0].Approve}
		w.settle()
		w.evicts = nil
		if got := w.set("doris-be").Annotations[meta.AnnotationConsents]; got != "1" {
			t.Fatalf("%q consents are used up", got)
		}
	}
	for _, c := range []struct {
		name   string
		before func(*testing.T, *world)
		spoil  func(annotations map[string]string)
	}{
		{"another revision", nil, func(a map[string]string) { a[meta.AnnotationRevision] = "0" }},
		{"no revision", nil, func(a map[string]string) { delete(a, meta.AnnotationRevision) }},
		{"rendered from another spec", nil, func(a map[string]string) {
			a[meta.AnnotationAccepted] = strings.ReplaceAll(a[meta.AnnotationAccepted], "apache/doris:be-1", "apache/doris:be-0")
		}},
		{"rendered from another spec while a roll is stopped", stop, func(a map[string]string) {
			a[meta.AnnotationAccepted] = strings.ReplaceAll(a[meta.AnnotationAccepted], "apache/doris:be-1", "apache/doris:be-0")
		}},
		{"no consent was used", stop, func(a map[string]string) { delete(a, meta.AnnotationConsents) }},
		{"all at once", stop, func(a map[string]string) {
			maps.DeleteFunc(a, func(key, _ string) bool { return strings.HasPrefix(key, meta.Prefix) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, threeByThree)
			if c.before != nil {
				c.before(t, w)
			}
			held := w.reconcile().HeldSets()
			before := object(w, "doris-be", &appsv1.StatefulSet{})
			stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { c.spoil(s.Annotations) })
			p, _ := w.plan(w.store.Now())
			if !slices.ContainsFunc(p.Findings, func(f plan.Finding) bool { return f.Reason == reasonRecordsRestored }) {
				t.Errorf("it is not told:\n%s", printPlan(p))
			}
			p = w.settle()
			after := object(w, "doris-be", &appsv1.StatefulSet{})
			if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
				t.Errorf("the set (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(before.Annotations, after.Annotations); diff != "" {
				t.Errorf("what is remembered (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(held, p.HeldSets()); diff != "" {
				t.Errorf("held (-before +after):\n%s", diff)
			}
			w.went(t)
		})
	}
}

func TestASetThatIsAheadOfTheStatusIsBelieved(t *testing.T) {
	t.Parallel()
	rolling := func(t *testing.T, w *world) {
		t.Helper()
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		for range 50 {
			if w.reconcile(); len(w.evicts) > 0 {
				return
			}
			w.controllers()
		}
		t.Fatal("no roll begins")
	}
	for _, c := range []struct {
		name string
		// until is when the status was last written.
		until func(*testing.T, *world)
		then  func(*testing.T, *world)
	}{
		{"the template is another one", nil, func(_ *testing.T, w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		}},
		{"a roll is over", rolling, func(*testing.T, *world) {}},
		{"what failed is mended", func(t *testing.T, w *world) { t.Helper(); badRoll(t, w) }, func(_ *testing.T, w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-1" })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, threeByThree)
			if c.until != nil {
				c.until(t, w)
			}
			old := w.dc.DeepCopy().Status.Workloads
			c.then(t, w)
			w.settle()
			before := object(w, "doris-be", &appsv1.StatefulSet{})
			now := w.dc.DeepCopy().Status.Workloads
			w.evicts, w.dc.Status.Workloads = nil, old
			p, _ := w.plan(w.store.Now())
			if slices.ContainsFunc(p.Findings, func(f plan.Finding) bool { return f.Reason == reasonRecordsRestored }) || len(p.Steps) > 0 {
				t.Errorf("the status counts:\n%s", printPlan(p))
			}
			w.settle()
			if diff := cmp.Diff(before, object(w, "doris-be", &appsv1.StatefulSet{})); diff != "" {
				t.Errorf("the set (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(now, w.dc.Status.Workloads); diff != "" {
				t.Errorf("the status (-before +after):\n%s", diff)
			}
			w.went(t)
		})
	}
}
