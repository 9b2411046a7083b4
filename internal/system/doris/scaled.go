package doris

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/internal/diff"
)

// autoscalers are the field managers of autoscalers: the controller of
// HorizontalPodAutoscalers, by the name of its program and by its own.
var autoscalers = map[string]bool{"kube-controller-manager": true, "horizontal-pod-autoscaler": true}

// scaledBy is the field manager that chose the number of Pods of a set by its
// scale subresource; empty when nobody did.
func scaledBy(set *appsv1.StatefulSet) string {
	for _, m := range set.ManagedFields {
		if m.Subresource == "scale" && ownsReplicas(m) {
			return m.Manager
		}
	}
	return ""
}

// autoscaled tells whether the number of Pods of a set is an autoscaler's to
// choose, so that it is neither put back nor asked for.
func autoscaled(set *appsv1.StatefulSet) bool {
	return set != nil && set.Spec.Replicas != nil && autoscalers[scaledBy(set)]
}

// scaledByUs tells whether the number of Pods of a set was written by us. In one that
// was taken over it may be from before.
func scaledByUs(set *appsv1.StatefulSet) bool {
	for _, m := range set.ManagedFields {
		if m.Manager == FieldManager && ownsReplicas(m) {
			return true
		}
	}
	return false
}

// ownsReplicas tells whether an entry owns the number of Pods that a set shall have.
// The status has a field of that name as well.
func ownsReplicas(m metav1.ManagedFieldsEntry) bool {
	return m.FieldsV1 != nil && strings.Contains(m.FieldsV1.String(), `"f:replicas":`) && diff.Owns(m, "spec", "replicas")
}
