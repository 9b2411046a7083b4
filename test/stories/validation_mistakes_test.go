package stories

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// mistake is one thing that is wrong with a spec, and the field that is named.
type mistake struct {
	name  string
	field string
	make  func(dc *dorisv1.DorisCluster)
}

// mistakes are some that people make, one at a time.
func mistakes() []mistake {
	var all []mistake
	for _, list := range [][]mistake{wholeMistakes(), podMistakes(), schedulingMistakes(), environmentMistakes(), resourceMistakes(), securityMistakes(), storageMistakes(), serviceMistakes()} {
		all = append(all, list...)
	}
	return all
}

// inBackends makes a mistake in the spec of the backends.
func inBackends(change func(*dorisv1.BaseSpec)) func(*dorisv1.DorisCluster) {
	return func(dc *dorisv1.DorisCluster) { change(&dc.Spec.BeSpec.BaseSpec) }
}

func wholeMistakes() []mistake {
	return []mistake{
		{"a name that is too long", "metadata.name", func(dc *dorisv1.DorisCluster) { dc.Name = strings.Repeat("a", 60) }},
		{"a name with a dot", "metadata.name", func(dc *dorisv1.DorisCluster) { dc.Name = "shop.example" }},
		{"no image", "spec.beSpec.image", inBackends(func(b *dorisv1.BaseSpec) { b.Image = "" })},
		{"an image with a space", "spec.beSpec.image", inBackends(func(b *dorisv1.BaseSpec) { b.Image = "apache/doris:be-2.1.8 " })},
		{"an image in capitals", "spec.beSpec.image", inBackends(func(b *dorisv1.BaseSpec) { b.Image = "apache/Doris:be-2.1.8" })},
		{"an image without its tag", "spec.beSpec.image", inBackends(func(b *dorisv1.BaseSpec) { b.Image = "apache/doris:" })},
		{"an init image with a space", "spec.beSpec.systemInitialization.initImage", inBackends(func(b *dorisv1.BaseSpec) {
			b.SystemInitialization = &dorisv1.SystemInitialization{InitImage: "busy box"}
		})},
		{"negative replicas", "spec.beSpec.replicas", inBackends(func(b *dorisv1.BaseSpec) { b.Replicas = new(int32(-1)) })},
		{"nobody may elect", "spec.feSpec.electionNumber", func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.ElectionNumber = new(int32(0)) }},
		{"an account that cannot register", "spec.adminUser.name", func(dc *dorisv1.DorisCluster) { dc.Spec.AdminUser = &dorisv1.AdminUser{Name: "admin"} }},
		{"frontends at a port that is none", "spec.beSpec.feAddress.endpoints.port", inBackends(func(b *dorisv1.BaseSpec) {
			b.FeAddress = &dorisv1.FeAddress{ServiceName: "fe", Endpoints: dorisv1.Endpoints{Port: 90300}}
		})},
		{"a Secret with an illegal name", "spec.authSecret", func(dc *dorisv1.DorisCluster) { dc.Spec.AuthSecret = "Doris Root" }},
		{"a ConfigMap with an illegal name", "spec.beSpec.configMapInfo.configMapName", inBackends(func(b *dorisv1.BaseSpec) { b.ConfigMapInfo.ConfigMapName = "be_conf" })},
	}
}

