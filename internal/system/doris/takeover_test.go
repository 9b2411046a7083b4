package doris

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// upstream is the field manager of the operator that made the cluster before us.
const upstream = "doris-operator"

// legacy is a cluster that another operator made, with all Pods ready. change may
// alter a set before it is made.
func legacy(t *testing.T, manifest string, change func(*appsv1.StatefulSet)) *world {
	t.Helper()
	w := newWorld(t, manifest)
	observed, err := w.system.Observe(t.Context(), view{w.store.Now()}, w.dc)
	w.must(err)
	objects, findings := Desired(w.dc, Inputs{Revision: 0, ConfigMaps: observed.ConfigMaps, Secrets: observed.Secrets, DataInCompute: true})
	if refused(findings) {
		t.Fatalf("the cluster is refused: %v", findings)
	}
	for _, c := range objects.Components {
		for _, s := range c.Services {
			delete(s.Annotations, meta.AnnotationInputs)
			s.OwnerReferences[0].Controller = nil
			_, err := w.store.Create(s, upstream)
			w.must(err)
		}
		set := c.StatefulSet
		set.Annotations = map[string]string{"app.doris.components/hash": "1"}
		set.OwnerReferences[0].Controller = nil
		set.Spec.Replicas = new(c.FullReplicas)
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))},
		}
		if change != nil {
			change(set)
		}
		_, err := w.store.Create(set, upstream)
		w.must(err)
	}
	for range 3 {
		w.controllers()
		w.kubelet()
	}
	return w
}

func (w *world) set(name string) *appsv1.StatefulSet {
	return object(w, name, &appsv1.StatefulSet{})
}

func templates(w *world) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"doris-fe", "doris-be"} {
		set := w.set(name)
		text, err := json.Marshal([]any{set.Spec.Template, set.Spec.VolumeClaimTemplates, set.Spec.Replicas})
		w.must(err)
		out[name] = string(text)
	}
	return out
}

// heldSets are the digests of the held sets with the objects that they concern.
func heldSets(p plan.Plan) map[string][]string {
	out := map[string][]string{}
	for _, s := range p.HeldSets() {
		for _, c := range s.Changes {
			out[s.Approve] = append(out[s.Approve], c.Object.String()+" "+c.Path)
		}
	}
	return out
}

func (w *world) approve(digests ...string) {
	w.dc.Annotations = maps.Clone(w.dc.Annotations)
	if w.dc.Annotations == nil {
		w.dc.Annotations = map[string]string{}
	}
	w.dc.Annotations[meta.AnnotationApprove] = strings.Join(digests, ",")
}

// onlyDigest is the digest of the one held set that concerns an object.
func onlyDigest(t *testing.T, p plan.Plan, object string) string {
	t.Helper()
	var found []string
	for digest, changes := range heldSets(p) {
		if slices.ContainsFunc(changes, func(c string) bool { return strings.HasPrefix(c, object+" ") }) {
			found = append(found, digest)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d held sets concern %s:\n%s", len(found), object, printPlan(p))
	}
	return found[0]
}

func TestTakeoverMovesNothing(t *testing.T) {
	t.Parallel()
	w := legacy(t, threeByThree, nil)
	before := templates(w)
	p := w.settle()
	if diff := cmp.Diff(before, templates(w)); diff != "" {
		t.Errorf("templates (-before +after):\n%s", diff)
	}
	if len(w.evicts) > 0 {
		t.Errorf("Pods went: %v", w.evicts)
	}
	for _, name := range []string{"doris-fe", "doris-be"} {
		set := w.set(name)
		if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType || set.Spec.UpdateStrategy.RollingUpdate != nil {
			t.Errorf("%s: strategy %+v", name, set.Spec.UpdateStrategy)
		}
		if set.Annotations[meta.AnnotationRevision] != "0" || set.Annotations["app.doris.components/hash"] != "1" {
			t.Errorf("%s: annotations %v", name, set.Annotations)
		}
	}
	// What is held is the offer of our own rendering, and nothing else.
	for _, c := range p.Changes {
		if c.Object.Kind != "StatefulSet" && c.Object.Kind != "Pod" || c.Verdict != plan.VerdictHold || c.Reason != meta.ReasonConsentNeeded {
			t.Errorf("change %+v", c)
		}
	}
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %q", got)
	}
	want := []dorisv1.WorkloadStatus{
		{Name: "doris-fe", Records: recordsOf(object(w, "doris-fe", &appsv1.StatefulSet{}))},
		{Name: "doris-be", Records: recordsOf(object(w, "doris-be", &appsv1.StatefulSet{}))},
	}
	if diff := cmp.Diff(want, w.dc.Status.Workloads); diff != "" {
		t.Errorf("status.workloads (-want +got):\n%s", diff)
	}
}

