package doris

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/build"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// statefulSet returns the StatefulSet of the component, without replicas.
func (c component) statefulSet() (*appsv1.StatefulSet, []plan.Finding) {
	storage, findings := c.storage()
	return c.keepSettings(c.frame(corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      podLabels(c.dc.Name, c.kind, c.spec.PodLabels),
			Annotations: maps.Clone(c.spec.Annotations),
		},
		Spec: c.podSpec(storage),
	}, storage.claims)), findings
}

// frame returns the StatefulSet around a Pod template. Pods go only when the
// operator says so (OnDelete), and start together: followers whose quorum was
// lost as a whole cannot come back one by one.
func (c component) frame(template corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: objectMeta(c.dc, StatefulSetName(c.dc.Name, c.kind), ObjectLabels(c.dc.Name, c.kind)),
		Spec: appsv1.StatefulSetSpec{
			ServiceName:          InternalServiceName(c.dc.Name, c.kind),
			Selector:             &metav1.LabelSelector{MatchLabels: SelectorLabels(c.dc.Name, c.kind)},
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit: new(int32(5)),
			VolumeClaimTemplates: claims,
			Template:             template,

			PersistentVolumeClaimRetentionPolicy: retention(c.spec.ClaimRetention),
		},
	}
	set.Annotations = map[string]string{
		meta.AnnotationRevision: strconv.Itoa(c.in.Revision),
	}
	return set
}

// retention says what becomes of claims that no Pod will use again: nothing, where the
// spec does not ask for it.
func retention(asked *dorisv1.ClaimRetention) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	if asked == nil {
		return nil
	}
	of := func(r dorisv1.Retention) appsv1.PersistentVolumeClaimRetentionPolicyType {
		if r == dorisv1.RetentionDelete {
			return appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		}
		return appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	}
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: of(asked.WhenScaledIn), WhenDeleted: of(asked.WhenRemoved)}
}

func (c component) podSpec(storage storage) corev1.PodSpec {
	main := c.mainContainer(storage)
	return corev1.PodSpec{
		ServiceAccountName:            c.spec.ServiceAccount,
		ImagePullSecrets:              c.spec.ImagePullSecrets,
		NodeSelector:                  maps.Clone(c.spec.NodeSelector),
		Tolerations:                   c.spec.Tolerations,
		HostAliases:                   c.spec.HostAliases,
		Affinity:                      c.affinity(),
		SecurityContext:               c.spec.SecurityContext.DeepCopy(),
		TerminationGracePeriodSeconds: new(c.graceSeconds),
		InitContainers:                c.initContainers(main, storage),
		Containers:                    []corev1.Container{main},
		Volumes:                       storage.podVolumes,
	}
}

func (c component) mainContainer(storage storage) corev1.Container {
	script := c.program()
	main := corev1.Container{
		Name: string(c.kind), Image: c.spec.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{script + "_entrypoint.sh"},
		Args:            []string{"$(" + envFrontendAddress + ")"},
		Env:             build.MergeEnv(c.env(), c.spec.EnvVars),
		Ports:           containerPorts(c.ports),
		Resources:       resources(c.spec.ResourceRequirements),
		VolumeMounts:    storage.volumes.Mounts(),
		SecurityContext: c.spec.ContainerSecurityContext.DeepCopy(),
		StartupProbe:    c.startupProbe(),
		LivenessProbe:   c.livenessProbe(),
		ReadinessProbe:  c.readinessProbe(),
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{script + "_prestop.sh"}},
		}},
	}
	if c.be != nil && c.be.EnableWorkloadGroup {
		if main.SecurityContext == nil {
			main.SecurityContext = &corev1.SecurityContext{}
		}
		main.SecurityContext.Privileged = new(true)
	}
	return main
}

func containerPorts(ports []Port) []corev1.ContainerPort {
	var list []corev1.ContainerPort
	for _, p := range ports {
		list = append(list, corev1.ContainerPort{
			Name: p.Name, ContainerPort: p.Number, Protocol: corev1.ProtocolTCP,
		})
	}
	return list
}

// resources returns requests and limits. Claims would need an entry in the Pod
// that the spec has no field for; Validate says so.
func resources(wanted corev1.ResourceRequirements) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: wanted.Requests.DeepCopy(),
		Limits:   wanted.Limits.DeepCopy(),
	}
}

// initContainers returns the containers that run first: those that prepare the
// node, then the guard of the metadata.
func (c component) initContainers(main corev1.Container, storage storage) []corev1.Container {
	init := c.spec.SystemInitialization
	image, res := c.spec.Image, main.Resources
	if init != nil {
		if init.InitImage != "" {
			image = init.InitImage
		}
		if len(init.Requests) > 0 || len(init.Limits) > 0 {
			res = resources(init.ResourceRequirements)
		}
	}
	var list []corev1.Container
	if c.prepare {
		list = append(list, prepareNode(image, res))
	}
	if init != nil && len(init.Command)+len(init.Args) > 0 {
		list = append(list, privileged("init", image, res, init.Command, init.Args))
	}
	if c.kind == dorisv1.ComponentFE {
		list = append(list, c.metadataGuard(main, storage))
	}
	return list
}

// prepareNode returns the container that sets the node up as backends want it.
func prepareNode(image string, res corev1.ResourceRequirements) corev1.Container {
	return privileged("default-init", image, res,
		[]string{"/bin/sh"}, []string{"-c", "sysctl -w vm.max_map_count=2000000 && swapoff -a"})
}

func privileged(name, image string, res corev1.ResourceRequirements, command, args []string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: command, Args: args, Resources: res,
		SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
	}
}
