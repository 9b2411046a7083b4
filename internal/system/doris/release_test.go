package doris

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

func (w *world) annotate(key, value string) {
	if w.dc.Annotations == nil {
		w.dc.Annotations = map[string]string{}
	}
	w.dc.Annotations[key] = value
}

// TestRelease hands a cluster back that was taken over and changed since.
func TestRelease(t *testing.T) {
	t.Parallel()
	w := legacy(t, threeByThree, nil)
	w.settle()
	w.edit(image("2"))
	w.settle()
	w.evicts = nil
	before := templates(w)
	w.annotate(meta.AnnotationRelease, "true")
	w.settle()
	w.gone(t, nil, "handed back")
	if diff := cmp.Diff(before, templates(w)); diff != "" {
		t.Errorf("templates (-before +after):\n%s", diff)
	}
	for _, name := range []string{"doris-fe", "doris-be"} {
		set := w.set(name)
		if set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
			t.Errorf("%s: strategy %v", name, set.Spec.UpdateStrategy)
		}
		for key := range set.Annotations {
			if strings.HasPrefix(key, meta.Prefix) {
				t.Errorf("%s still has annotation %s", name, key)
			}
		}
		for _, m := range set.ManagedFields {
			if m.Manager == FieldManager && m.Operation == metav1.ManagedFieldsOperationApply {
				t.Errorf("%s: fields still belong to %s", name, m.Manager)
			}
		}
	}
	if got := condition(w.dc, meta.ConditionReleased); !strings.HasPrefix(got, "True") {
		t.Errorf("Released is %q", got)
	}
	// Nothing is done until the annotation is gone.
	version := w.store.Now().Version
	w.edit(image("3"))
	w.settle()
	if now := w.store.Now().Version; now != version {
		t.Errorf("%d writes after the hand-back", now-version)
	}
	// It comes back: what is there counts, and the image is held as found.
	delete(w.dc.Annotations, meta.AnnotationRelease)
	w.settle()
	w.gone(t, nil, "taken over again")
	w.edit(image("4"))
	w.settle()
	w.gone(t, backends, "edited after that")
}

// TestReleaseInTheMiddleOfARoll hands back while Pods are on an older template.
func TestReleaseInTheMiddleOfARoll(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.edit(image("2"))
	w.reconcile()
	w.controllers()
	w.annotate(meta.AnnotationRelease, "true")
	w.settle()
	w.gone(t, nil, "not handed back")
	if got := w.set("doris-be").Spec.UpdateStrategy.Type; got != appsv1.OnDeleteStatefulSetStrategyType {
		t.Errorf("strategy %s: the controller would replace the Pods", got)
	}
	if got := condition(w.dc, meta.ConditionStalled); !strings.Contains(got, "doris-be-0, doris-be-1, doris-be-2") {
		t.Errorf("Stalled is %q", got)
	}
	delete(w.dc.Annotations, meta.AnnotationRelease)
	w.settle()
	w.gone(t, backends, "the roll ends")
}

// TestFrontendsComeBackOverTheirClaims makes a cluster again whose claims are
// still there: all frontends start, since they know each other.
func TestFrontendsComeBackOverTheirClaims(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		claims []string
		want   int32
	}{
		"claims of all":         {[]string{"meta-doris-fe-0", "meta-doris-fe-1", "meta-doris-fe-2"}, 3},
		"claim of the first":    {[]string{"meta-doris-fe-0"}, 1},
		"no claims":             {nil, 1},
		"claims of another one": {[]string{"meta-other-fe-0", "meta-other-fe-1"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, threeByThree)
			for _, claim := range tc.claims {
				_, err := w.store.Create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: claim, Labels: SelectorLabels("doris", dorisv1.ComponentFE),
				}}, "kube-controller-manager")
				w.must(err)
			}
			w.reconcile()
			if got := *w.set("doris-fe").Spec.Replicas; got != tc.want {
				t.Errorf("%d frontends, want %d", got, tc.want)
			}
		})
	}
}