func TestAfterTakeover(t *testing.T) {
	t.Parallel()
	withEnv := strings.Replace(threeByThree, `image: "apache/doris:be-1"`, `image: "apache/doris:be-1", envVars: [{name: A, value: a}, {name: B, value: b}], podLabels: {tier: gold}`, 1)
	env := func(set *appsv1.StatefulSet) map[string]string {
		out := map[string]string{}
		for _, e := range set.Spec.Template.Spec.Containers[0].Env {
			out[e.Name] = e.Value
		}
		return out
	}
	image := func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" }
	all := []string{"doris-be-2", "doris-be-1", "doris-be-0"}
	tests := map[string]struct {
		found  func(*appsv1.StatefulSet)
		then   func(*world)
		evicts []string
		check  func(testing.TB, *world)
	}{
		"an image is edited: the Pods of the component follow, one at a time": {
			then: func(w *world) { w.edit(image) }, evicts: all,
			check: func(t testing.TB, w *world) {
				t.Helper()
				if got := w.set("doris-be").Spec.Template.Spec.Containers[0].Image; got != "apache/doris:be-2" {
					t.Errorf("image %s", got)
				}
				if got := w.set("doris-be").Annotations[meta.AnnotationRevision]; got != "0" {
					t.Errorf("revision %q: a newer rendering rides along only when asked", got)
				}
			},
		},
		"a variable and a label are taken away: they are gone, although another manager wrote them": {
			then: func(w *world) {
				w.edit(func(s *dorisv1.DorisClusterSpec) {
					s.BeSpec.EnvVars, s.BeSpec.PodLabels = s.BeSpec.EnvVars[1:], nil
				})
			}, evicts: all,
			check: func(t testing.TB, w *world) {
				t.Helper()
				set := w.set("doris-be")
				if _, there := env(set)["A"]; there || env(set)["B"] != "b" {
					t.Errorf("env %v", env(set))
				}
				if _, there := set.Spec.Template.Labels["tier"]; there {
					t.Errorf("labels %v", set.Spec.Template.Labels)
				}
			},
		},
		"what was found in the template stays when the image is edited": {
			found: func(s *appsv1.StatefulSet) {
				c := &s.Spec.Template.Spec.Containers[0]
				c.Env = append(c.Env, corev1.EnvVar{Name: "BY_HAND", Value: "x"})
				c.StartupProbe.FailureThreshold = 999
				s.Spec.Template.Spec.PriorityClassName = "important"
			},
			then: func(w *world) { w.edit(image) }, evicts: all,
			check: func(t testing.TB, w *world) {
				t.Helper()
				set := w.set("doris-be")
				c := set.Spec.Template.Spec.Containers[0]
				if env(set)["BY_HAND"] != "x" || c.StartupProbe.FailureThreshold != 999 || set.Spec.Template.Spec.PriorityClassName != "important" {
					t.Errorf("lost what was found: %+v", c)
				}
				if c.Image != "apache/doris:be-2" {
					t.Errorf("image %s", c.Image)
				}
			},
		},
		"a variable is there twice: nothing collapses unasked": {
			found: func(s *appsv1.StatefulSet) {
				c := &s.Spec.Template.Spec.Containers[0]
				c.Env = append(c.Env, corev1.EnvVar{Name: "USER", Value: "root"})
			},
			then: func(*world) {},
			check: func(t testing.TB, w *world) {
				t.Helper()
				n := 0
				for _, e := range w.set("doris-be").Spec.Template.Spec.Containers[0].Env {
					if e.Name == "USER" {
						n++
					}
				}
				if n != 2 {
					t.Errorf("USER is there %d times", n)
				}
			},
		},
		"more replicas are asked for: they are made, and the template stays": {
			then: func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(5)) }) },
			check: func(t testing.TB, w *world) {
				t.Helper()
				if n := *w.set("doris-be").Spec.Replicas; n != 5 {
					t.Errorf("%d replicas", n)
				}
			},
		},
		"a person had scaled it: the number stays": {
			found: func(s *appsv1.StatefulSet) {
				if s.Name == "doris-be" {
					s.Spec.Replicas = new(int32(4))
				}
			},
			then: func(*world) {},
			check: func(t testing.TB, w *world) {
				t.Helper()
				if n := *w.set("doris-be").Spec.Replicas; n != 4 {
					t.Errorf("%d replicas", n)
				}
			},
		},
		"a restart is asked for that is newer": {
			then: func(w *world) { w.dc.Annotations["apache.doris.be/restartedAt"] = "2026-05-06T08:00:00Z" }, evicts: all,
		},
		"a restart is asked for in words": {
			then: func(w *world) { w.dc.Annotations["apache.doris.be/restartedAt"] = "now" },
		},
		"kubectl rollout restart": {
			then: func(w *world) {
				stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
					annotateTemplate(s, restartKubectl, "2026-05-06T09:00:00Z")
				})
			}, evicts: all,
		},
		"the set is deleted by hand: it is made again at the same revision": {
			then: func(w *world) {
				set := w.set("doris-be")
				w.must(w.store.Delete(keyOf(set), set.UID, false))
			},
			check: func(t testing.TB, w *world) {
				t.Helper()
				set := w.set("doris-be")
				if set.Annotations[meta.AnnotationRevision] != "0" || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
					t.Errorf("annotations %v, strategy %v", set.Annotations, set.Spec.UpdateStrategy)
				}
				if env(set)["USER"] != "root" || len(set.Spec.Template.Spec.InitContainers) != 1 {
					t.Errorf("another rendering: %v", env(set))
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := legacy(t, withEnv, tc.found)
			w.asks(map[string]string{"apache.doris.be/restartedAt": "2026-05-06T07:00:00Z"})
			w.settle()
			if len(w.evicts) > 0 {
				t.Fatalf("Pods went at takeover: %v", w.evicts)
			}
			tc.then(w)
			p := w.settle()
			if diff := cmp.Diff(tc.evicts, w.evicts); diff != "" {
				t.Errorf("Pods that went (-want +got):\n%s\n%s", diff, printPlan(p))
			}
			if tc.check != nil {
				tc.check(t, w)
			}
		})
	}
}

func TestHalfRolledAtTakeover(t *testing.T) {
	t.Parallel()
	w := legacy(t, threeByThree, nil)
	// The other operator had changed the image, one Pod had followed, and then it
	// was gone.
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Image = "apache/doris:be-0"
		s.Spec.Template.Spec.InitContainers[0].Image = "apache/doris:be-0"
	})
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-0" })
	pod := object(w, "doris-be-2", &corev1.Pod{})
	w.must(w.store.Delete(keyOf(pod), pod.UID, false))
	w.controllers()
	w.kubelet()
	p := w.settle()
	if len(w.evicts) > 0 {
		t.Fatalf("Pods went at takeover: %v", w.evicts)
	}
	digest := ""
	for d, changes := range heldSets(p) {
		if slices.Equal(changes, []string{"Pod/doris-be-0 ", "Pod/doris-be-1 "}) {
			digest = d
		}
	}
	if digest == "" {
		t.Fatalf("the remaining Pods are not held:\n%s", printPlan(p))
	}
	w.approve(digest)
	w.settle()
	if diff := cmp.Diff([]string{"doris-be-1", "doris-be-0"}, w.evicts); diff != "" {
		t.Errorf("Pods that went (-want +got):\n%s", diff)
	}
}
