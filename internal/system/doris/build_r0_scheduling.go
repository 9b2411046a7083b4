package doris

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// affinityR0 returns the scheduling rules of revision 0: the operator's wishes
// first, about Pods of any cluster of the namespace.
func (c component) affinityR0() *corev1.Affinity {
	users := c.spec.Affinity.DeepCopy()
	if users == nil {
		users = &corev1.Affinity{}
	}
	apart := &corev1.PodAntiAffinity{}
	if users.PodAntiAffinity != nil {
		apart = users.PodAntiAffinity
	}
	apart.PreferredDuringSchedulingIgnoredDuringExecution = append(
		[]corev1.WeightedPodAffinityTerm{ofComponentR0(c.kind, spreadWeight)},
		apart.PreferredDuringSchedulingIgnoredDuringExecution...)
	affinity := &corev1.Affinity{NodeAffinity: users.NodeAffinity, PodAffinity: users.PodAffinity, PodAntiAffinity: apart}
	switch {
	case c.be != nil && c.be.EnableFeAffinity:
		prefer(affinity, ofComponentR0(dorisv1.ComponentFE, nearFrontend))
	case c.be != nil:
		// A label of nodes, which no Pod has: it keeps nothing apart.
		apart.PreferredDuringSchedulingIgnoredDuringExecution = append(apart.PreferredDuringSchedulingIgnoredDuringExecution,
			hostTerm(apartFromFrontend, &metav1.LabelSelector{MatchLabels: map[string]string{
				corev1.LabelHostname: string(dorisv1.ComponentFE),
			}}))
	case c.broker != nil && c.broker.KickOffAffinityBe:
		prefer(affinity, ofComponentR0(dorisv1.ComponentBE, spreadWeight))
	}
	return affinity
}

func prefer(affinity *corev1.Affinity, term corev1.WeightedPodAffinityTerm) {
	if affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
		affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, term)
}

// ofComponentR0 returns a term about nodes that run a Pod of a component, of
// whatever cluster.
func ofComponentR0(kind dorisv1.ComponentType, weight int32) corev1.WeightedPodAffinityTerm {
	return hostTerm(weight, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: dorisv1.LabelComponent, Operator: metav1.LabelSelectorOpIn, Values: []string{string(kind)},
	}}})
}

func hostTerm(weight int32, pods *metav1.LabelSelector) corev1.WeightedPodAffinityTerm {
	return corev1.WeightedPodAffinityTerm{
		Weight:          weight,
		PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: pods, TopologyKey: corev1.LabelHostname},
	}
}