func podMistakes() []mistake {
	return []mistake{
		{"a label with an illegal key", "spec.beSpec.podLabels", inBackends(func(b *dorisv1.BaseSpec) { b.PodLabels = map[string]string{"a team": "x"} })},
		{"a label with an illegal value", "spec.beSpec.podLabels[team]", inBackends(func(b *dorisv1.BaseSpec) { b.PodLabels = map[string]string{"team": "shop/eu"} })},
		{"a label that is too long", "spec.beSpec.podLabels[team]", inBackends(func(b *dorisv1.BaseSpec) { b.PodLabels = map[string]string{"team": strings.Repeat("x", 64)} })},
		{"an annotation with an illegal key", "spec.beSpec.annotations", inBackends(func(b *dorisv1.BaseSpec) { b.Annotations = map[string]string{"a/b/c": "x"} })},
		{"too many annotations", "spec.beSpec.annotations", inBackends(func(b *dorisv1.BaseSpec) { b.Annotations = map[string]string{"note": strings.Repeat("x", 256*1024)} })},
		{"a cost of deletion that is no number", "spec.beSpec.annotations[controller.kubernetes.io/pod-deletion-cost]", inBackends(func(b *dorisv1.BaseSpec) {
			b.Annotations = map[string]string{corev1.PodDeletionCost: "high"}
		})},
		{"an account with an illegal name", "spec.beSpec.serviceAccount", inBackends(func(b *dorisv1.BaseSpec) { b.ServiceAccount = "Doris" })},
		{"a pull secret twice", "spec.beSpec.imagePullSecrets[1].name", inBackends(func(b *dorisv1.BaseSpec) {
			b.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "hub"}, {Name: "hub"}}
		})},
		{"a host alias without an address", "spec.beSpec.hostAliases[0].ip", inBackends(func(b *dorisv1.BaseSpec) {
			b.HostAliases = []corev1.HostAlias{{IP: "hive", Hostnames: []string{"hive"}}}
		})},
		{"a host alias with an illegal name", "spec.beSpec.hostAliases[0].hostnames[1]", inBackends(func(b *dorisv1.BaseSpec) {
			b.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"hive", "Hive_2"}}}
		})},
		{"two host aliases of one address", "spec.beSpec.hostAliases[1].ip", inBackends(func(b *dorisv1.BaseSpec) {
			b.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"hive"}}, {IP: "10.0.0.1", Hostnames: []string{"hdfs"}}}
		})},
		{"a start that takes for ever", "spec.beSpec.startTimeout", inBackends(func(b *dorisv1.BaseSpec) { b.StartTimeout = 1<<31 - 1 })},
	}
}

func tolerates(t corev1.Toleration) func(*dorisv1.DorisCluster) {
	return inBackends(func(b *dorisv1.BaseSpec) { b.Tolerations = []corev1.Toleration{t} })
}

func nodeTerm(r corev1.NodeSelectorRequirement) func(*dorisv1.DorisCluster) {
	return inBackends(func(b *dorisv1.BaseSpec) {
		b.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{r}}},
		}}}
	})
}

func apart(weight int32, term corev1.PodAffinityTerm) func(*dorisv1.DorisCluster) {
	return inBackends(func(b *dorisv1.BaseSpec) {
		b.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: weight, PodAffinityTerm: term}},
		}}
	})
}

func schedulingMistakes() []mistake {
	const (
		nodes  = "spec.beSpec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
		others = "spec.beSpec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
	)
	return []mistake{
		{"a node selector with an illegal key", "spec.beSpec.nodeSelector", inBackends(func(b *dorisv1.BaseSpec) { b.NodeSelector = map[string]string{"disk type": "ssd"} })},
		{"a node selector with an illegal value", "spec.beSpec.nodeSelector[disk]", inBackends(func(b *dorisv1.BaseSpec) { b.NodeSelector = map[string]string{"disk": "ssd,nvme"} })},
		{"a toleration with an unknown operator", "spec.beSpec.tolerations[0].operator", tolerates(corev1.Toleration{Key: "a", Operator: "Equals", Value: "b"})},
		{"a toleration without a key", "spec.beSpec.tolerations[0].operator", tolerates(corev1.Toleration{Value: "b"})},
		{"a toleration of existence with a value", "spec.beSpec.tolerations[0].value", tolerates(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Value: "b"})},
		{"a toleration with an illegal key", "spec.beSpec.tolerations[0].key", tolerates(corev1.Toleration{Key: "a b", Value: "c"})},
		{"a toleration with an illegal value", "spec.beSpec.tolerations[0].value", tolerates(corev1.Toleration{Key: "a", Value: "b c"})},
		{"a toleration with an unknown effect", "spec.beSpec.tolerations[0].effect", tolerates(corev1.Toleration{Key: "a", Value: "b", Effect: "NoRun"})},
		{"a toleration for some seconds of nothing", "spec.beSpec.tolerations[0].tolerationSeconds", tolerates(corev1.Toleration{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule, TolerationSeconds: new(int64(5))})},
		{"no term for nodes", nodes, inBackends(func(b *dorisv1.BaseSpec) {
			b.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
		})},
		{"nodes by an unknown operator", nodes + "[0].matchExpressions[0].operator", nodeTerm(corev1.NodeSelectorRequirement{Key: "a", Operator: "Equals", Values: []string{"b"}})},
		{"nodes by no value", nodes + "[0].matchExpressions[0].values", nodeTerm(corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpIn})},
		{"nodes by existence and a value", nodes + "[0].matchExpressions[0].values", nodeTerm(corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpExists, Values: []string{"b"}})},
		{"nodes by an illegal key", nodes + "[0].matchExpressions[0].key", nodeTerm(corev1.NodeSelectorRequirement{Key: "a b", Operator: corev1.NodeSelectorOpExists})},
		{"apart without a topology", others + ".podAffinityTerm.topologyKey", apart(1, corev1.PodAffinityTerm{})},
		{"apart by an illegal topology", others + ".podAffinityTerm.topologyKey", apart(1, corev1.PodAffinityTerm{TopologyKey: "the zone"})},
		{"apart with no weight", others + ".weight", apart(0, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname})},
		{"apart with too much weight", others + ".weight", apart(101, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname})},
		{"apart from an illegal selector", others + ".podAffinityTerm.labelSelector.matchExpressions[0].values", apart(1, corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}},
		})},
		{"apart from an illegal namespace", others + ".podAffinityTerm.namespaces[0]", apart(1, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, Namespaces: []string{"A"}})},
	}
}

