package truth

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// base is the cluster that is edited.
func base() *dorisv1.DorisCluster {
	volume := func(name, path string) []dorisv1.PersistentVolume {
		return []dorisv1.PersistentVolume{{
			Name: name, MountPath: path,
			PersistentVolumeClaimSpec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
	}
	dc := &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Name: "doris"}}
	fe, be := &dorisv1.FeSpec{}, &dorisv1.BeSpec{}
	for kind, s := range map[string]*dorisv1.BaseSpec{"fe": &fe.BaseSpec, "be": &be.BaseSpec} {
		s.Replicas, s.Image = new(int32(2)), "apache/doris:"+kind+"-2.1.8"
		s.ConfigMapInfo = dorisv1.ConfigMapInfo{ConfigMapName: kind + "-conf", ResolveKey: kind + ".conf"}
	}
	fe.PersistentVolumes = volume("meta", "/opt/apache-doris/fe/doris-meta")
	be.PersistentVolumes = volume("data", "/opt/apache-doris/be/storage")
	if onNode() { // a node of its own for each would be asked too much
		fe.Replicas, be.SkipDefaultSystemInit = new(int32(1)), true
	}
	dc.Spec.FeSpec, dc.Spec.BeSpec = fe, be
	return dc
}

// conf is a file of a component. Members know each other by names, so that their
// addresses may change.
func conf(level string) string { return "enable_fqdn_mode = true\nsys_log_level = " + level + "\n" }

// edit is one thing that a person may do. It changes the resource or a ConfigMap.
type edit struct {
	name string
	do   func(e *editing)
}

// editing is what an edit works on: the part of one component.
type editing struct {
	*rapid.T
	turn   int
	dc     *dorisv1.DorisCluster
	kind   string
	spec   *dorisv1.BaseSpec
	config *corev1.ConfigMap
}

func (e *editing) oneOf(what string, values ...string) string {
	return rapid.SampledFrom(values).Draw(e.T, what)
}

func (e *editing) amount(what string, values ...string) resource.Quantity {
	return resource.MustParse(e.oneOf(what, values...))
}

// possible are the edits. Those that take members away are not among them: nobody
// plays the database on simulated nodes.
var possible = []edit{
	{"the same once more", func(*editing) {}},
	{"image", func(e *editing) {
		e.spec.Image = "apache/doris:" + e.kind + "-" + e.oneOf("version", versions...)
	}},
	{"one more", func(e *editing) { e.spec.Replicas = new(min(*e.spec.Replicas+1, 4)) }},
	{"resources", func(e *editing) {
		cpu, memory := e.amount("cpu", "1", "2"), e.amount("memory", "1Gi", "2Gi", "4Gi")
		if onNode() {
			cpu, memory = e.amount("cpu", "50m", "100m"), e.amount("memory", "256Mi", "320Mi", "384Mi")
		}
		e.spec.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
		e.spec.Limits = e.spec.Requests.DeepCopy()
	}},
	{"no resources", func(e *editing) { e.spec.ResourceRequirements = corev1.ResourceRequirements{} }},
	{"variable", func(e *editing) {
		e.spec.EnvVars = []corev1.EnvVar{{Name: e.oneOf("name", "COLOUR", "TASTE"), Value: e.oneOf("value", "a", "b")}}
	}},
	{"no variables", func(e *editing) { e.spec.EnvVars = nil }},
	{"Pod labels", func(e *editing) { e.spec.PodLabels = map[string]string{"team": e.oneOf("team", "a", "b")} }},
	{"annotations", func(e *editing) { e.spec.Annotations = map[string]string{"note": e.oneOf("note", "a", "b")} }},
	{"Service", func(e *editing) {
		e.spec.Service = &dorisv1.ExportService{Type: corev1.ServiceType(e.oneOf("type", "ClusterIP", "NodePort"))}
	}},
	{"tolerations", func(e *editing) {
		e.spec.Tolerations = []corev1.Toleration{{Key: e.oneOf("key", "a", "b"), Operator: corev1.TolerationOpExists}}
	}},
	{"host aliases", func(e *editing) {
		e.spec.HostAliases = []corev1.HostAlias{{IP: "10.1.1.1", Hostnames: []string{e.oneOf("host", "a", "b")}}}
	}},
	{"a setting in the file", func(e *editing) {
		e.config.Data[e.kind+".conf"] = conf(e.oneOf("level", "INFO", "WARN", "ERROR"))
	}},
	{"another file", func(e *editing) { e.config.Data["extra.xml"] = e.oneOf("text", "<a/>", "<b/>") }},
	{"policy", func(e *editing) {
		e.dc.Spec.ConfigUpdatePolicy = dorisv1.ConfigUpdatePolicy(e.oneOf("policy", "Manual", "Restart"))
	}},
	{"restart", func(e *editing) {
		if e.dc.Annotations == nil {
			e.dc.Annotations = map[string]string{}
		}
		at := time.Date(2030, 1, 1, 0, 0, e.turn, 0, time.UTC)
		e.dc.Annotations["apache.doris."+e.kind+"/restartedAt"] = at.Format(time.RFC3339)
	}},
	{"a Service that cannot be", func(e *editing) {
		e.spec.Service = &dorisv1.ExportService{Type: "NodePort", ServicePorts: []dorisv1.ServicePort{{TargetPort: 8030, NodePort: 80}}}
	}},
	{"the data elsewhere", func(e *editing) { e.spec.PersistentVolumes[0].MountPath = "/elsewhere" }},
	{"a smaller disk", func(e *editing) {
		e.spec.PersistentVolumes[0].PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("500Mi")
	}},
	{"no image", func(e *editing) { e.spec.Image = "" }},
	{"a variable twice", func(e *editing) { e.spec.EnvVars = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}} }},
	{"a ConfigMap that is not there", func(e *editing) { e.spec.ConfigMapInfo.ConfigMapName = "nowhere" }},
}

// draw does one to three edits at once, and names them.
func draw(t *rapid.T, turn int, dc *dorisv1.DorisCluster, configs map[string]*corev1.ConfigMap) []string {
	var names []string
	for i := range rapid.IntRange(1, 3).Draw(t, "how many at once") {
		kind := rapid.SampledFrom([]string{"be", "fe"}).Draw(t, "component")
		e := rapid.SampledFrom(possible).Draw(t, fmt.Sprintf("edit %d", i))
		on := &editing{T: t, turn: turn, dc: dc, kind: kind, config: configs[kind+"-conf"]}
		if on.spec = &dc.Spec.BeSpec.BaseSpec; kind == "fe" {
			on.spec = &dc.Spec.FeSpec.BaseSpec
		}
		e.do(on)
		names = append(names, kind+": "+e.name)
	}
	return names
}

// String keeps prints of drawn edits short.
func (e edit) String() string { return e.name }

// GoString is String.
func (e edit) GoString() string { return e.name }
