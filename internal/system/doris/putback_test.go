package doris

import (
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

// lose takes a Pod away without asking anybody, as a node that is gone does.
func (w *world) lose(name string) {
	w.Helper()
	pod := object(w, name, &corev1.Pod{})
	w.must(w.store.Delete(keyOf(pod), pod.UID, false))
	w.controllers()
	w.kubelet()
}

func (w *world) image(pod string) string {
	w.Helper()
	return object(w, pod, &corev1.Pod{}).Spec.Containers[0].Image
}

func (w *world) templateOf(set string) corev1.PodTemplateSpec {
	w.Helper()
	return object(w, set, &appsv1.StatefulSet{}).Spec.Template
}

// badRoll brings a cluster to where a roll of backends has stopped.
func badRoll(t *testing.T, w *world) (before corev1.PodTemplateSpec) {
	t.Helper()
	before = w.templateOf("doris-be")
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-bad" })
	w.settle()
	if diff := cmp.Diff([]string{"doris-be-2"}, w.evicts); diff != "" {
		t.Fatalf("Pods that went (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, w.templateOf("doris-be")); diff != "" {
		t.Fatalf("the template was not put back as it was (-want +got):\n%s", diff)
	}
	w.evicts = nil
	return before
}

func TestTheTemplateIsPutBackWhenARollStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		then func(t *testing.T, w *world)
	}{
		{"the Pod that failed stays, the change is held with the reason, and the cluster is stalled", func(t *testing.T, w *world) {
			t.Helper()
			if got := w.image("doris-be-2"); got != "apache/doris:be-bad" {
				t.Errorf("the failed Pod has %s", got)
			}
			p := w.reconcile()
			held := p.HeldSets()
			if len(held) != 1 || held[0].Changes[0].Reason != meta.ReasonMemberFailed || !strings.Contains(held[0].Changes[0].Message, "doris-be-2 did not come up (be: ImagePullBackOff)") {
				t.Errorf("held: %+v", held)
			}
			if got := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(got, "True MemberFailed: replacing Pods: stopped, since doris-be-2 does not come up") {
				t.Errorf("Stalled is %q", got)
			}
			if got := changesOf(p, "Pod/doris-be-2"); len(got) != 1 || got[0] != "user restart-pod wait" {
				t.Errorf("of the failed Pod the plan says %q", got)
			}
		}},
		{"a Pod lost meanwhile comes back on the old template, and so does the failed one", func(t *testing.T, w *world) {
			t.Helper()
			for _, pod := range []string{"doris-be-0", "doris-be-2"} {
				w.lose(pod)
				w.settle()
				if got := w.image(pod); got != "apache/doris:be-1" {
					t.Errorf("%s came back with %s", pod, got)
				}
			}
			if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "False MemberFailed") {
				t.Errorf("all Pods run, and the spec is not carried out: Ready is %q", got)
			}
			if len(w.evicts) > 0 {
				t.Errorf("%v went", w.evicts)
			}
		}},
		{"a mended spec goes on by itself and replaces the Pod that never started", func(t *testing.T, w *world) {
			t.Helper()
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
			w.settle()
			if diff := cmp.Diff([]string{"doris-be-2", "doris-be-1", "doris-be-0"}, w.evicts); diff != "" {
				t.Errorf("Pods that went (-want +got):\n%s", diff)
			}
			set := object(w, "doris-be", &appsv1.StatefulSet{})
			for _, key := range []string{meta.AnnotationLastGood, meta.AnnotationFailed} {
				if set.Annotations[key] != "" {
					t.Errorf("%s is left", key)
				}
			}
		}},
		{"the old spec again replaces the failed Pod alone", func(t *testing.T, w *world) {
			t.Helper()
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-1" })
			w.settle()
			if diff := cmp.Diff([]string{"doris-be-2"}, w.evicts); diff != "" {
				t.Errorf("Pods that went (-want +got):\n%s", diff)
			}
		}},
		{"a consent tries the same again", func(t *testing.T, w *world) {
			t.Helper()
			w.lose("doris-be-2")
			w.settle()
			p := w.reconcile()
			w.asks(map[string]string{meta.AnnotationApprove: p.HeldSets()[0].Approve})
			w.settle()
			if diff := cmp.Diff([]string{"doris-be-2"}, w.evicts); diff != "" {
				t.Errorf("Pods that went (-want +got):\n%s", diff)
			}
			if got := w.templateOf("doris-be").Spec.Containers[0].Image; got != "apache/doris:be-1" {
				t.Errorf("after it failed again the template has %s", got)
			}
		}},
		{"a consent makes the Pod that failed again, and what it was like before does not count", func(t *testing.T, w *world) {
			t.Helper()
			failed := object(w, "doris-be-2", &corev1.Pod{}).UID
			p := w.reconcile()
			w.asks(map[string]string{meta.AnnotationApprove: p.HeldSets()[0].Approve})
			w.settle()
			if diff := cmp.Diff([]string{"doris-be-2"}, w.evicts); diff != "" {
				t.Errorf("Pods that went (-want +got):\n%s", diff)
			}
			if got := object(w, "doris-be-2", &corev1.Pod{}); got.UID == failed || w.image("doris-be-2") != "apache/doris:be-bad" {
				t.Errorf("it was not made again from what failed: %s", w.image("doris-be-2"))
			}
			if got := w.templateOf("doris-be").Spec.Containers[0].Image; got != "apache/doris:be-1" {
				t.Errorf("after it failed again the template has %s", got)
			}
		}},
		{"a second edit that fails too goes back to the template that ran", func(t *testing.T, w *world) {
			t.Helper()
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-bad-again" })
			w.settle()
			if got := w.templateOf("doris-be").Spec.Containers[0].Image; got != "apache/doris:be-1" {
				t.Errorf("the template has %s", got)
			}
		}},
		{"another component's template waits while it runs well", func(t *testing.T, w *world) {
			t.Helper()
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-2" })
			p := w.settle()
			if got := w.templateOf("doris-fe").Spec.Containers[0].Image; got != "apache/doris:fe-1" {
				t.Errorf("the frontends' template has %s", got)
			}
			if got := changesOf(p, "StatefulSet/doris-fe"); !slices.Contains(got, `spec.template.spec.containers[name="fe"].image user restart-pod wait`) {
				t.Errorf("of the frontends the plan says %q", got)
			}
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
			w.settle()
			if got := w.image("doris-fe-0"); got != "apache/doris:fe-2" {
				t.Errorf("after the backends were mended the frontends have %s", got)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := settled(t, threeByThree)
			badRoll(t, w)
			c.then(t, w)
		})
	}
}

