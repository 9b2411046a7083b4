package doris

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func (o origin) podField(at string) (string, bool) {
	pod := o.set.Spec.Template.Spec
	for _, same := range []string{"imagePullSecrets", "nodeSelector", "tolerations", "hostAliases", "securityContext"} {
		if rest, ok := beneath(at, same); ok {
			return "." + same + rest, true
		}
	}
	if _, ok := beneath(at, "serviceAccountName"); ok {
		return ".serviceAccount", true
	}
	if rest, ok := beneath(at, "affinity"); ok {
		return o.affinityField(rest)
	}
	if rest, ok := beneath(at, "containers"); ok {
		if c, rest := element(pod.Containers, rest); c != nil {
			return o.containerField(c, strings.TrimPrefix(rest, "."))
		}
	}
	if rest, ok := beneath(at, "initContainers"); ok {
		if c, rest := element(pod.InitContainers, rest); c != nil {
			return o.initField(c, strings.TrimPrefix(rest, "."))
		}
	}
	if rest, ok := beneath(at, "volumes"); ok {
		if v, _ := element(pod.Volumes, rest); v != nil {
			return o.volumeField(v)
		}
	}
	return "", false
}

// affinityField translates an index among preferences, where those of the
// operator stand before those of the user.
func (o origin) affinityField(at string) (string, bool) {
	if o.spec.Affinity == nil {
		return "", false
	}
	rendered, users := o.set.Spec.Template.Spec.Affinity, o.spec.Affinity
	own := func(a *corev1.Affinity) (apart, near int) {
		if a.PodAntiAffinity != nil {
			apart = len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAffinity != nil {
			near = len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		return apart, near
	}
	if rendered == nil {
		return ".affinity" + at, true
	}
	allApart, allNear := own(rendered)
	usersApart, usersNear := own(users)
	for _, list := range []struct {
		field string
		ours  int
	}{
		{".podAntiAffinity" + preferredTerms, allApart - usersApart},
		{".podAffinity" + preferredTerms, allNear - usersNear},
	} {
		rest, ok := strings.CutPrefix(at, list.field)
		if !ok {
			continue
		}
		i, rest, ok := entry(rest)
		if !ok || i < list.ours {
			return "", false
		}
		return ".affinity" + indexed(list.field, i-list.ours) + rest, true
	}
	return ".affinity" + at, true
}

func (o origin) containerField(c *corev1.Container, at string) (string, bool) {
	if rest, ok := beneath(at, "env"); ok {
		return o.envField(c, rest)
	}
	if rest, ok := beneath(at, "resources"); ok {
		return rest, rest != ""
	}
	if rest, ok := beneath(at, "volumeMounts"); ok {
		if m, _ := element(c.VolumeMounts, rest); m != nil {
			return o.mountField(m)
		}
		return "", false
	}
	for _, f := range []struct{ theirs, ours string }{
		{"image", ".image"},
		{"startupProbe.failureThreshold", ".startTimeout"},
		{"livenessProbe.timeoutSeconds", ".liveTimeout"},
		{"securityContext", ".containerSecurityContext"},
		{"readinessProbe", ".readinessProbePolicy"},
	} {
		if rest, ok := beneath(at, f.theirs); ok {
			return f.ours + rest, true
		}
	}
	return "", false
}

// envField translates an index among variables, where those of the operator
// stand before those of the user.
func (o origin) envField(c *corev1.Container, at string) (string, bool) {
	v, rest := element(c.Env, at)
	if v == nil {
		return "", false
	}
	for i := range slices.Backward(o.spec.EnvVars) {
		if o.spec.EnvVars[i].Name == v.Name {
			return indexed(".envVars", i) + rest, true
		}
	}
	return "", false
}

func (o origin) initField(c *corev1.Container, at string) (string, bool) {
	init := o.spec.SystemInitialization
	own := init != nil && (len(init.Requests) > 0 || len(init.Limits) > 0)
	if rest, ok := beneath(at, "resources"); ok && rest != "" {
		if own && c.Image != "" {
			return ".systemInitialization" + rest, true
		}
		return rest, true
	}
	if _, ok := beneath(at, "image"); ok {
		if init != nil && init.InitImage != "" && c.Image == init.InitImage {
			return ".systemInitialization.initImage", true
		}
		return ".image", true
	}
	return "", false
}

// claimField translates a path in a claim template.
func (o origin) claimField(at string) (string, bool) {
	claim, rest := element(o.set.Spec.VolumeClaimTemplates, at)
	if claim == nil {
		return "", false
	}
	volume, found := o.persistentVolume(claim.Name)
	if !found {
		return "", false
	}
	switch rest := strings.TrimPrefix(rest, "."); {
	case rest == "spec.resources[storage]": // as the API server puts it
		return volume + ".persistentVolumeClaimSpec.resources.requests.storage", true
	case strings.HasPrefix(rest, "spec."):
		return volume + ".persistentVolumeClaimSpec" + strings.TrimPrefix(rest, "spec"), true
	case strings.HasPrefix(rest, "metadata.annotations"):
		return volume + strings.TrimPrefix(rest, "metadata"), true
	case rest == "metadata.name":
		return volume + ".name", true
	}
	return volume, true
}

// persistentVolume finds the entry that a claim comes from: by its name, or as
// the template whose name it continues.
func (o origin) persistentVolume(claim string) (string, bool) {
	template := ""
	for i := range o.spec.PersistentVolumes {
		pv := &o.spec.PersistentVolumes[i]
		if pv.MountPath != "" && pv.Name == claim {
			return indexed(".persistentVolumes", i), true
		}
		if pv.MountPath == "" {
			template = indexed(".persistentVolumes", i)
		}
	}
	return template, template != ""
}

func (o origin) mountField(m *corev1.VolumeMount) (string, bool) {
	for i := range o.spec.PersistentVolumes {
		if at := o.spec.PersistentVolumes[i].MountPath; at != "" && path.Clean(at) == path.Clean(m.MountPath) {
			return indexed(".persistentVolumes", i) + ".mountPath", true
		}
	}
	for _, r := range append(configMapsOf(o.spec, ""), secretsOf(o.spec, "")...) {
		if path.Clean(r.path) == path.Clean(m.MountPath) {
			return r.field, true
		}
	}
	if field, found := o.persistentVolume(m.Name); found && slices.ContainsFunc(o.set.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == m.Name }) {
		return field, true
	}
	return "", false
}

func (o origin) volumeField(v *corev1.Volume) (string, bool) {
	var requests []mountRequest
	name := ""
	switch {
	case v.ConfigMap != nil:
		requests, name = configMapsOf(o.spec, ""), v.ConfigMap.Name
	case v.Secret != nil:
		requests, name = secretsOf(o.spec, ""), v.Secret.SecretName
	}
	for _, r := range requests {
		if r.name == name {
			return r.field, true
		}
	}
	return "", false
}

func (o origin) serviceField(at string) (string, bool) {
	if o.svc.Name != AccessServiceName(o.dc.Name, componentOfField(o.at)) {
		return "", false
	}
	switch {
	case at == "spec.type", at == "spec.loadBalancerIP":
		return ".service" + strings.TrimPrefix(at, "spec"), true
	case strings.HasPrefix(at, "metadata.annotations"):
		return ".service" + strings.TrimPrefix(at, "metadata"), true
	}
	rest, ok := beneath(at, "spec.ports")
	port, rest := element(o.svc.Spec.Ports, rest)
	if !ok || port == nil || rest != ".nodePort" {
		return "", false
	}
	for i, p := range serviceOf(o.spec).ServicePorts {
		if p.TargetPort == port.Port && p.NodePort == port.NodePort {
			return indexed(".service.servicePorts", i) + ".nodePort", true
		}
	}
	return "", false
}
