package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

const checksum = "checksum/config"

func (h *helm) configuration(name string) string {
	h.Helper()
	var cm corev1.ConfigMap
	if err := h.client.Get(h.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, &cm); err != nil {
		h.Fatal(err)
	}
	return cm.Data["config.yaml"]
}

func (h *helm) same(what string, before, after []string) {
	h.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		h.Errorf("%s: the Pods change:\n%s", what, diff)
	}
}

func (h *helm) replaced(what string, before, after []string) {
	h.Helper()
	for _, b := range before {
		for _, a := range after {
			if a == b {
				h.Errorf("%s: Pod %s stays", what, a)
			}
		}
	}
}

// The bullets of restartOnConfigChange, one after the other, with an operator
// that is really told: and two DorisClusters that notice nothing of it.
func TestRestartOnConfigChange(t *testing.T) {
	h := newHelm(t)
	const ports = "metrics: {port: %s}\noperatorHealth: {port: %s}\n"
	base := fmt.Sprintf(ports, port(t), port(t)) + "operatorDeployment: {annotations: {of: deployment}}\n"
	h.install("fairlead", base)
	h.served()
	first := h.rolled("fairlead", "fairlead")
	op := h.operate("fairlead")
	op.says("Starting workers")
	clusters := h.clusters("one", "two")

	// Off: the ConfigMap changes, the Pod does not; what is dynamic is in force,
	// what is not is named.
	off := base + "logging: {level: debug}\nworkers: 4\n"
	h.upgrade("fairlead", off)
	if c := h.configuration("fairlead-config"); !strings.Contains(c, "workers: 4") {
		t.Errorf("the ConfigMap has:\n%s", c)
	}
	h.same("toggle off", first, h.rolled("fairlead", "fairlead"))
	op.sync("fairlead")
	op.says(`"option":"logLevel","from":"info","to":"debug"`)
	op.says(`"msg":"option needs a restart of the operator","logger":"configuration","option":"workers","from":"16","to":"4"`)
	op.says(`"level":"DEBUG`)
	h.event("ConfigurationNeedsRestart", "workers")
	op.end()

	// On, same values: the Pod is replaced, and the operator has what it was told.
	on := off + "operatorPod: {restartOnConfigChange: true}\n"
	h.upgrade("fairlead", on)
	second := h.rolled("fairlead", "fairlead")
	h.replaced("toggle on", first, second)
	sum := h.deployment("fairlead").Spec.Template.Annotations[checksum]
	if sum == "" {
		t.Error("there is no checksum")
	}
	op = h.operate("fairlead")
	op.says(`"worker count":4`)

	// On, identical values: nothing moves.
	h.upgrade("fairlead", on)
	h.same("identical values", second, h.rolled("fairlead", "fairlead"))
	if again := h.deployment("fairlead").Spec.Template.Annotations[checksum]; again != sum {
		t.Errorf("identical values: checksum %s becomes %s", sum, again)
	}
	op.end()

	// On, changed again.
	h.upgrade("fairlead", strings.ReplaceAll(on, "workers: 4", "workers: 5"))
	third := h.rolled("fairlead", "fairlead")
	h.replaced("changed again", second, third)
	if now := h.deployment("fairlead").Spec.Template.Annotations[checksum]; now == sum || now == "" {
		t.Errorf("changed again: the checksum is %q, was %q", now, sum)
	}
	op = h.operate("fairlead")
	op.says(`"worker count":5`)

	// The annotation is the Deployment's, and not the Pod's.
	d := h.deployment("fairlead")
	if d.Annotations["of"] != "deployment" || d.Spec.Template.Annotations["of"] != "" {
		t.Errorf("annotations are %v and %v", d.Annotations, d.Spec.Template.Annotations)
	}
	h.same("DorisClusters", clusters, h.members())
	if strings.Contains(op.log.String(), `"level":"ERROR"`) {
		t.Error("the operator has errors after its restart")
	}
}

// clusters makes DorisClusters and waits for their frontends; it returns what
// members does.
func (h *helm) clusters(names ...string) []string {
	h.Helper()
	for _, name := range names {
		dc := &dorisv1.DorisCluster{}
		dc.Namespace, dc.Name = h.namespace, name
		dc.Spec.FeSpec = &dorisv1.FeSpec{}
		dc.Spec.FeSpec.Replicas, dc.Spec.FeSpec.Image = new(int32(1)), "apache/doris:fe-2.1.8"
		if err := h.client.Create(h.Context(), dc); err != nil {
			h.Fatal(err)
		}
	}
	eventually(h.T, "the frontends run", func() string {
		if n := len(h.members()); n != len(names) {
			return fmt.Sprintf("%d Pods", n)
		}
		return ""
	})
	return h.members()
}

// members are the Pods of DorisClusters, with what would change in a restart.
func (h *helm) members() []string {
	h.Helper()
	var sets appsv1.StatefulSetList
	if err := h.client.List(h.Context(), &sets, client.InNamespace(h.namespace)); err != nil {
		h.Fatal(err)
	}
	var out []string
	for _, s := range sets.Items {
		var pods corev1.PodList
		if err := h.client.List(h.Context(), &pods, client.InNamespace(h.namespace), client.MatchingLabels(s.Spec.Selector.MatchLabels)); err != nil {
			h.Fatal(err)
		}
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodRunning {
				continue
			}
			restarts := int32(0)
			for _, c := range p.Status.ContainerStatuses {
				restarts += c.RestartCount
			}
			out = append(out, fmt.Sprintf("%s %s %d restarts", p.Name, p.UID, restarts))
		}
	}
	return out
}

// event waits for an event of the operator's Pod.
func (h *helm) event(reason, text string) {
	h.Helper()
	eventually(h.T, "an event "+reason, func() string {
		var list corev1.EventList
		if err := h.client.List(h.Context(), &list, client.InNamespace(h.namespace)); err != nil {
			h.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Reason == reason && e.InvolvedObject.Kind == "Pod" && strings.Contains(e.Message, text) {
				return ""
			}
		}
		return "there is none"
	})
}

// A release goes without the resources. It is named as the rights of all releases
// are, and leads all the same.
func TestUninstallLeavesResourcesAndData(t *testing.T) {
	h := newHelm(t)
	h.install("fairlead-operator", fmt.Sprintf("metrics: {port: %s}\noperatorHealth: {port: %s}\n", port(t), port(t)))
	h.served()
	h.rolled("fairlead-operator", "fairlead-operator")
	op := h.operate("fairlead-operator")
	members := h.clusters("one")
	op.end()
	h.uninstall("fairlead-operator")
	eventually(t, "the operator goes", func() string { return strings.Join(h.pods("fairlead-operator"), " ") })
	var dc dorisv1.DorisCluster
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "one"}, &dc); err != nil || dc.DeletionTimestamp != nil {
		t.Errorf("the DorisCluster: %v, deleted %v", err, dc.DeletionTimestamp)
	}
	h.same("uninstall", members, h.members())

	// It comes back, and finds its own definition.
	h.install("fairlead-operator", "{}")
	h.same("install again", members, h.members())
}

// Without crds.keep the definition goes with the release.
func TestUninstallWithoutKeepTakesTheDefinition(t *testing.T) {
	h := newHelm(t)
	h.install("fairlead", "crds: {keep: false}")
	h.served()
	h.uninstall("fairlead")
	eventually(t, "the definition goes", func() string {
		if h.definition() == nil {
			return ""
		}
		return "it is there"
	})
}