func TestAFailedPodThatComesUpAfterAllGoesOn(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.broken["doris-be-2"] = true // its node cannot get the image for a while
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	w.settle()
	if got := w.templateOf("doris-be").Spec.Containers[0].Image; got != "apache/doris:be-1" {
		t.Fatalf("the template has %s", got)
	}
	delete(w.broken, "doris-be-2")
	w.settle()
	if diff := cmp.Diff([]string{"doris-be-2", "doris-be-1", "doris-be-0"}, w.evicts); diff != "" {
		t.Errorf("Pods that went (-want +got):\n%s", diff)
	}
}

func TestBothTemplatesGoBackWhenBothWereChanged(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.FeSpec.Image, s.BeSpec.Image = "apache/doris:fe-2", "apache/doris:be-bad"
	})
	w.settle()
	for set, want := range map[string]string{"doris-fe": "apache/doris:fe-1", "doris-be": "apache/doris:be-1"} {
		if got := w.templateOf(set).Spec.Containers[0].Image; got != want {
			t.Errorf("the template of %s has %s", set, got)
		}
	}
	w.lose("doris-fe-1")
	w.settle()
	if got := w.image("doris-fe-1"); got != "apache/doris:fe-1" {
		t.Errorf("a frontend that was lost came back with %s", got)
	}
}

func TestAFailureAfterTheRollPutsNothingBack(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	w.settle()
	w.broken["doris-be-1"] = true
	w.kubelet()
	w.settle()
	if got := w.templateOf("doris-be").Spec.Containers[0].Image; got != "apache/doris:be-2" {
		t.Errorf("the template has %s", got)
	}
}

func TestAContentThatFailedIsHeld(t *testing.T) {
	t.Parallel()
	w := settled(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: be-conf}\ndata: {be.conf: \"a = 1\\n\"}\n---\n"+strings.Replace(strings.Replace(threeByThree,
		"beSpec: {", "beSpec: {configMapInfo: {configMapName: be-conf, resolveKey: be.conf}, ", 1), "spec:\n", "spec:\n  configUpdatePolicy: Restart\n", 1))
	before := w.templateOf("doris-be")
	stranger(w, "be-conf", &corev1.ConfigMap{}, func(cm *corev1.ConfigMap) { cm.Data["be.conf"] = "a = 2\n" })
	w.broken["doris-be-2"] = true
	p := w.settle()
	if diff := cmp.Diff(before, w.templateOf("doris-be")); diff != "" {
		t.Fatalf("the template was not put back (-want +got):\n%s", diff)
	}
	if got := changesOf(p, "ConfigMap/be-conf"); len(got) != 1 || !strings.HasSuffix(got[0], "config restart-pod hold") {
		t.Errorf("of the content the plan says %q\n%s", got, printPlan(p))
	}
	w.broken["doris-be-2"] = false
	w.evicts = nil
	stranger(w, "be-conf", &corev1.ConfigMap{}, func(cm *corev1.ConfigMap) { cm.Data["be.conf"] = "a = 3\n" })
	w.settle()
	if diff := cmp.Diff([]string{"doris-be-2", "doris-be-1", "doris-be-0"}, w.evicts); diff != "" {
		t.Errorf("Pods that went after the content was mended (-want +got):\n%s", diff)
	}
}

