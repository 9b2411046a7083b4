package doris

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-dev/fairlead/api/meta"
)

func TestNodeLost(t *testing.T) {
	t.Parallel()
	says := func(ready corev1.ConditionStatus, reason string, containers corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: ready, Reason: reason}, {Type: corev1.ContainersReady, Status: containers},
		}}}
	}
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"ready", says(corev1.ConditionTrue, "", corev1.ConditionTrue), false},
		{"marked by the control plane", says(corev1.ConditionFalse, "", corev1.ConditionTrue), true},
		{"a container is not ready", says(corev1.ConditionFalse, "ContainersNotReady", corev1.ConditionFalse), false},
		{"waits for a readiness gate", says(corev1.ConditionFalse, "ReadinessGatesNotReady", corev1.ConditionTrue), false},
		{"on no node yet", &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := nodeLost(tc.pod); got != tc.want {
				t.Errorf("lost: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestNobodyTakesAPodFromALostNode loses the node of one backend, and changes the
// image meanwhile.
func TestNobodyTakesAPodFromALostNode(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	stranger(w, "doris-be-1", &corev1.Pod{}, func(p *corev1.Pod) { p.Spec.NodeName = "node-1" })
	w.lost = map[string]bool{"doris-be-1": true}
	w.settle()
	w.edit(image("2"))
	w.settle()
	w.gone(t, nil, "a node is lost")
	got := condition(w.dc, meta.ConditionNodeUnreachable)
	if !strings.HasPrefix(got, "True NodeNotHeardFrom: doris-be-1 on node-1") || !strings.Contains(got, "out-of-service") {
		t.Errorf("NodeUnreachable is %q", got)
	}
	if ready := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(ready, "False") {
		t.Errorf("Ready is %q", ready)
	}
	w.lost = nil
	w.settle()
	w.gone(t, backends, "the node is back")
	if got := condition(w.dc, meta.ConditionNodeUnreachable); got != "" {
		t.Errorf("NodeUnreachable is %q", got)
	}
}
