package doris

import (
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Revision 0 is what the existing operator (apache/doris-operator) renders. A
// cluster that was taken over is compared with it, so everything here follows
// that operator and not what would be right: a password stands in the
// environment, the anti-affinity is not scoped to the cluster and names a label
// that nothing has. What is right is revision 1, and a person has to want it.
//
// Objects around the Pod template (Services, the frame of the StatefulSet) are
// the same in both revisions.

// componentsR0 returns the components as revision 0 sees them: each knows from its
// own configuration file alone whether members have names, and the time to stop is
// the one that Doris is told, without a margin.
func componentsR0(dc *dorisv1.DorisCluster, in Inputs, s Settings) []component {
	list := components(dc, in, s)
	for i := range list {
		switch c := &list[i]; {
		case c.fe != nil:
			c.fqdn = c.fqdnR0(frontendConfKey)
			c.graceSeconds = grace(s.Frontend.GraceSeconds, 0, defaultFrontendGrace)
		case c.be != nil:
			c.fqdn = c.fqdnR0(backendConfKey)
			c.graceSeconds = grace(s.Backend.GraceSeconds, 0, defaultBackendGrace)
		case c.cn != nil:
			c.fqdn = c.fqdnR0(backendConfKey)
			c.graceSeconds = grace(s.Compute.GraceSeconds, 0, defaultBackendGrace)
		default:
			c.graceSeconds = 0
		}
	}
	return list
}

// fqdnR0 tells whether the members of a component know each other by name: yes
// where no configuration file is mounted, else as that file says.
func (c component) fqdnR0(key string) bool {
	file := newConfReader(c.spec, c.field, key, c.home, c.in.mountedBy(c.kind)).file
	if len(file.Entries()) == 0 {
		return true
	}
	value, _ := file.Get("enable_fqdn_mode")
	return value == "true"
}

// buildR0 renders the objects of the component at revision 0. All its Pods start
// at once.
func (c component) buildR0() (Component, []plan.Finding) {
	set, findings := c.statefulSetR0()
	built := Component{
		Type: c.kind, StatefulSet: set, Services: []*corev1.Service{c.internalService()},
		Replicas: wantedReplicas(c.dc, c.kind), FullReplicas: wantedReplicas(c.dc, c.kind),
	}
	if c.kind == dorisv1.ComponentBroker {
		return built, findings
	}
	access, portFindings := c.accessService()
	built.Services = append(built.Services, access)
	return built, append(findings, portFindings...)
}

func (c component) statefulSetR0() (*appsv1.StatefulSet, []plan.Finding) {
	storage, findings := c.storageR0()
	return c.keepSettings(c.frame(corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Name:        StatefulSetName(c.dc.Name, c.kind),
			Labels:      podLabels(c.dc.Name, c.kind, c.spec.PodLabels),
			Annotations: maps.Clone(c.spec.Annotations),
		},
		Spec: c.podSpecR0(storage),
	}, storage.claims)), findings
}

func (c component) podSpecR0(storage storageR0) corev1.PodSpec {
	pod := corev1.PodSpec{
		ServiceAccountName: c.spec.ServiceAccount,
		ImagePullSecrets:   c.spec.ImagePullSecrets,
		NodeSelector:       maps.Clone(c.spec.NodeSelector),
		Tolerations:        c.spec.Tolerations,
		HostAliases:        c.spec.HostAliases,
		Affinity:           c.affinityR0(),
		SecurityContext:    c.spec.SecurityContext.DeepCopy(),
		InitContainers:     c.initContainersR0(),
		Containers:         []corev1.Container{c.mainContainerR0(storage)},
		Volumes:            storage.podVolumes,
	}
	if c.graceSeconds > 0 {
		pod.TerminationGracePeriodSeconds = new(c.graceSeconds)
	}
	return pod
}

func (c component) mainContainerR0(storage storageR0) corev1.Container {
	script := c.program()
	main := corev1.Container{
		Name: string(c.kind), Image: c.spec.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{script + "_entrypoint.sh"},
		Args:            []string{"$(" + envFrontendAddress + ")"},
		Env:             c.envR0(),
		Resources:       *c.spec.ResourceRequirements.DeepCopy(),
		VolumeMounts:    storage.mounts,
		SecurityContext: c.spec.ContainerSecurityContext.DeepCopy(),
		StartupProbe:    c.startupProbeR0(),
		LivenessProbe:   c.livenessProbe(),
		ReadinessProbe:  c.readinessProbeR0(),
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{script + "_prestop.sh"}},
		}},
	}
	if c.kind != dorisv1.ComponentCN { // compute nodes name no ports, by oversight
		main.Ports = containerPorts(c.ports)
	}
	if c.be != nil && c.be.EnableWorkloadGroup {
		if main.SecurityContext == nil {
			main.SecurityContext = &corev1.SecurityContext{}
		}
		main.SecurityContext.Privileged = new(true)
	}
	return main
}

