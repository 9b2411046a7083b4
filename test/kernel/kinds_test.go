package kernel_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/test/toy"
)

var app = map[string]string{"app": "x"}

func selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: app} }

// pod uses as many parts of a Pod as can be applied together, each with as
// little said as is allowed: what is left out the API server fills in.
func pod(restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	term := corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: selector()}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: app, Annotations: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{
			RestartPolicy: restart, ServiceAccountName: "default", NodeSelector: map[string]string{"n": "s"},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
			HostAliases:      []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"h"}}},
			Tolerations:      []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}, {Key: "l", Value: "v"}},
			SecurityContext:  &corev1.PodSecurityContext{FSGroup: ptr.To[int64](1000), Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}},
			DNSConfig:        &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector()},
			},
			Affinity: &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: corev1.NodeSelectorOpIn, Values: []string{"v"}}}},
				}}},
				PodAntiAffinity: &corev1.PodAntiAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 20, PodAffinityTerm: term}},
				},
			},
			InitContainers: []corev1.Container{{Name: "first", Image: "i:1"}, {Name: "side", Image: "i", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}},
			Containers:     []corev1.Container{container()},
			Volumes:        volumes(),
		},
	}
}

func container() corev1.Container {
	probe := func(h corev1.ProbeHandler) *corev1.Probe { return &corev1.Probe{ProbeHandler: h} }
	from := func(s corev1.EnvVarSource) *corev1.EnvVarSource { return &s }
	return corev1.Container{
		Name: "main", Image: "example.com/i@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		Command: []string{"c"}, Args: []string{"$(A)"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8030}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
		Env: []corev1.EnvVar{
			{Name: "A", Value: "1"},
			{Name: "EMPTY"},
			{Name: "F", ValueFrom: from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}})},
			{Name: "R", ValueFrom: from(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}})},
			{Name: "C", ValueFrom: from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Key: "k"}})},
			{Name: "S", ValueFrom: from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k", Optional: new(true)}})},
		},
		EnvFrom: []corev1.EnvFromSource{{Prefix: "P_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}},
		Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2048Mi"), corev1.ResourceCPU: resource.MustParse("1.5")},
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("0.5Gi")},
		},
		ReadinessProbe: probe(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http"), HTTPHeaders: []corev1.HTTPHeader{{Name: "h", Value: "v"}}}}),
		LivenessProbe:  probe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8030)}}),
		StartupProbe:   probe(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 8030}}),
		Lifecycle:      &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"stop"}}}},
		SecurityContext: &corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_RESOURCE"}, Drop: []corev1.Capability{"ALL"}}, RunAsNonRoot: new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "empty", MountPath: "/e"}, {Name: "data", MountPath: "/d", SubPathExpr: "$(A)"}},
	}
}

func volumes() []corev1.Volume {
	named := func(name string, s corev1.VolumeSource) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: s}
	}
	field := corev1.DownwardAPIVolumeFile{Path: "p", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}
	return []corev1.Volume{
		named("data", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1024Mi"))}}),
		named("empty", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
		named("config", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: []corev1.KeyToPath{{Key: "k", Path: "p"}}}}),
		named("secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}),
		named("host", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/h"}}),
		named("downward", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{field}}}),
		named("projected", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{field}}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}},
		}}}),
		named("ephemeral", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec()}}}),
		named("claim", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}}),
	}
}

func claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("0.5Gi")}},
	}
}

func kinds(namespace string) []client.Object {
	m := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "kinds", Labels: map[string]string{"app.kubernetes.io/name": "x"}, Finalizers: []string{"toy.fairlead.dev/a"}}
	}
	job := batchv1.JobSpec{Template: pod(corev1.RestartPolicyNever), Suspend: new(true)}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: m(), Data: map[string]string{"a": "", "b": "1"}, BinaryData: map[string][]byte{"c": {0, 1}}},
		&corev1.Secret{ObjectMeta: m(), Data: map[string][]byte{"a": []byte("1")}},
		&corev1.Service{ObjectMeta: m(), Spec: corev1.ServiceSpec{Selector: app, Ports: []corev1.ServicePort{{Name: "a", Port: 1}, {Name: "b", Port: 1, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromString("x")}}}},
		&corev1.ServiceAccount{ObjectMeta: m(), AutomountServiceAccountToken: new(false)},
		&corev1.PersistentVolumeClaim{ObjectMeta: m(), Spec: claimSpec()},
		&appsv1.StatefulSet{ObjectMeta: m(), Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](0), Selector: selector(), ServiceName: "x", Template: pod(corev1.RestartPolicyAlways),
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		}},
		&appsv1.Deployment{ObjectMeta: m(), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: selector(), Template: pod("")}},
		&batchv1.Job{ObjectMeta: m(), Spec: job},
		&batchv1.CronJob{ObjectMeta: m(), Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: m(), Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector(), MaxUnavailable: new(intstr.FromInt32(1))}},
		&rbacv1.Role{ObjectMeta: m(), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{ObjectMeta: m(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kinds"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default"}}},
		&networkingv1.Ingress{ObjectMeta: m(), Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "x", Port: networkingv1.ServiceBackendPort{Number: 1}}}}},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: m(), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 2, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "x"}}},
	}
}

// What was applied does not differ from what is live, whatever the server made
// of it, and applying it again leaves the version alone.
func TestAppliedObjectsDoNotDiffer(t *testing.T) {
	s := newStage(t)
	engine := diff.New(types())
	for _, wanted := range kinds(s.namespace) {
		t.Run(fmt.Sprintf("%T", wanted), func(t *testing.T) {
			intent, err := engine.Intent(wanted)
			if err != nil {
				t.Fatal(err)
			}
			s := &stage{T: t, Client: s.Client, namespace: s.namespace}
			s.ok(s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(intent.DeepCopy()), client.FieldOwner(toy.Manager), client.ForceOwnership))
			live, ok := wanted.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatal("a copy is no object")
			}
			s.ok(s.Get(t.Context(), client.ObjectKeyFromObject(wanted), live))
			fields, err := engine.Compare(wanted, live, toy.Manager)
			s.ok(err)
			for _, f := range fields {
				t.Errorf("%s differs: live %s, wanted %s", f.Path, f.From, f.To)
			}
			s.ok(s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(intent.DeepCopy()), client.FieldOwner(toy.Manager), client.ForceOwnership))
			again, ok := wanted.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatal("a copy is no object")
			}
			s.ok(s.Get(t.Context(), client.ObjectKeyFromObject(wanted), again))
			if again.GetGeneration() != live.GetGeneration() || again.GetUID() != live.GetUID() {
				t.Error("applying it again changed it")
			}
			// Controllers write to the others.
			switch live.(type) {
			case *corev1.ConfigMap, *corev1.Secret, *corev1.Service, *corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding:
				if again.GetResourceVersion() != live.GetResourceVersion() {
					t.Error("applying it again moved its version")
				}
			}
			s.ok(s.Patch(t.Context(), again, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
		})
	}
}
