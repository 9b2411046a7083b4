package doris

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// nodeLost tells whether nobody hears from the node of a Pod. Kubernetes then
// marks the Pod as not ready by itself and changes nothing else of what the
// kubelet said last, which was that all its containers are. A kubelet that is
// alive never says the one without the other, but for a readiness gate, which it
// gives as the reason.
func nodeLost(p *corev1.Pod) bool {
	if p.Spec.NodeName == "" || p.Status.Phase != corev1.PodRunning {
		return false
	}
	ready, containers := conditionOf(p, corev1.PodReady), conditionOf(p, corev1.ContainersReady)
	return ready.Status == corev1.ConditionFalse && ready.Reason == "" && containers.Status == corev1.ConditionTrue
}

func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// nodeCondition names the Pods whose node is not heard from. Their processes may
// run on, so the operator never takes such a Pod away by force: a second process
// with the same identity and data would be worse than one that is missed.
func nodeCondition(w World, extra map[string]status.Verdict) {
	var lost []string
	for _, c := range rendered {
		for i := range w.Pods[string(c)] {
			if p := &w.Pods[string(c)][i]; nodeLost(p) {
				lost = append(lost, fmt.Sprintf("%s on %s", p.Name, p.Spec.NodeName))
			}
		}
	}
	if len(lost) == 0 {
		return
	}
	extra[meta.ConditionNodeUnreachable] = status.Verdict{
		True: true, Reason: meta.ReasonNodeNotHeardFrom,
		Message: strings.Join(lost, ", ") + ": nobody hears from the node, and the process may still run there, so the Pod stays. " +
			"It goes on by itself when the node is back. If the machine is off for good, say so with `kubectl taint nodes NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`: Kubernetes then frees its volumes and the Pod starts elsewhere",
	}
}
