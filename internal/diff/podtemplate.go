package diff

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// FillPodTemplate fills in, in place, what the API server of Kubernetes 1.29 and
// newer defaults in the Pod template of a workload, given in the form that
// DefaultUnstructuredConverter makes of a typed one. Quantities get the one spelling that the API server gives them ("1000m"
// of CPU is "1"). Two templates that mean the same are equal after it, order
// aside.
//
// A template gets fewer defaults than a Pod: requests are not made from limits,
// and host ports are not made from container ports.
func FillPodTemplate(template map[string]any) {
	dropNulls(template)
	child(template, "metadata")
	spec := child(template, "spec")
	fillPodSpec(spec)
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		eachMap(spec[list], fillContainer)
	}
	eachMap(spec["volumes"], fillVolume)
	fillAtomicDefaults(template)
}

func fillPodSpec(spec map[string]any) {
	mirror(spec, "serviceAccountName", "serviceAccount")
	setMissing(spec, "dnsPolicy", "ClusterFirst")
	setMissing(spec, "restartPolicy", "Always")
	setMissing(spec, "schedulerName", "default-scheduler")
	setMissing(spec, "terminationGracePeriodSeconds", int64(30))
	child(spec, "securityContext")
	canonicalQuantities(spec["overhead"])
	if resources, ok := spec["resources"].(map[string]any); ok {
		fillResources(resources)
	}
}

// mirror copies a value to its deprecated name, or from it.
func mirror(m map[string]any, name, deprecated string) {
	for _, from := range []string{name, deprecated} {
		if value, set := m[from]; set {
			m[name], m[deprecated] = value, value
			return
		}
	}
}

func fillContainer(c map[string]any) {
	image, _ := c["image"].(string)
	setMissing(c, "imagePullPolicy", pullPolicy(image))
	setMissing(c, "terminationMessagePath", "/dev/termination-log")
	setMissing(c, "terminationMessagePolicy", "File")
	fillResources(child(c, "resources"))
	eachMap(c["ports"], func(p map[string]any) { setMissing(p, "protocol", "TCP") })
	eachMap(c["env"], func(e map[string]any) {
		from, _ := e["valueFrom"].(map[string]any)
		fillAt(from, "fileKeyRef", map[string]any{"optional": false})
		if e["value"] == "" {
			delete(e, "value") // not stored
		}
	})
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if probe, ok := c[name].(map[string]any); ok {
			fillProbe(probe)
		}
	}
	lifecycle, _ := c["lifecycle"].(map[string]any)
	for _, name := range []string{"postStart", "preStop"} {
		handler, _ := lifecycle[name].(map[string]any)
		fillAt(handler, "httpGet", httpGetDefaults)
	}
}

// pullPolicy returns the default for an image: what has no tag and no digest is
// the latest.
func pullPolicy(image string) string {
	name, _, hasDigest := strings.Cut(image, "@")
	_, tag, hasTag := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	if tag == "latest" || name != "" && !hasTag && !hasDigest {
		return "Always"
	}
	return "IfNotPresent"
}

var httpGetDefaults = map[string]any{"path": "/", "scheme": "HTTP"}

func fillProbe(probe map[string]any) {
	setMissing(probe, "timeoutSeconds", int64(1))
	setMissing(probe, "periodSeconds", int64(10))
	setMissing(probe, "successThreshold", int64(1))
	setMissing(probe, "failureThreshold", int64(3))
	fillAt(probe, "httpGet", httpGetDefaults)
	fillAt(probe, "grpc", map[string]any{"service": ""})
}

func fillResources(resources map[string]any) {
	canonicalQuantities(resources["limits"])
	canonicalQuantities(resources["requests"])
}

// volumeDefaults are the defaults of the kinds of volumes.
var volumeDefaults = map[string]map[string]any{
	"secret":      {"defaultMode": int64(0o644)},
	"configMap":   {"defaultMode": int64(0o644)},
	"downwardAPI": {"defaultMode": int64(0o644)},
	"projected":   {"defaultMode": int64(0o644)},
	"hostPath":    {"type": ""},
	"iscsi":       {"iscsiInterface": "default"},
	"rbd":         {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
	"azureDisk":   {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"},
	"scaleIO":     {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}

func fillVolume(v map[string]any) {
	if len(v) < 2 { // nothing but a name
		child(v, "emptyDir")
	}
	for kind, defaults := range volumeDefaults {
		fillAt(v, kind, defaults)
	}
	if scratch, ok := v["emptyDir"].(map[string]any); ok {
		canonicalQuantity(scratch, "sizeLimit", resource.Nano)
	}
	if image, ok := v["image"].(map[string]any); ok {
		reference, _ := image["reference"].(string)
		setMissing(image, "pullPolicy", pullPolicy(reference))
	}
	ephemeral, _ := v["ephemeral"].(map[string]any)
	if claim, ok := ephemeral["volumeClaimTemplate"].(map[string]any); ok {
		child(claim, "metadata")
		spec := child(claim, "spec")
		setMissing(spec, "volumeMode", "Filesystem")
		fillResources(child(spec, "resources"))
	}
}

// fillAt fills defaults into a child that is there.
func fillAt(m map[string]any, name string, defaults map[string]any) {
	if c, ok := m[name].(map[string]any); ok {
		for key, value := range defaults {
			setMissing(c, key, value)
		}
	}
}

// setMissing sets a field that is not there.
func setMissing(m map[string]any, key string, value any) {
	if _, set := m[key]; !set {
		m[key] = value
	}
}

// child returns a field that is a map, made where it is missing.
func child(m map[string]any, key string) map[string]any {
	c, ok := m[key].(map[string]any)
	if !ok {
		c = map[string]any{}
		m[key] = c
	}
	return c
}

func eachMap(list any, do func(map[string]any)) {
	entries, _ := list.([]any)
	for _, e := range entries {
		if m, ok := e.(map[string]any); ok {
			do(m)
		}
	}
}

func canonicalQuantities(v any) {
	m, _ := v.(map[string]any)
	for key := range m {
		canonicalQuantity(m, key, resource.Milli) // what the API server rounds to
	}
}

// canonicalQuantity spells a quantity as the API server stores it. What is none
// stays as it is.
func canonicalQuantity(m map[string]any, key string, precision resource.Scale) {
	if v, set := m[key]; set {
		if q, err := resource.ParseQuantity(fmt.Sprint(v)); err == nil {
			q.RoundUp(precision)
			m[key] = q.String()
		}
	}
}