// envR0 returns the environment of revision 0: the user's variables, then those
// of the operator that the user does not name, then those that the user cannot
// override. The existing operator may so name one variable twice, which an apply
// refuses; here it stands once, at its first place and with its last value, which
// is the one that counts in the container.
func (c component) envR0() []corev1.EnvVar {
	var vars []corev1.EnvVar
	users := map[string]bool{}
	for _, v := range c.spec.EnvVars {
		users[v.Name] = true
		vars = append(vars, *v.DeepCopy())
	}
	for _, v := range c.ownEnvR0() {
		if !users[v.Name] {
			vars = append(vars, v)
		}
	}
	return lastOfEach(append(vars, c.forcedEnvR0()...))
}

// lastOfEach keeps the first place and the last value of each variable.
func lastOfEach(vars []corev1.EnvVar) []corev1.EnvVar {
	var kept []corev1.EnvVar
	at := map[string]int{}
	for _, v := range vars {
		if i, found := at[v.Name]; found {
			kept[i] = v
			continue
		}
		at[v.Name] = len(kept)
		kept = append(kept, v)
	}
	return kept
}

// ownEnvR0 returns the variables that a user may override.
func (c component) ownEnvR0() []corev1.EnvVar {
	vars := []corev1.EnvVar{
		fromField("POD_NAME", "metadata.name"),
		fromField("POD_IP", "status.podIP"),
		fromField("HOST_IP", "status.hostIP"),
		fromField("POD_NAMESPACE", "metadata.namespace"),
		{Name: "CONFIGMAP_MOUNT_PATH", Value: defaultMountPath},
		{Name: "DNS_READY_TIMEOUT", Value: "120"},
		{Name: "DNS_READY_INTERVAL", Value: "2"},
	}
	if admin := c.dc.Spec.AdminUser; admin != nil {
		vars = append(vars, corev1.EnvVar{Name: "USER", Value: admin.Name})
		if admin.Password != "" {
			vars = append(vars, corev1.EnvVar{Name: "PASSWD", Value: admin.Password})
		}
	} else {
		vars = append(vars,
			corev1.EnvVar{Name: "USER", Value: defaultUser},
			corev1.EnvVar{Name: "DORIS_ROOT", Value: rootPath},
		)
	}
	return append(vars, c.kerberosEnv()...)
}

// forcedEnvR0 returns the variables that count whatever the user says.
func (c component) forcedEnvR0() []corev1.EnvVar {
	var vars []corev1.EnvVar
	add := func(name, value string) { vars = append(vars, corev1.EnvVar{Name: name, Value: value}) }
	skips, resolves := c.preparation()
	if skips {
		add("SKIP_CHECK_ULIMIT", "true")
	}
	if limit, found := c.spec.Limits[corev1.ResourceCPU]; found && resolves {
		add("BE_CPU_LIMIT", limit.String())
	}
	address, port := c.frontendsR0()
	add(envFrontendAddress, address)
	add(envQueryPort, strconv.Itoa(port))
	switch {
	case c.fe != nil:
		add("ELECT_NUMBER", strconv.Itoa(int(electionNumberOf(c.fe))))
	case c.be != nil && c.be.EnableWorkloadGroup:
		add("ENABLE_WORKLOAD_GROUP", "true")
	case c.kind == dorisv1.ComponentCN:
		add("COMPONENT_TYPE", "COMPUTE")
	}
	return vars
}

// frontendsR0 returns where the component finds the frontends. Only addresses
// count: the existing operator does not read the name of a Service.
func (c component) frontendsR0() (address string, queryPort int) {
	queryPort = int(c.feQueryPort)
	if external := c.spec.FeAddress; external != nil {
		for _, list := range [][]string{external.Endpoints.Address, external.Endpoints.LegacyAddress} {
			if len(list) == 0 {
				continue
			}
			if external.Endpoints.Port > 0 {
				queryPort = external.Endpoints.Port
			}
			return strings.Join(list, ","), queryPort
		}
	}
	return AccessServiceName(c.dc.Name, dorisv1.ComponentFE), queryPort
}

// initImageR0 is the image of init containers for which nobody names one. That of
// the component takes its place in backends, and only there.
const initImageR0 = "selectdb/alpine:latest"

func (c component) initContainersR0() []corev1.Container {
	init := c.spec.SystemInitialization
	image := initImageR0
	if init != nil && init.InitImage != "" {
		image = init.InitImage
	}
	if image == initImageR0 && c.kind == dorisv1.ComponentBE {
		image = c.spec.Image
	}
	var list []corev1.Container
	if c.prepare {
		list = append(list, prepareNode(image, corev1.ResourceRequirements{}))
	}
	if init != nil {
		list = append(list, privileged("init", image, *init.ResourceRequirements.DeepCopy(), init.Command, init.Args))
	}
	return list
}
