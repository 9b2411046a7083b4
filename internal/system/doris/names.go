package doris

import (
	"maps"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// Names of objects. They are those that existing clusters have, and claims,
// selectors and DNS names depend on them: they never change.

// StatefulSetName returns the name of the StatefulSet of a component.
func StatefulSetName(cluster string, c dorisv1.ComponentType) string {
	return cluster + "-" + string(c)
}

// InternalServiceName returns the name of the headless Service that gives the
// Pods of a component their DNS names.
func InternalServiceName(cluster string, c dorisv1.ComponentType) string {
	return StatefulSetName(cluster, c) + "-internal"
}

// AccessServiceName returns the name of the Service that clients use.
func AccessServiceName(cluster string, c dorisv1.ComponentType) string {
	return StatefulSetName(cluster, c) + "-service"
}

// AdminSecretName returns the name of the Secret that holds the account of the
// deprecated field adminUser.
func AdminSecretName(cluster string) string {
	return cluster + "-admin-user"
}

// BootstrapConfigMapName returns the name of the ConfigMap that records that the
// frontends have served before.
func BootstrapConfigMapName(cluster string) string {
	return cluster + "-fe-bootstrap"
}

// ObjectLabels returns the labels of the objects of a component.
func ObjectLabels(cluster string, c dorisv1.ComponentType) map[string]string {
	return map[string]string{
		dorisv1.LabelOwner:     cluster,
		dorisv1.LabelComponent: string(c),
	}
}

// SelectorLabels returns the labels by which the Pods of a component are
// selected.
func SelectorLabels(cluster string, c dorisv1.ComponentType) map[string]string {
	return map[string]string{
		dorisv1.LabelOwner:     StatefulSetName(cluster, c),
		dorisv1.LabelComponent: string(c),
	}
}

// podLabels returns the labels of the Pods of a component: those of the user,
// then those that the operator needs.
func podLabels(cluster string, c dorisv1.ComponentType, users map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, users)
	maps.Copy(labels, SelectorLabels(cluster, c))
	labels[dorisv1.LabelCluster] = cluster
	return labels
}

// serviceLabels returns the labels of a Service of a component.
func serviceLabels(cluster string, c dorisv1.ComponentType, role string) map[string]string {
	labels := ObjectLabels(cluster, c)
	labels[dorisv1.LabelServiceRole] = role
	return labels
}
