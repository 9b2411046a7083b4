package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// TestNothingThatKubernetesTakesIsRefused draws specs with odd values, legal and
// not, and holds that Validate refuses none whose objects the API server takes.
// What no node can run, although the API server takes it, is not drawn.
func TestNothingThatKubernetesTakesIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.since(36, "look into addresses of host aliases")
	// A bound on time, not on cases: a slow machine tries fewer.
	end, failed := time.Now().Add(20*time.Second), false
	accepted, refusedByBoth, strange := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		if !failed && time.Now().After(end) {
			return
		}
		failed = true // until it has passed
		dc := sound("odd", s.namespace)
		o := oddity{T: t, b: &dc.Spec.BeSpec.BaseSpec}
		all := o.all()
		for i := range rapid.IntRange(1, 2).Draw(t, "how many") {
			all[rapid.IntRange(0, len(all)-1).Draw(t, fmt.Sprintf("which %d", i))]()
		}
		_, findings := s.rendered(dc)
		refused := refusals(findings)
		v := s.judge(dc)
		switch {
		case len(v.errs) == 0 && len(refused) > 0:
			t.Fatalf("the API server takes it, and it is refused: %v", refused)
		case len(v.errs) == 0:
			accepted++
		case len(refused) > 0:
			refusedByBoth++
		default:
			strange++
			for i, err := range v.errs {
				if len(doris.TranslateRefusal(dc, v.objects[i], err)) == 0 {
					t.Fatalf("only the API server refuses it, and nobody says so in the fields of the DorisCluster: %v", err)
				}
			}
		}
		failed = false
	})
	t.Logf("taken by both: %d; refused by both: %d; refused by the API server alone, and translated: %d", accepted, refusedByBoth, strange)
	if !t.Failed() && (accepted < 3 || refusedByBoth < 3) {
		t.Errorf("%d specs were taken and %d refused: too few to mean anything", accepted, refusedByBoth)
	}
}

// oddity draws odd values into the spec of a component.
type oddity struct {
	*rapid.T
	b *dorisv1.BaseSpec
}

// text draws a text that may or may not be legal where it is used.
func (o oddity) text(what string) string {
	return rapid.SampledFrom([]string{
		"", "a", "A", "a-b", "a_b", "a.b", "-a", "a-", "1a", "0", "-1", "a b", "a/b", "example.com/a", "Example.com/A", "a/b/c", "/a", "a/", "a=b", "a:b",
		"kubernetes.io/a", "requests.example.com/a", "é", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"10.0.0.1", "010.0.0.1", "::ffff:10.0.0.1", "fd00::1", "fd00::1%eth0", "a..b", "a.", "*.a", "metadata.name", "spec.nodeName", "limits.cpu",
	}).Draw(o.T, what)
}

func (o oddity) texts(what string) []string {
	list := make([]string, rapid.IntRange(0, 2).Draw(o.T, "how many "+what))
	for i := range list {
		list[i] = o.text(what)
	}
	return list
}

func (o oddity) amount(what string) resource.Quantity {
	return resource.MustParse(rapid.SampledFrom([]string{"0", "1", "2", "500m", "1500m", "-1", "1Mi", "2Mi", "3Mi", "1Gi", "1e3", "0.5"}).Draw(o.T, what))
}

func (o oddity) yes(what string) *bool {
	return rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(o.T, what)
}

func (o oddity) id(what string) *int64 {
	return rapid.SampledFrom([]*int64{nil, new(int64(-1)), new(int64(1)), new(int64(1000)), new(int64(1 << 31))}).Draw(o.T, what)
}

