package doris

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// rendered lists the components that are built, in the order in which they are
// started.
var rendered = []dorisv1.ComponentType{dorisv1.ComponentFE, dorisv1.ComponentBE}

// specOf returns the spec of a rendered component, or nil when the cluster has
// none of it.
func specOf(dc *dorisv1.DorisCluster, c dorisv1.ComponentType) *dorisv1.BaseSpec {
	switch {
	case c == dorisv1.ComponentFE && dc.Spec.FeSpec != nil:
		return &dc.Spec.FeSpec.BaseSpec
	case c == dorisv1.ComponentBE && dc.Spec.BeSpec != nil:
		return &dc.Spec.BeSpec.BaseSpec
	}
	return nil
}

type ownName struct{ kind, object string }

// ownNames lists every object that a cluster of this name can have, also those
// that its spec does not ask for now.
func ownNames(dc *dorisv1.DorisCluster) []ownName {
	names := []ownName{
		{"Secret", AdminSecretName(dc.Name)},
		{"ConfigMap", BootstrapConfigMapName(dc.Name)},
	}
	for _, c := range rendered {
		names = append(names,
			ownName{"StatefulSet", StatefulSetName(dc.Name, c)},
			ownName{"Service", InternalServiceName(dc.Name, c)},
			ownName{"Service", AccessServiceName(dc.Name, c)})
	}
	return names
}

// sortPods orders Pods by ordinal.
func sortPods(pods []corev1.Pod) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return ordinalOf(a.Name) - ordinalOf(b.Name) })
}

// ordinalOf reads the ordinal of a StatefulSet's Pod; -1 when there is none.
func ordinalOf(pod string) int {
	n, err := strconv.Atoi(pod[strings.LastIndexByte(pod, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}
