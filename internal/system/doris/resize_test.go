package doris

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// sizesDouble are nodes that can resize Pods, a test double.
type sizesDouble struct {
	// refuses is what the node of each Pod says of another size.
	refuses map[string]string
	// invalid has the API server refuse resizes.
	invalid bool
	resized []string
}

// resize is pods/resize.
func (d *sizesDouble) resize(w *world, x plan.Patch) error {
	pod := x.Object.(*corev1.Pod)
	body, err := apply.PatchBody(pod, x.Fields)
	w.must(err)
	var said corev1.Pod
	w.must(json.Unmarshal(body, &said))
	if d.invalid { // as the writer does
		return w.merge(x.Object, x.Else, x.Manager)
	}
	d.resized = append(d.resized, pod.Name)
	now := object(w, pod.Name, &corev1.Pod{})
	if now.ResourceVersion != said.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("pods"), pod.Name, nil)
	}
	for i := range now.Spec.Containers {
		for _, c := range said.Spec.Containers {
			if now.Spec.Containers[i].Name == c.Name {
				now.Spec.Containers[i].Resources = c.Resources
			}
		}
	}
	_, err = w.store.Update(now, "kubelet")
	return err
}

// show lets the node of a Pod say which sizes its container has.
func (d *sizesDouble) show(pod *corev1.Pod) {
	if d == nil {
		return
	}
	c := &pod.Status.ContainerStatuses[0]
	why, refused := d.refuses[pod.Name]
	if !refused {
		c.Resources = pod.Spec.Containers[0].Resources.DeepCopy()
		return
	}
	c.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	if !sameSizes(c.Resources, &pod.Spec.Containers[0].Resources) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: why})
	}
}

func memory(s *dorisv1.DorisClusterSpec, size string) {
	s.BeSpec.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
}

func withSizes(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, threeByThree)
	w.sizes = &sizesDouble{}
	w.edit(func(s *dorisv1.DorisClusterSpec) { memory(s, "1Gi") })
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("a settled cluster has changes:\n%s", printPlan(p))
	}
	w.evicts = nil
	return w
}

func TestMoreMemoryReachesPodsInPlace(t *testing.T) {
	w := withSizes(t)
	before := podUIDs(w)
	for _, size := range []string{"2Gi", "3Gi"} {
		w.sizes.resized = nil
		w.edit(func(s *dorisv1.DorisClusterSpec) { memory(s, size) })
		p, _ := w.plan(w.store.Now())
		found := slices.ContainsFunc(p.Changes, func(c plan.Change) bool {
			return c.Effect == plan.EffectResizeOrRestart && c.Verdict == plan.VerdictApply && strings.Contains(c.Message, "memory requests: where the Pod finds room")
		})
		if !found {
			t.Fatalf("the plan is\n%s", printPlan(p))
		}
		if got := changesOf(p, "Pod/doris-be-1"); !slices.Equal(got, []string{"user resize, else restart-pod wait"}) {
			t.Errorf("Pod/doris-be-1: %v", got)
		}
		if p := w.settle(); len(p.Changes) > 0 {
			t.Fatalf("changes:\n%s", printPlan(p))
		}
		if want := []string{"doris-be-2", "doris-be-1", "doris-be-0"}; !slices.Equal(w.sizes.resized, want) {
			t.Errorf("resized %v", w.sizes.resized)
		}
	}
	if diff := cmp.Diff(before, podUIDs(w)); diff != "" || len(w.evicts) > 0 {
		t.Errorf("evicted %v: %s", w.evicts, diff)
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	w.settle()
	if len(w.evicts) != 3 {
		t.Errorf("a new image replaces %v", w.evicts)
	}
}

func TestAResizeThatIsRefusedReplacesThePod(t *testing.T) {
	for name, refuse := range map[string]func(*sizesDouble){
		"by the node":            func(d *sizesDouble) { d.refuses = map[string]string{"doris-be-1": corev1.PodReasonInfeasible} },
		"put off by the node":    func(d *sizesDouble) { d.refuses = map[string]string{"doris-be-1": corev1.PodReasonDeferred} },
		"by the API server, all": func(d *sizesDouble) { d.invalid = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := withSizes(t)
			refuse(w.sizes)
			w.edit(func(s *dorisv1.DorisClusterSpec) { memory(s, "2Gi") })
			for range 40 {
				w.reconcile()
				w.controllers()
				w.kubelet()
				if len(w.evicts) > 0 {
					w.sizes.refuses = nil // it comes up on another node
				}
			}
			if p := w.settle(); len(p.Changes) > 0 {
				t.Fatalf("changes:\n%s", printPlan(p))
			}
			want := []string{"doris-be-1"}
			if w.sizes.invalid {
				want = []string{"doris-be-2", "doris-be-1", "doris-be-0"}
			}
			if !slices.Equal(w.evicts, want) {
				t.Errorf("evicted %v, want %v", w.evicts, want)
			}
		})
	}
}