// all are the fields that are drawn.
func (o oddity) all() []func() {
	return []func(){
		func() { o.b.PodLabels = map[string]string{o.text("key"): o.text("value")} },
		func() {
			o.b.Annotations = map[string]string{o.text("key"): "x", corev1.PodDeletionCost: o.text("cost")}
		},
		func() { o.b.NodeSelector = map[string]string{o.text("key"): o.text("value")} },
		func() { o.b.ServiceAccount = o.text("account") },
		func() {
			o.b.ImagePullSecrets = []corev1.LocalObjectReference{{Name: o.text("secret")}, {Name: o.text("secret")}}
		},
		func() {
			o.b.HostAliases = []corev1.HostAlias{{IP: o.text("ip"), Hostnames: o.texts("host")}, {IP: o.text("ip"), Hostnames: o.texts("host")}}
		},
		o.toleration, o.nodes, o.pods, o.variable, o.resources, o.podSecurity, o.containerSecurity, o.claim, o.service, o.mounts, o.times,
	}
}

func (o oddity) toleration() {
	o.b.Tolerations = append(o.b.Tolerations, corev1.Toleration{
		Key: o.text("key"), Value: o.text("value"),
		Operator:          rapid.SampledFrom([]corev1.TolerationOperator{"", "Equal", "Exists", "Lt", "Gt", "In"}).Draw(o.T, "operator"),
		Effect:            rapid.SampledFrom([]corev1.TaintEffect{"", "NoSchedule", "PreferNoSchedule", "NoExecute", "No"}).Draw(o.T, "effect"),
		TolerationSeconds: rapid.SampledFrom([]*int64{nil, new(int64(0)), new(int64(-5)), new(int64(5))}).Draw(o.T, "seconds"),
	})
}

func (o oddity) affinity() *corev1.Affinity {
	if o.b.Affinity == nil {
		o.b.Affinity = &corev1.Affinity{}
	}
	return o.b.Affinity
}

func (o oddity) nodes() {
	r := corev1.NodeSelectorRequirement{
		Key: o.text("key"), Values: o.texts("value"),
		Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Is", ""}).Draw(o.T, "operator"),
	}
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}}
	if rapid.Bool().Draw(o.T, "by field") {
		r.Key = rapid.SampledFrom([]string{metav1.ObjectNameField, "a"}).Draw(o.T, "field")
		term = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}}
	}
	a := &corev1.NodeAffinity{}
	if rapid.Bool().Draw(o.T, "required") {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
	} else {
		a.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: o.weight(), Preference: term}}
	}
	o.affinity().NodeAffinity = a
}

func (o oddity) weight() int32 {
	return rapid.SampledFrom([]int32{-1, 0, 1, 50, 100, 101}).Draw(o.T, "weight")
}

func (o oddity) selector() *metav1.LabelSelector {
	if rapid.Bool().Draw(o.T, "no selector") {
		return nil
	}
	return &metav1.LabelSelector{
		MatchLabels: map[string]string{o.text("key"): o.text("value")},
		MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: o.text("key"), Values: o.texts("value"),
			Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt"}).Draw(o.T, "operator"),
		}},
	}
}

func (o oddity) pods() {
	term := corev1.PodAffinityTerm{TopologyKey: o.text("topology"), LabelSelector: o.selector(), NamespaceSelector: o.selector(), Namespaces: o.texts("namespace")}
	if rapid.Bool().Draw(o.T, "match keys") {
		term.MatchLabelKeys = o.texts("match key")
	}
	weighted := []corev1.WeightedPodAffinityTerm{{Weight: o.weight(), PodAffinityTerm: term}}
	switch rapid.IntRange(0, 3).Draw(o.T, "kind of term") {
	case 0:
		o.affinity().PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 1:
		o.affinity().PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}
	case 2:
		o.affinity().PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 3:
		o.affinity().PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}
	}
}

func (o oddity) variable() {
	v := corev1.EnvVar{Name: o.text("name"), Value: rapid.SampledFrom([]string{"", "x"}).Draw(o.T, "value")}
	key := corev1.LocalObjectReference{Name: o.text("object")}
	switch rapid.IntRange(0, 5).Draw(o.T, "source") {
	case 0:
		v.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: rapid.SampledFrom([]string{
			"metadata.name", "metadata.labels['a']", "metadata.labels['A/B/C']", "metadata.annotations['Example.com/a']", "metadata.labels", "spec.host", "status.phase", "status.podIPs", "",
		}).Draw(o.T, "field")}}
	case 1:
		v.ValueFrom = &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Divisor: o.amount("divisor"), Resource: rapid.SampledFrom([]string{
			"limits.cpu", "requests.memory", "limits.hugepages-2Mi", "limits.disk", "",
		}).Draw(o.T, "resource")}}
	case 2:
		v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: key, Key: o.text("key")}}
	case 3:
		v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: key, Key: o.text("key")}}
	case 4:
		v.ValueFrom = &corev1.EnvVarSource{}
	}
	o.b.EnvVars = append(o.b.EnvVars, v)
}