// TestAFoundTemplateIsPutBackAsItWasFound is of a set that another operator made:
// its Pods must not count as outdated when an accepted edit is taken back.
func TestAFoundTemplateIsPutBackAsItWasFound(t *testing.T) {
	t.Parallel()
	w := legacy(t, threeByThree, handMade)
	w.settle()
	before := badRoll(t, w)
	if before.Annotations[meta.AnnotationTemplate] != "" {
		t.Fatal("a found template has no stamp")
	}
	w.lose("doris-be-0")
	if p := w.settle(); strings.Contains(printPlan(p), "in the middle of a roll") {
		t.Errorf("the failed Pod counts as one of a roll that was found:\n%s", printPlan(p))
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-1" })
	w.settle()
	if diff := cmp.Diff([]string{"doris-be-2"}, w.evicts); diff != "" {
		t.Errorf("Pods that went when the old spec came back (-want +got):\n%s", diff)
	}
	if text := object(w, "doris-be", &appsv1.StatefulSet{}).Annotations[meta.AnnotationFailed]; text != "" {
		t.Errorf("it still remembers %s", text)
	}
}

func TestThePlanOfAPutBackMovesNoPod(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-bad" })
	for range 20 {
		p, _ := w.plan(w.store.Now())
		set := object(w, "doris-be", &appsv1.StatefulSet{})
		if strings.Contains(set.Spec.Template.Spec.Containers[0].Image, "bad") && len(p.Steps) > 0 && p.Steps[0].Target().Kind == "StatefulSet" && strings.Contains(p.Steps[0].Why(), "put the Pod template back") {
			for _, c := range p.Changes {
				if c.Verdict == plan.VerdictApply && c.Effect != plan.EffectNone {
					t.Errorf("%s %s has the effect %s", c.Object, c.Path, c.Effect)
				}
				if c.Object.Kind == "Pod" && c.Object.Name != "doris-be-2" {
					t.Errorf("%s is in the plan: %s", c.Object, c.Message)
				}
			}
			return
		}
		for _, s := range p.Steps {
			if _, waits := s.(plan.Wait); waits {
				break
			}
			w.must(w.step(s))
		}
		w.controllers()
		w.kubelet()
	}
	t.Fatal("the template was never put back")
}

// handMade gives a set something that no revision renders.
func handMade(set *appsv1.StatefulSet) {
	env := &set.Spec.Template.Spec.Containers[0].Env
	*env = append([]corev1.EnvVar{{Name: "TZ", Value: "Europe/Lisbon"}}, *env...)
}

// TestCauseOfARoll follows what Pods are said to be replaced for while it goes on.
func TestCauseOfARoll(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		edit func(*world)
		want plan.Cause
	}{
		{"another content", func(w *world) {
			stranger(w, "be-conf", &corev1.ConfigMap{}, func(cm *corev1.ConfigMap) { cm.Data["be.conf"] = "a = 2\n" })
		}, plan.CauseConfig},
		{"another image", func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		}, plan.CauseUser},
		{"both", func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
			stranger(w, "be-conf", &corev1.ConfigMap{}, func(cm *corev1.ConfigMap) { cm.Data["be.conf"] = "a = 2\n" })
		}, plan.CauseUser},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := settled(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: be-conf}\ndata: {be.conf: \"a = 1\\n\"}\n---\n"+strings.Replace(strings.Replace(threeByThree,
				"beSpec: {", "beSpec: {configMapInfo: {configMapName: be-conf, resolveKey: be.conf}, ", 1), "spec:\n", "spec:\n  configUpdatePolicy: Restart\n", 1))
			tc.edit(w)
			pods := 0
			for range 40 {
				p, _ := w.plan(w.store.Now())
				for _, c := range p.Changes {
					if c.Object.Kind == "Pod" && c.Effect == plan.EffectRestartPod {
						if pods++; c.Cause != tc.want {
							t.Fatalf("%s is replaced for %s:\n%s", c.Object, c.Cause, printPlan(p))
						}
					}
				}
				w.reconcile()
				w.controllers()
				w.kubelet()
			}
			if pods < 6 || len(w.evicts) != 3 {
				t.Errorf("%d changes of Pods were seen, and %v were replaced", pods, w.evicts)
			}
		})
	}
}