func TestWhatAResizeCannotDo(t *testing.T) {
	for name, edit := range map[string]func(*dorisv1.DorisClusterSpec){
		"CPU limit of a backend: it counts its cores at start": func(s *dorisv1.DorisClusterSpec) {
			s.BeSpec.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		},
		"a request that is taken away": func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Requests = nil },
		"another class of service": func(s *dorisv1.DorisClusterSpec) {
			s.FeSpec.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
		},
		"with another image": func(s *dorisv1.DorisClusterSpec) {
			memory(s, "2Gi")
			s.BeSpec.Image = "apache/doris:be-2"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withSizes(t)
			w.edit(edit)
			w.settle()
			if len(w.evicts) != 3 || len(w.sizes.resized) > 0 {
				t.Errorf("evicted %v, resized %v", w.evicts, w.sizes.resized)
			}
		})
	}
	t.Run("nodes that cannot", func(t *testing.T) {
		w := newWorld(t, threeByThree)
		w.edit(func(s *dorisv1.DorisClusterSpec) { memory(s, "1Gi") })
		w.settle()
		w.edit(func(s *dorisv1.DorisClusterSpec) { memory(s, "2Gi") })
		w.settle()
		if len(w.evicts) != 3 {
			t.Errorf("evicted %v", w.evicts)
		}
	})
}

func TestWhatAProcessTakesOfASize(t *testing.T) {
	for name, tc := range map[string]struct {
		kind           dorisv1.ComponentType
		what, resource string
		says           string
		ok             bool
	}{
		"the heap of a frontend is fixed":       {dorisv1.ComponentFE, "limits", "memory", "the process does not", true},
		"a backend asks for its memory again":   {dorisv1.ComponentBE, "limits", "memory", "asks again", true},
		"a backend counts its cores at start":   {dorisv1.ComponentBE, "limits", "cpu", "", false},
		"requests are for the scheduler":        {dorisv1.ComponentBE, "requests", "cpu", "finds room", true},
		"other resources cannot be resized":     {dorisv1.ComponentBE, "limits", "ephemeral-storage", "", false},
		"pools of a frontend are sized at once": {dorisv1.ComponentFE, "limits", "cpu", "sized its pools", true},
	} {
		if says, ok := takes(tc.kind, tc.what, tc.resource); ok != tc.ok || !strings.Contains(says, tc.says) {
			t.Errorf("%s: %q, %v", name, says, ok)
		}
	}
}

func TestQuietAfterAResize(t *testing.T) {
	w := withSizes(t)
	w.edit(func(s *dorisv1.DorisClusterSpec) { memory(s, "2Gi") })
	w.settle()
	set := object(w, "doris-be", &appsv1.StatefulSet{})
	if got := set.GetAnnotations()[meta.AnnotationResize]; got != "" {
		t.Errorf("it is still remembered: %s", got)
	}
}