func (o oddity) resources() {
	name := func() corev1.ResourceName {
		return corev1.ResourceName(rapid.SampledFrom([]string{
			"cpu", "memory", "ephemeral-storage", "storage", "disk", "example.com/gpu", "kubernetes.io/disk", "requests.example.com/gpu", "hugepages-2Mi", "hugepages-", "hugepages-x", "a b",
		}).Draw(o.T, "resource"))
	}
	a, b := name(), name()
	o.b.Requests = corev1.ResourceList{a: o.amount("request"), b: o.amount("request")}
	o.b.Limits = corev1.ResourceList{a: o.amount("limit"), "cpu": o.amount("limit")}
}

func (o oddity) seccomp() *corev1.SeccompProfile {
	return &corev1.SeccompProfile{
		Type:             rapid.SampledFrom([]corev1.SeccompProfileType{"RuntimeDefault", "Unconfined", "Localhost", "Default", ""}).Draw(o.T, "seccomp"),
		LocalhostProfile: rapid.SampledFrom([]*string{nil, new("a.json"), new("/a.json"), new("../a.json"), new("")}).Draw(o.T, "profile"),
	}
}

func (o oddity) podSecurity() {
	o.b.SecurityContext = &corev1.PodSecurityContext{RunAsUser: o.id("user"), RunAsGroup: o.id("group"), FSGroup: o.id("fsGroup"), RunAsNonRoot: o.yes("not root")}
	switch rapid.IntRange(0, 4).Draw(o.T, "more") {
	case 0:
		o.b.SecurityContext.SeccompProfile = o.seccomp()
	case 1:
		o.b.SecurityContext.Sysctls = []corev1.Sysctl{{Name: rapid.SampledFrom([]string{"net.core.somaxconn", "kernel/shm_rmid_forced", "kernel..a", "A", "a_", "", "a-b.c_d"}).Draw(o.T, "sysctl"), Value: "1"}}
	case 2:
		o.b.SecurityContext.FSGroupChangePolicy = new(rapid.SampledFrom([]corev1.PodFSGroupChangePolicy{"Always", "OnRootMismatch", "Never"}).Draw(o.T, "policy"))
	case 3:
		o.b.SecurityContext.AppArmorProfile = &corev1.AppArmorProfile{
			Type:             rapid.SampledFrom([]corev1.AppArmorProfileType{"RuntimeDefault", "Unconfined", "Localhost", ""}).Draw(o.T, "appArmor"),
			LocalhostProfile: rapid.SampledFrom([]*string{nil, new("a"), new(" a"), new("")}).Draw(o.T, "profile"),
		}
	}
}

func (o oddity) containerSecurity() {
	o.b.ContainerSecurityContext = &corev1.SecurityContext{
		RunAsUser: o.id("user"), RunAsGroup: o.id("group"), Privileged: o.yes("privileged"), AllowPrivilegeEscalation: o.yes("escalation"), RunAsNonRoot: o.yes("not root"),
		Capabilities: &corev1.Capabilities{Add: []corev1.Capability{corev1.Capability(rapid.SampledFrom([]string{"CAP_SYS_ADMIN", "SYS_ADMIN", "NET_ADMIN"}).Draw(o.T, "capability"))}},
		ProcMount:    rapid.SampledFrom([]*corev1.ProcMountType{nil, new(corev1.DefaultProcMount), new(corev1.UnmaskedProcMount), new(corev1.ProcMountType("a"))}).Draw(o.T, "procMount"),
	}
	if rapid.Bool().Draw(o.T, "profile") {
		o.b.ContainerSecurityContext.SeccompProfile = o.seccomp()
	}
}

