package stories

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/simnode"
)

// TestPutBack tells of a roll that stops at a Pod that does not come up: the
// template is put back, so a Pod that is lost meanwhile comes back as it was. Once
// in a cluster of ours, and once in one that another operator made.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		begin func(*scene)
		old   string
		// rolled are the backends in the order in which they go.
		rolled []string
	}{
		{
			name: "a cluster of ours", old: "apache/doris:be-2.1.8", rolled: []string{"doris-be-2", "doris-be-1", "doris-be-0"},
			begin: func(s *scene) { s.operate(); s.create(three); s.settled("doris") },
		},
		{
			name: "a cluster that was taken over", old: "apache/doris:be-2.1.8", rolled: []string{"doris-be-1", "doris-be-0"},
			begin: func(s *scene) {
				s.legacy(pair, func(set *appsv1.StatefulSet) { // something that is not rendered stays, too
					env := &set.Spec.Template.Spec.Containers[0].Env
					*env = append([]corev1.EnvVar{{Name: "TZ", Value: "Europe/Lisbon"}}, *env...)
				})
				s.operate()
				s.taken("doris")
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tc.begin(s)
			tc.old = backends(s).Spec.Template.Spec.Containers[0].Image
			s.stopsAt(tc.rolled[0])
			if backends(s).Annotations[meta.AnnotationRevision] != "0" {
				s.deletedWhileStopped()
			}
			s.comesBackAs(tc.rolled[len(tc.rolled)-1], tc.old)
			before := len(s.history.Went())
			s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-3.0.6" })
			s.wentSoFar(before + len(tc.rolled))
			s.serves()
			if diff := cmp.Diff(tc.rolled, s.history.Went()[before:]); diff != "" {
				s.Errorf("Pods replaced when the spec was mended (-want +got):\n%s", diff)
			}
			s.eventually("nothing of it is remembered when the roll is over", func() string {
				set := backends(s)
				return set.Annotations[meta.AnnotationLastGood] + set.Annotations[meta.AnnotationFailed]
			})
			s.quiet(2 * time.Second)
		})
	}
}

// TestRollback tells of a cluster whose spec says that a roll that fails goes back.
func TestRollback(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(three)
	s.settled("doris")
	old := backends(s).Spec.Template.Spec.Containers[0].Image
	s.Cleanup(s.nodes.Inject(simnode.Rule{Fault: simnode.FaultImagePull, Namespace: s.namespace, Image: "*broken*"}))
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.Rollout = &dorisv1.Rollout{OnFailure: dorisv1.OnFailureRollback, ProgressDeadlineSeconds: new(int32(300))}
		dc.Spec.BeSpec.Image = "apache/doris:broken"
	})
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "MemberFailed", "rolled back", "doris-be-2")
	s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue, "doris-be")
	s.wentSoFar(2)
	s.serves()
	s.quiet(2 * time.Second)
	for _, pod := range s.pods("be") {
		if got := pod.Spec.Containers[0].Image; got != old {
			s.Errorf("%s has %s, not %s", pod.Name, got, old)
		}
	}
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-3.0.6" })
	s.settled("doris")
	if diff := cmp.Diff([]string{"doris-be-2", "doris-be-2", "doris-be-2", "doris-be-1", "doris-be-0"}, s.history.Went()); diff != "" {
		s.Errorf("Pods replaced (-want +got):\n%s", diff)
	}
}

// stopsAt edits the image of the backends to one that cannot be pulled, and holds
// that the template is put back to the very revision of the other Pods.
func (s *scene) stopsAt(pod string) {
	s.Helper()
	s.Cleanup(s.nodes.Inject(simnode.Rule{Fault: simnode.FaultImagePull, Namespace: s.namespace, Image: "*broken*"}))
	before, revision, began := backends(s), backends(s).Status.UpdateRevision, len(s.history.Went())
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:broken" })
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "MemberFailed", pod, "ImagePull")
	s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue, "doris-be")
	s.says("doris", meta.ConditionReady, metav1.ConditionFalse)
	s.quiet(2 * time.Second)
	after := backends(s)
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		s.Errorf("the template was not put back as it was (-before +after):\n%s", diff)
	}
	if after.Status.UpdateRevision != revision {
		s.Errorf("the revision of the template is %s, and the Pods run on %s", after.Status.UpdateRevision, revision)
	}
	if diff := cmp.Diff([]string{pod}, s.history.Went()[began:]); diff != "" {
		s.Errorf("Pods replaced (-want +got):\n%s", diff)
	}
	text := printed(s.plannedBy(s.present(), "doris"))
	for _, want := range []string{"it was tried: " + pod + " did not come up", "Should it be lost, it comes back as it was"} {
		if !strings.Contains(text, want) {
			s.Errorf("the plan does not say %q:\n%s", want, text)
		}
	}
}

// deletedWhileStopped deletes the set of the backends, not its Pods, and holds that it
// comes back as it was: nothing moves, and what failed is still known.
func (s *scene) deletedWhileStopped() {
	s.Helper()
	before := backends(s)
	pods := s.identities()
	if err := s.client.Delete(s.Context(), backends(s), client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		s.Fatal(err)
	}
	s.eventually("the set is back", func() string {
		set := &appsv1.StatefulSet{}
		if err := s.client.Get(s.Context(), client.ObjectKeyFromObject(before), set); err != nil {
			return err.Error()
		}
		if set.UID == before.UID || set.Status.ObservedGeneration != set.Generation {
			return "not yet"
		}
		return ""
	})
	s.quiet(2 * time.Second)
	after := backends(s)
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		s.Errorf("the set came back with another template (-before +after):\n%s", diff)
	}
	for _, key := range []string{meta.AnnotationAccepted, meta.AnnotationFailed, meta.AnnotationLastGood} {
		if before.Annotations[key] != after.Annotations[key] {
			s.Errorf("%s was %s and is %s", key, before.Annotations[key], after.Annotations[key])
		}
	}
	if diff := cmp.Diff(pods, s.identities()); diff != "" {
		s.Errorf("Pods (-before +after):\n%s", diff)
	}
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "MemberFailed")
}

// comesBackAs loses a Pod out of turn and holds that it comes back with an image.
func (s *scene) comesBackAs(name, image string) {
	s.Helper()
	s.history.Deleting() // Pods go here that the operator does not replace
	pod := &corev1.Pod{}
	s.get(name, pod)
	lost := pod.UID
	if err := s.client.Delete(s.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		s.Fatal(err)
	}
	s.eventually(name+" is back with its old image and serves", func() string {
		again := &corev1.Pod{}
		if err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, again); err != nil {
			return err.Error()
		}
		if again.UID == lost {
			return "it is still there"
		}
		if got := again.Spec.Containers[0].Image; got != image {
			s.Fatalf("%s came back with %s, not %s", name, got, image)
		}
		for _, c := range again.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return ""
			}
		}
		return "it is not ready"
	})
	s.quiet(2 * time.Second)
}