func hasVariable(v corev1.EnvVar) func(*dorisv1.DorisCluster) {
	return inBackends(func(b *dorisv1.BaseSpec) { b.EnvVars = []corev1.EnvVar{{Name: "TZ", Value: "UTC"}, v} })
}

func environmentMistakes() []mistake {
	secret := func(name, key string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}
	}
	return []mistake{
		{"a variable without a name", "spec.beSpec.envVars[1].name", hasVariable(corev1.EnvVar{Value: "x"})},
		{"a variable with an illegal name", "spec.beSpec.envVars[1].name", hasVariable(corev1.EnvVar{Name: "A=B", Value: "x"})},
		{"a variable with value and source", "spec.beSpec.envVars[1].valueFrom", hasVariable(corev1.EnvVar{Name: "A", Value: "x", ValueFrom: secret("s", "k")})},
		{"a variable with an empty source", "spec.beSpec.envVars[1].valueFrom", hasVariable(corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{}})},
		{"a variable from a Secret with an illegal name", "spec.beSpec.envVars[1].valueFrom.secretKeyRef.name", hasVariable(corev1.EnvVar{Name: "A", ValueFrom: secret("S 1", "k")})},
		{"a variable from no key", "spec.beSpec.envVars[1].valueFrom.secretKeyRef.key", hasVariable(corev1.EnvVar{Name: "A", ValueFrom: secret("s", "")})},
		{"a variable from an unknown field", "spec.beSpec.envVars[1].valueFrom.fieldRef.fieldPath", hasVariable(corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.hostname"}}})},
		{"a variable from an unknown resource", "spec.beSpec.envVars[1].valueFrom.resourceFieldRef.resource", hasVariable(corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.disk"}}})},
	}
}

func needs(requests, limits map[corev1.ResourceName]string) func(*dorisv1.DorisCluster) {
	list := func(m map[corev1.ResourceName]string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, amount := range m {
			out[name] = resource.MustParse(amount)
		}
		return out
	}
	return inBackends(func(b *dorisv1.BaseSpec) { b.Requests, b.Limits = list(requests), list(limits) })
}

func resourceMistakes() []mistake {
	type amounts = map[corev1.ResourceName]string
	return []mistake{
		{"a request above its limit", "spec.beSpec.requests[cpu]", needs(amounts{"cpu": "4"}, amounts{"cpu": "2"})},
		{"a negative request", "spec.beSpec.requests[memory]", needs(amounts{"memory": "-1Gi"}, nil)},
		{"an unknown resource", "spec.beSpec.limits[disk]", needs(nil, amounts{"disk": "1Gi"})},
		{"half a device", "spec.beSpec.limits[example.com/gpu]", needs(nil, amounts{"example.com/gpu": "500m"})},
		{"a device without a limit", "spec.beSpec.requests[example.com/gpu]", needs(amounts{"example.com/gpu": "1"}, nil)},
		{"huge pages alone", "spec.beSpec.limits[hugepages-2Mi]", needs(nil, amounts{"hugepages-2Mi": "4Mi"})},
		{"a part of a huge page", "spec.beSpec.limits[hugepages-2Mi]", needs(nil, amounts{"hugepages-2Mi": "3Mi", "cpu": "1"})},
		{"an init request above its limit", "spec.beSpec.systemInitialization.requests[cpu]", inBackends(func(b *dorisv1.BaseSpec) {
			b.SystemInitialization = &dorisv1.SystemInitialization{Command: []string{"true"}}
			b.SystemInitialization.Requests = corev1.ResourceList{"cpu": resource.MustParse("2")}
			b.SystemInitialization.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
		})},
	}
}

func inPods(sc corev1.PodSecurityContext) func(*dorisv1.DorisCluster) {
	return inBackends(func(b *dorisv1.BaseSpec) { b.SecurityContext = &sc })
}

func inContainer(sc corev1.SecurityContext) func(*dorisv1.DorisCluster) {
	return inBackends(func(b *dorisv1.BaseSpec) { b.ContainerSecurityContext = &sc })
}

func securityMistakes() []mistake {
	const pods, container = "spec.beSpec.securityContext", "spec.beSpec.containerSecurityContext"
	return []mistake{
		{"a negative group", pods + ".fsGroup", inPods(corev1.PodSecurityContext{FSGroup: new(int64(-1))})},
		{"root that is forbidden", pods + ".runAsUser", inPods(corev1.PodSecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(true)})},
		{"an unknown policy of groups", pods + ".fsGroupChangePolicy", inPods(corev1.PodSecurityContext{FSGroupChangePolicy: new(corev1.PodFSGroupChangePolicy("Never"))})},
		{"a kernel parameter that is none", pods + ".sysctls[0].name", inPods(corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "Net Core", Value: "1"}}})},
		{"a profile of an unknown type", pods + ".seccompProfile.type", inPods(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Default"}})},
		{"a local profile without a file", pods + ".seccompProfile.localhostProfile", inPods(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost}})},
		{"a user that is none", container + ".runAsUser", inContainer(corev1.SecurityContext{RunAsUser: new(int64(-5))})},
		{"privileged without escalation", container + ".allowPrivilegeEscalation", inContainer(corev1.SecurityContext{Privileged: new(true), AllowPrivilegeEscalation: new(false)})},
		{"workload groups without escalation", container + ".allowPrivilegeEscalation", func(dc *dorisv1.DorisCluster) {
			dc.Spec.BeSpec.EnableWorkloadGroup = true
			dc.Spec.BeSpec.ContainerSecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)}
		}},
		{"an unknown view of processes", container + ".procMount", inContainer(corev1.SecurityContext{ProcMount: new(corev1.ProcMountType("None"))})},
	}
}

