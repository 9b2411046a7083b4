package doris

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// environmentLegal checks the variables of the main container. It never says
// what the value of one is: it may be a password.
func environmentLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		field += ".envVars"
		last := map[string]int{}
		for i := range spec.EnvVars {
			v, at := &spec.EnvVars[i], indexed(field, i)
			if v.Name == "" {
				f.refusef(at+".name", "the variable has no name: give it one, or remove the entry")
			} else if len(validation.IsRelaxedEnvVarName(v.Name)) > 0 {
				f.refusef(at+".name", "%s cannot be the name of a variable: use printable characters without the equals sign", shown(v.Name))
			}
			if before, twice := last[v.Name]; twice && v.Name != "" {
				f.idlef(indexed(field, before), "of several entries with the name %s only the last counts: remove this one", shown(v.Name))
			}
			last[v.Name] = i
			if v.ValueFrom != nil {
				f.valueFrom(at, v)
			}
		}
		return f
	})
}

func (f *faults) valueFrom(at string, v *corev1.EnvVar) {
	from, sources := v.ValueFrom, 0
	at += ".valueFrom"
	if r := from.FieldRef; r != nil {
		sources++
		f.fieldRef(at+".fieldRef", r)
	}
	if r := from.ResourceFieldRef; r != nil {
		sources++
		f.resourceRef(at+".resourceFieldRef", r)
	}
	if r := from.ConfigMapKeyRef; r != nil {
		sources++
		f.keyRef(at+".configMapKeyRef", "ConfigMap", r.Name, r.Key)
	}
	if r := from.SecretKeyRef; r != nil {
		sources++
		f.keyRef(at+".secretKeyRef", "Secret", r.Name, r.Key)
	}
	if from.FileKeyRef != nil {
		sources++
	}
	switch {
	case sources == 0:
		f.refusef(at, "it names no source: use fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef, or set value instead")
	case v.Value != "":
		f.refusef(at, "a variable has either a value or a source, and this one has both: remove value or valueFrom")
	case sources > 1:
		f.refusef(at, "it names %d sources: keep one", sources)
	}
}

func (f *faults) keyRef(at, kind, name, key string) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		f.refusef(at+".name", "%s cannot be the name of a %s: %s", shown(name), kind, useObjectName)
	}
	if len(validation.IsConfigMapKey(key)) > 0 {
		f.refusef(at+".key", "%s cannot be a key of a %s: use letters, digits, dashes, underscores and dots", shown(key), kind)
	}
}

// podFields are what a variable can be told of its Pod.
var podFields = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

func (f *faults) fieldRef(at string, r *corev1.ObjectFieldSelector) {
	if r.APIVersion != "" && r.APIVersion != "v1" {
		f.refusef(at+".apiVersion", "%s is no version of a Pod: use v1, or leave it out", shown(r.APIVersion))
	}
	if slices.Contains(podFields, r.FieldPath) {
		return
	}
	if subscript, ok := strings.CutSuffix(r.FieldPath, "']"); ok {
		if name, ok := strings.CutPrefix(subscript, "metadata.labels['"); ok && len(validation.IsQualifiedName(name)) == 0 {
			return
		}
		if name, ok := strings.CutPrefix(subscript, "metadata.annotations['"); ok && len(validation.IsQualifiedName(strings.ToLower(name))) == 0 {
			return
		}
	}
	f.refusef(at+".fieldPath", "%s is no field that a variable can be told: use one such as metadata.name, spec.nodeName, status.podIP or metadata.labels['key']", shown(r.FieldPath))
}

// containerResources are what a variable can be told of its container.
var containerResources = []string{
	"limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
}

func (f *faults) resourceRef(at string, r *corev1.ResourceFieldSelector) {
	huge := strings.HasPrefix(r.Resource, "limits.hugepages-") || strings.HasPrefix(r.Resource, "requests.hugepages-")
	if !huge && !slices.Contains(containerResources, r.Resource) {
		f.refusef(at+".resource", "%s is no resource that a variable can be told: use one of %s", shown(r.Resource), strings.Join(containerResources, ", "))
		return
	}
	if r.Divisor.IsZero() {
		return
	}
	allowed := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if strings.HasSuffix(r.Resource, ".cpu") {
		allowed = []string{"1m", "1"}
	}
	if !slices.Contains(allowed, r.Divisor.String()) {
		f.refusef(at+".divisor", "%s cannot divide %s: use one of %s", r.Divisor.String(), r.Resource, strings.Join(allowed, ", "))
	}
}
