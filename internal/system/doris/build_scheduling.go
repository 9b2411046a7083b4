package doris

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// Weights of the operator's own wishes, among those of the user.
const (
	spreadWeight      = 20
	nearFrontend      = 15
	nearBackend       = 20
	apartFromFrontend = 80
)

// affinity returns the scheduling rules: the operator's wishes, all of them
// preferences that concern Pods of this cluster alone, and the user's rules.
func (c component) affinity() *corev1.Affinity {
	affinity := &corev1.Affinity{}
	if c.spec.Affinity != nil {
		affinity = c.spec.Affinity.DeepCopy()
	}
	apart := []corev1.WeightedPodAffinityTerm{c.near(c.kind, spreadWeight)}
	if c.be != nil && c.dc.Spec.FeSpec != nil {
		if c.be.EnableFeAffinity {
			if affinity.PodAffinity == nil {
				affinity.PodAffinity = &corev1.PodAffinity{}
			}
			affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
				[]corev1.WeightedPodAffinityTerm{c.near(dorisv1.ComponentFE, nearFrontend)},
				affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
		} else {
			apart = append(apart, c.near(dorisv1.ComponentFE, apartFromFrontend))
		}
	}
	if c.broker != nil && c.broker.KickOffAffinityBe {
		if affinity.PodAffinity == nil {
			affinity.PodAffinity = &corev1.PodAffinity{}
		}
		affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
			[]corev1.WeightedPodAffinityTerm{c.near(dorisv1.ComponentBE, nearBackend)},
			affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
		apart, affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	return affinity
}

// near returns a term about nodes that run a Pod of a component of this cluster.
func (c component) near(kind dorisv1.ComponentType, weight int32) corev1.WeightedPodAffinityTerm {
	return corev1.WeightedPodAffinityTerm{
		Weight: weight,
		PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: SelectorLabels(c.dc.Name, kind)},
			TopologyKey:   corev1.LabelHostname,
		},
	}
}
