package main

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubernetesTypes maps the field names of types that our API embeds from
// Kubernetes to the name of the type. A CRD has no type names, but field names
// tell these types apart. Their own reference describes them better than a copy
// here could.
var kubernetesTypes = fingerprints(
	corev1.Affinity{},
	corev1.Capabilities{},
	corev1.ConfigMapKeySelector{},
	corev1.EnvFromSource{},
	corev1.EnvVar{},
	corev1.HostAlias{},
	corev1.KeyToPath{},
	corev1.PersistentVolumeClaimSpec{},
	corev1.PodSecurityContext{},
	corev1.Probe{},
	corev1.ResourceClaim{},
	corev1.ResourceRequirements{},
	corev1.SecurityContext{},
	corev1.ServicePort{},
	corev1.Toleration{},
	corev1.TopologySpreadConstraint{},
	corev1.Volume{},
	corev1.VolumeMount{},
	autoscalingv2.HorizontalPodAutoscalerBehavior{},
	autoscalingv2.MetricSpec{},
	metav1.Condition{},
	metav1.LabelSelector{},
)

func fingerprints(values ...any) map[string]string {
	names := make(map[string]string, len(values))
	for _, value := range values {
		t := reflect.TypeOf(value)
		names[fingerprint(jsonFields(t))] = t.Name()
	}
	return names
}

// kubernetesType names the Kubernetes type that has exactly the fields of the
// schema, or returns "".
func kubernetesType(s apiextensionsv1.JSONSchemaProps) string {
	names := slices.Collect(maps.Keys(s.Properties))
	if len(names) == 1 && names[0] == "name" && s.XMapType != nil && *s.XMapType == "atomic" {
		return "LocalObjectReference"
	}
	if len(names) < 2 { // one name proves nothing
		return ""
	}
	return kubernetesTypes[fingerprint(names)]
}

func fingerprint(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ",")
}

// jsonFields lists the names under which a struct's fields appear in JSON.
func jsonFields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && field.Anonymous:
			names = append(names, jsonFields(field.Type)...)
		case name != "":
			names = append(names, name)
		}
	}
	return names
}