func inVolume(change func(*dorisv1.PersistentVolume)) func(*dorisv1.DorisCluster) {
	return inBackends(func(b *dorisv1.BaseSpec) { change(&b.PersistentVolumes[0]) })
}

func inClaim(change func(*corev1.PersistentVolumeClaimSpec)) func(*dorisv1.DorisCluster) {
	return inVolume(func(v *dorisv1.PersistentVolume) { change(&v.PersistentVolumeClaimSpec) })
}

func storageMistakes() []mistake {
	const volume = "spec.beSpec.persistentVolumes[0]"
	const claim = volume + ".persistentVolumeClaimSpec"
	size := func(text string) func(*corev1.PersistentVolumeClaimSpec) {
		return func(c *corev1.PersistentVolumeClaimSpec) {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
		}
	}
	return []mistake{
		{"a volume without a name", volume + ".name", inVolume(func(v *dorisv1.PersistentVolume) { v.Name = "" })},
		{"a volume with an illegal name", volume + ".name", inVolume(func(v *dorisv1.PersistentVolume) { v.Name = "be_data" })},
		{"a volume with a name that is too long", volume + ".name", inVolume(func(v *dorisv1.PersistentVolume) { v.Name = strings.Repeat("d", 64) })},
		{"a volume at a relative path", volume + ".mountPath", inVolume(func(v *dorisv1.PersistentVolume) { v.MountPath = "opt/apache-doris/be/storage" })},
		{"a volume where the operator mounts", volume, inVolume(func(v *dorisv1.PersistentVolume) { v.MountPath = "/etc/podinfo" })},
		{"two volumes at one path", "spec.beSpec.persistentVolumes[1]", inBackends(func(b *dorisv1.BaseSpec) {
			second := *b.PersistentVolumes[0].DeepCopy()
			second.Name = "more"
			b.PersistentVolumes = append(b.PersistentVolumes, second)
		})},
		{"a claim annotation with an illegal key", volume + ".annotations", inVolume(func(v *dorisv1.PersistentVolume) { v.Annotations = map[string]string{"a b": "c"} })},
		{"a claim of no size", claim + ".resources.requests.storage", inClaim(func(c *corev1.PersistentVolumeClaimSpec) { c.Resources.Requests = nil })},
		{"a claim of size zero", claim + ".resources.requests.storage", inClaim(size("0"))},
		{"a claim of a negative size", claim + ".resources.requests.storage", inClaim(size("-1Gi"))},
		{"a claim with an unknown access mode", claim + ".accessModes[0]", inClaim(func(c *corev1.PersistentVolumeClaimSpec) {
			c.AccessModes = []corev1.PersistentVolumeAccessMode{"RWO"}
		})},
		{"a claim for one Pod and for others", claim + ".accessModes[1]", inClaim(func(c *corev1.PersistentVolumeClaimSpec) {
			c.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
		})},
		{"a claim of an illegal class", claim + ".storageClassName", inClaim(func(c *corev1.PersistentVolumeClaimSpec) { c.StorageClassName = new("Fast SSD") })},
		{"a claim for a block device", claim + ".volumeMode", inClaim(func(c *corev1.PersistentVolumeClaimSpec) { c.VolumeMode = new(corev1.PersistentVolumeBlock) })},
		{"a claim of an illegal selector", claim + ".selector.matchExpressions[0].operator", inClaim(func(c *corev1.PersistentVolumeClaimSpec) {
			c.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
		})},
		{"a claim filled from nothing", claim + ".dataSource", inClaim(func(c *corev1.PersistentVolumeClaimSpec) {
			c.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "a"}
		})},
		{"a Secret and a ConfigMap at one path", "spec.beSpec.secrets[0]", inBackends(func(b *dorisv1.BaseSpec) {
			b.ConfigMapInfo.ConfigMapName = "be-conf"
			b.Secrets = []dorisv1.Secret{{SecretName: "s"}}
		})},
		{"a Secret at a relative path", "spec.beSpec.secrets[0].mountPath", inBackends(func(b *dorisv1.BaseSpec) { b.Secrets = []dorisv1.Secret{{SecretName: "s", MountPath: "etc/s"}} })},
		{"a shared claim with an illegal name", "spec.sharedPersistentVolumeClaims[0]", func(dc *dorisv1.DorisCluster) {
			dc.Spec.SharedPersistentVolumeClaims = []dorisv1.SharedPersistentVolumeClaim{{MountPath: "/s", PersistentVolumeClaimName: "S_1"}}
		}},
	}
}