func (o oddity) claim() {
	claim := &o.b.PersistentVolumes[0].PersistentVolumeClaimSpec
	switch rapid.IntRange(0, 6).Draw(o.T, "of the claim") {
	case 0:
		// One with an illegal name is not rendered, so that the API server does not see it.
		o.b.PersistentVolumes[0].Name = rapid.SampledFrom([]string{"a", "a-b", "1a", "0", strings.Repeat("a", 63)}).Draw(o.T, "volume")
	case 1:
		o.b.PersistentVolumes[0].Annotations = map[string]string{o.text("key"): "x"}
	case 2:
		claim.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: o.amount("size")}
	case 3:
		claim.StorageClassName = new(o.text("class"))
	case 4:
		claim.AccessModes = rapid.SliceOfN(rapid.SampledFrom([]corev1.PersistentVolumeAccessMode{"ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod", "RWO"}), 0, 3).Draw(o.T, "modes")
	case 5:
		claim.Selector = o.selector()
	case 6:
		group := rapid.SampledFrom([]*string{nil, new(""), new("snapshot.storage.k8s.io")}).Draw(o.T, "group")
		kind := rapid.SampledFrom([]string{"", "PersistentVolumeClaim", "VolumeSnapshot"}).Draw(o.T, "kind")
		if rapid.Bool().Draw(o.T, "source") {
			claim.DataSource = &corev1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: o.text("object")}
		}
		if rapid.Bool().Draw(o.T, "ref") {
			claim.DataSourceRef = &corev1.TypedObjectReference{APIGroup: group, Kind: kind, Name: o.text("object")}
		}
	}
}

func (o oddity) service() {
	ranges := rapid.SampledFrom([]string{"", " ", "10.0.0.0/8", " 10.0.0.0/8 , fd00::/8", "10.0.0.1", "10.0.0.1/8", "a"}).Draw(o.T, "ranges")
	o.b.Service = &dorisv1.ExportService{
		Type:           rapid.SampledFrom([]corev1.ServiceType{"", "ClusterIP", "NodePort", "LoadBalancer"}).Draw(o.T, "type"),
		Annotations:    map[string]string{o.text("key"): "x"},
		LoadBalancerIP: o.text("address"),
		ServicePorts:   []dorisv1.ServicePort{{TargetPort: 8040, NodePort: 0}, {TargetPort: rapid.SampledFrom([]int32{0, 9050, 1}).Draw(o.T, "target"), NodePort: rapid.SampledFrom([]int32{0, 80, 31777}).Draw(o.T, "nodePort")}},
	}
	if rapid.Bool().Draw(o.T, "with ranges") {
		o.b.Service.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey] = ranges
	}
}

// mounts never draws one path twice: of two volumes there one is not rendered.
func (o oddity) mounts() {
	at := func(what string, paths ...string) string { return rapid.SampledFrom(paths).Draw(o.T, what) }
	o.b.ConfigMapInfo.ConfigMaps = []dorisv1.MountConfigMapInfo{{ConfigMapName: "fe-conf", MountPath: at("map", "", "/etc/doris/", "/etc/doris//", "/etc/podinfo/a")}}
	o.b.Secrets = []dorisv1.Secret{{SecretName: "fe-conf", MountPath: at("secret", "/a", "/a/../b", "/opt/apache-doris/be", "/ä b")}}
}

func (o oddity) times() {
	n := func(what string) int32 {
		return rapid.SampledFrom([]int32{-1, 0, 1, 500, 1<<31 - 8, 1<<31 - 1}).Draw(o.T, what)
	}
	o.b.StartTimeout, o.b.LiveTimeout = n("start"), n("live")
	o.b.ReadinessProbePolicy = &dorisv1.ReadinessProbePolicy{TimeoutSeconds: n("timeout"), FailureThreshold: n("failures"), PeriodSeconds: n("period")}
}
