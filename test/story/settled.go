package story

import (
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// Unsettled says what is missing until the newest spec of a cluster is carried
// out; nothing, when it is.
func Unsettled(dc *dorisv1.DorisCluster) string {
	conditions := dc.Status.Conditions
	switch {
	case dc.Status.ObservedGeneration != dc.Generation:
		return "its spec was not seen"
	case !apimeta.IsStatusConditionTrue(conditions, meta.ConditionReady):
		return "it is not Ready: " + ConditionText(dc, meta.ConditionReady)
	case apimeta.FindStatusCondition(conditions, meta.ConditionReconciling) != nil:
		return "it is reconciling: " + ConditionText(dc, meta.ConditionReconciling)
	case !apimeta.IsStatusConditionTrue(conditions, meta.ConditionAvailable):
		return "it is not available"
	}
	for _, c := range []*dorisv1.ComponentStatus{dc.Status.FeStatus, dc.Status.BeStatus} {
		if c != nil && c.ComponentCondition.Phase != dorisv1.PhaseAvailable {
			return "the phase of " + c.ComponentCondition.SubResourceName + " is " + string(c.ComponentCondition.Phase)
		}
	}
	return ""
}

// ConditionText is a condition in one line.
func ConditionText(dc *dorisv1.DorisCluster, kind string) string {
	c := apimeta.FindStatusCondition(dc.Status.Conditions, kind)
	if c == nil {
		return "no condition " + kind
	}
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

// PodReady tells whether a Pod serves and stays.
func PodReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}
