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
var rendered = []dorisv1.ComponentType{dorisv1.ComponentFE, dorisv1.ComponentBE, dorisv1.ComponentCN, dorisv1.ComponentBroker}

// Components lists the components in the order in which they are started.
func Components() []dorisv1.ComponentType { return slices.Clone(rendered) }

// SpecOf returns the spec of a component, or nil when the cluster has none of it.
func SpecOf(dc *dorisv1.DorisCluster, c dorisv1.ComponentType) *dorisv1.BaseSpec {
	return specOf(dc, c)
}

// StatusOf returns the status of a component, or nil when there is none yet.
func StatusOf(dc *dorisv1.DorisCluster, c dorisv1.ComponentType) *dorisv1.ComponentStatus {
	return blockOf(dc, c)
}

// RestartAnnotation is the annotation by which a restart of a component is asked for.
func RestartAnnotation(c dorisv1.ComponentType) string { return restartKey(c) }

// specOf returns the spec of a component, or nil when the cluster has none of it.
func specOf(dc *dorisv1.DorisCluster, c dorisv1.ComponentType) *dorisv1.BaseSpec {
	return specIn(&dc.Spec, c)
}

func specIn(spec *dorisv1.DorisClusterSpec, c dorisv1.ComponentType) *dorisv1.BaseSpec {
	switch {
	case c == dorisv1.ComponentFE && spec.FeSpec != nil:
		return &spec.FeSpec.BaseSpec
	case c == dorisv1.ComponentBE && spec.BeSpec != nil:
		return &spec.BeSpec.BaseSpec
	case c == dorisv1.ComponentCN && spec.CnSpec != nil:
		return &spec.CnSpec.BaseSpec
	case c == dorisv1.ComponentBroker && spec.BrokerSpec != nil:
		return &spec.BrokerSpec.BaseSpec
	}
	return nil
}

// fieldOf is the field of the spec that describes a component.
func fieldOf(c dorisv1.ComponentType) string { return "spec." + string(c) + "Spec" }

// pluralOf names the members of a component in a sentence.
func pluralOf(c dorisv1.ComponentType) string {
	switch c {
	case dorisv1.ComponentFE:
		return "frontends"
	case dorisv1.ComponentBE:
		return "backends"
	case dorisv1.ComponentCN:
		return "compute nodes"
	case dorisv1.ComponentBroker:
		return "brokers"
	}
	return string(c)
}

type ownName struct{ kind, object string }

// ownNames lists every object that a cluster of this name can have, also those
// that its spec does not ask for now.
func ownNames(dc *dorisv1.DorisCluster) []ownName {
	names := []ownName{
		{"Secret", AdminSecretName(dc.Name)},
		{"Secret", digestKeyName(dc.Name)},
		{"ConfigMap", BootstrapConfigMapName(dc.Name)},
		{"ConfigMap", ObservedName(dc.Name)},
		{kindAutoscaler, AutoscalerName(dc.Name)},
	}
	for _, c := range rendered {
		names = append(names,
			ownName{"StatefulSet", StatefulSetName(dc.Name, c)},
			ownName{"ConfigMap", AgainName(dc.Name, c)},
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
