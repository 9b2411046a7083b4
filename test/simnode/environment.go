package simnode

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// address is where a Pod is reached.
type address struct {
	pod, host string
}

// environment resolves a container's variables. The errors are the kubelet's,
// which shows them as CreateContainerConfigError. Variables of Services are
// left out.
func (c content) environment(pod *corev1.Pod, ctr *corev1.Container, at address) (map[string]string, error) {
	env := map[string]string{}
	for _, from := range ctr.EnvFrom {
		if err := c.addAll(env, from); err != nil {
			return nil, err
		}
	}
	for _, v := range ctr.Env {
		if v.ValueFrom == nil {
			env[v.Name] = expand(v.Value, env)
			continue
		}
		value, found, err := c.variable(pod, ctr, v.ValueFrom, at)
		if err != nil {
			return nil, err
		}
		if found {
			env[v.Name] = value
		}
	}
	return env, nil
}

func (c content) addAll(env map[string]string, from corev1.EnvFromSource) error {
	var ref reference
	var optional *bool
	switch {
	case from.ConfigMapRef != nil:
		ref, optional = reference{configMapKind, from.ConfigMapRef.Name}, from.ConfigMapRef.Optional
	case from.SecretRef != nil:
		ref, optional = reference{secretKind, from.SecretRef.Name}, from.SecretRef.Optional
	default:
		return nil
	}
	data, found := c[ref]
	if !found && !isTrue(optional) {
		return notFound(ref)
	}
	for key, value := range data {
		env[from.Prefix+key] = string(value)
	}
	return nil
}

func (c content) variable(pod *corev1.Pod, ctr *corev1.Container, from *corev1.EnvVarSource, at address) (string, bool, error) {
	switch {
	case from.FieldRef != nil:
		return fieldValue(pod, from.FieldRef.FieldPath, at), true, nil
	case from.ResourceFieldRef != nil:
		return resourceValue(ctr, from.ResourceFieldRef), true, nil
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return c.key(pod.Namespace, reference{configMapKind, ref.Name}, ref.Key, isTrue(ref.Optional))
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return c.key(pod.Namespace, reference{secretKind, ref.Name}, ref.Key, isTrue(ref.Optional))
	}
	return "", false, nil
}

func (c content) key(namespace string, ref reference, key string, optional bool) (string, bool, error) {
	data, found := c[ref]
	if !found {
		if optional {
			return "", false, nil
		}
		return "", false, notFound(ref)
	}
	value, found := data[key]
	if !found && !optional {
		return "", false, fmt.Errorf("couldn't find key %v in %s %v/%v", key, ref.kind, namespace, ref.name)
	}
	return string(value), found, nil
}

// expand replaces $(NAME) where NAME is known; $$ is a plain $.
func expand(text string, env map[string]string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		switch text[i+1] {
		case '$':
			out.WriteByte('$')
			i++
		case '(':
			name, _, closed := strings.Cut(text[i+2:], ")")
			if !closed {
				out.WriteByte('$')
				continue
			}
			value, known := env[name]
			if !known {
				value = "$(" + name + ")"
			}
			out.WriteString(value)
			i += len(name) + 2
		default:
			out.WriteByte('$')
		}
	}
	return out.String()
}

// fieldValue is the downward API's value of a Pod field.
func fieldValue(pod *corev1.Pod, field string, at address) string {
	name, key, keyed := strings.Cut(strings.TrimSuffix(field, "']"), "['")
	switch {
	case name == "metadata.labels" && keyed:
		return pod.Labels[key]
	case name == "metadata.annotations" && keyed:
		return pod.Annotations[key]
	}
	plain := map[string]string{
		"metadata.name":           pod.Name,
		"metadata.namespace":      pod.Namespace,
		"metadata.uid":            string(pod.UID),
		"metadata.labels":         keyValueLines(pod.Labels),
		"metadata.annotations":    keyValueLines(pod.Annotations),
		"spec.nodeName":           pod.Spec.NodeName,
		"spec.serviceAccountName": pod.Spec.ServiceAccountName,
		"status.podIP":            at.pod,
		"status.podIPs":           at.pod,
		"status.hostIP":           at.host,
		"status.hostIPs":          at.host,
	}
	return plain[field]
}

func keyValueLines(values map[string]string) string {
	lines := make([]string, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, key+"="+strconv.Quote(values[key]))
	}
	return strings.Join(lines, "\n")
}

// resourceValue is the downward API's value of a request or limit, rounded up
// to the divisor. A limit that is not set is the node's whole.
func resourceValue(c *corev1.Container, ref *corev1.ResourceFieldSelector) string {
	section, name, _ := strings.Cut(ref.Resource, ".")
	list := c.Resources.Limits
	if section == "requests" {
		list = c.Resources.Requests
	}
	quantity, set := list[corev1.ResourceName(name)]
	if !set && section == "limits" {
		quantity = allocatable()[corev1.ResourceName(name)]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return strconv.FormatInt(int64(math.Ceil(float64(quantity.MilliValue())/float64(divisor.MilliValue()))), 10)
	}
	return strconv.FormatInt(int64(math.Ceil(float64(quantity.Value())/float64(divisor.Value()))), 10)
}
