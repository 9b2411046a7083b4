package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/story"
)

// TestNodesAreDrained evicts Pods as whoever drains nodes does.
func TestNodesAreDrained(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(three)
	s.settled("doris")
	s.budgets("doris-be", "doris-fe")
	for _, c := range []string{"fe", "be"} {
		s.eventually("the budget of "+c+" counts its Pods", func() string {
			b := &policyv1.PodDisruptionBudget{}
			s.get("doris-"+c, b)
			if b.Status.DisruptionsAllowed != 1 {
				return fmt.Sprintf("it allows %d of %d", b.Status.DisruptionsAllowed, b.Status.ExpectedPods)
			}
			return ""
		})
		// The one that goes does not come back while we look.
		s.fault("doris-"+c+"-1", "frozen")
		if err := s.drain("doris-" + c + "-1"); err != nil {
			t.Errorf("the first of %s: %v", c, err)
		}
		if err := s.drain("doris-" + c + "-2"); !apierrors.IsTooManyRequests(err) {
			t.Errorf("a second of %s at the same time: %v", c, err)
		}
		s.fault("doris-"+c+"-1", "")
		s.eventually("the Pod is another one", func() string {
			if ps := s.pods(c); len(ps) < 3 || ps[1].DeletionTimestamp != nil || !story.PodReady(&ps[1]) {
				return "it is still the old one, or does not serve yet"
			}
			return ""
		})
		s.settled("doris")
	}

	// Somebody has a budget of their own, by labels that do not name the cluster.
	one := intstr.FromInt32(1)
	team := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "team"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{dorisv1.LabelComponent: "be"}}},
	}
	s.must(s.client.Create(t.Context(), team))
	s.budgets("doris-fe", "team")
	s.must(s.client.Delete(t.Context(), team))
	s.budgets("doris-be", "doris-fe")
	s.settled("doris")
}

// budgets waits until exactly these budgets are there.
func (s *scene) budgets(want ...string) {
	s.Helper()
	s.eventually("the budgets "+strings.Join(want, ", "), func() string {
		var names []string
		for _, o := range s.list(&policyv1.PodDisruptionBudgetList{}) {
			names = append(names, o.GetName())
		}
		if got := strings.Join(names, ", "); got != strings.Join(want, ", ") {
			return "there are " + got
		}
		return ""
	})
}

// drain asks for one Pod to be evicted.
func (s *scene) drain(pod string) error {
	p := &corev1.Pod{}
	s.get(pod, p)
	return s.client.SubResource("eviction").Create(s.Context(), p, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}})
}

// fault makes a simulated Pod misbehave, or ends that.
func (s *scene) fault(pod, fault string) {
	s.Helper()
	p := &corev1.Pod{}
	s.get(pod, p)
	before := client.MergeFrom(p.DeepCopy())
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations["simnode.fairlead.dev/fault"] = fault
	s.must(s.client.Patch(s.Context(), p, before))
}

// TestANodeIsLost cuts a node off: its Pod says nothing any more, and the control
// plane marks it.
func TestANodeIsLost(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(three)
	s.settled("doris")
	before := s.identities()
	s.fault("doris-be-2", "frozen")
	s.marked("doris-be-2", corev1.ConditionFalse)
	s.says("doris", meta.ConditionNodeUnreachable, metav1.ConditionTrue, "doris-be-2 on ", "out-of-service")
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-2.1.9" })
	s.says("doris", meta.ConditionReady, metav1.ConditionFalse, "doris-be-2")
	s.stays("every Pod", 3*time.Second, func() string {
		for name, is := range s.identities() {
			if before[name] != is {
				return name + " is another one"
			}
		}
		return ""
	})
	s.fault("doris-be-2", "")
	s.marked("doris-be-2", corev1.ConditionTrue)
	s.settled("doris")
	after := s.identities()
	for _, name := range []string{"doris-be-0", "doris-be-1", "doris-be-2"} {
		if after[name] == before[name] {
			t.Errorf("%s was not replaced when the node was back", name)
		}
	}
	if c := s.doris("doris").Status.Conditions; strings.Contains(fmt.Sprint(c), meta.ConditionNodeUnreachable) {
		t.Errorf("conditions %v", c)
	}
}

// marked sets the readiness of a Pod as the controller of node life does, which
// changes nothing else.
func (s *scene) marked(pod string, ready corev1.ConditionStatus) {
	s.Helper()
	p := &corev1.Pod{}
	s.get(pod, p)
	before := client.MergeFrom(p.DeepCopy())
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.Reason, c.Message = ready, "", ""
		}
	}
	s.must(s.client.Status().Patch(s.Context(), p, before))
}