func serviceMistakes() []mistake {
	return []mistake{
		{"a Service that leads to no Pods", "spec.feSpec.service.type", func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Service = &dorisv1.ExportService{Type: "ExternalName"} }},
		{"a Service of an unknown type", "spec.feSpec.service.type", func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Service = &dorisv1.ExportService{Type: "Nodeport"} }},
		{"a node port that is no port", "spec.feSpec.service.servicePorts[0].nodePort", func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort, ServicePorts: []dorisv1.ServicePort{{NodePort: 70000, TargetPort: 9030}}}
		}},
		{"a node port twice", "spec.feSpec.service.servicePorts[1].nodePort", func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort, ServicePorts: []dorisv1.ServicePort{{NodePort: 31234, TargetPort: 9030}, {NodePort: 31234, TargetPort: 8030}}}
		}},
		{"a Service annotation with an illegal key", "spec.feSpec.service.annotations", func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service = &dorisv1.ExportService{Annotations: map[string]string{"a b": "c"}}
		}},
		{"addresses for a Service that has no balancer", "spec.feSpec.service.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]", func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service = &dorisv1.ExportService{Annotations: map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: "10.0.0.0/8"}}
		}},
		{"addresses that are no range", "spec.feSpec.service.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]", func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeLoadBalancer, Annotations: map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: "everywhere"}}
		}},
	}
}
