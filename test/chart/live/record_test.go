package live

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/story"
)

// plugin runs the kubectl plugin and returns what it prints.
func (h *helm) plugin(args ...string) string {
	h.Helper()
	binary := filepath.Join(filepath.Dir(build(h.T)), "kubectl-fairlead")
	cmd := exec.CommandContext(h.Context(), binary, append(args, "--kubeconfig", clustertest.Shared(h.T).Kubeconfig(), "-n", h.namespace)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return string(out)
}

// tells waits until the plugin prints all of the texts.
func (h *helm) tells(verb string, texts ...string) {
	h.Helper()
	eventually(h.T, "kubectl fairlead "+verb, func() string {
		got := h.plugin(append(strings.Fields(verb), "--operator-namespace", h.namespace)...)
		for _, text := range texts {
			if !strings.Contains(strings.Join(strings.Fields(got), " "), text) {
				return fmt.Sprintf("lacks %q:\n%s", text, got)
			}
		}
		return ""
	})
}

// The operator tells of itself, with no more rights than the chart gives it, once
// for each state: what is in force and from which layer, what waits for a restart,
// and what is wrong with the file, by its line.
func TestOperatorTellsOfItself(t *testing.T) {
	h := newHelm(t)
	metrics := port(t)
	base := fmt.Sprintf("metrics: {port: %s}\noperatorHealth: {port: %s}\ndefaultConfiguration: {options: {perNamespace: {%s: {rollPause: 20s}}}}\n", metrics, port(t), h.namespace)
	h.install("blue", base)
	h.served()
	h.rolled("blue", "blue-fairlead")
	mark, err := clustertest.Shared(t).Audit().Mark()
	if err != nil {
		t.Fatal(err)
	}
	if got := h.plugin("status", "operator", "--operator-namespace", h.namespace); !strings.Contains(got, "exit status 1") {
		t.Errorf("nobody has led yet, and the plugin says:\n%s", got)
	}
	op := h.operate("blue-fairlead")
	h.tells("status operator", "Operator "+h.namespace+"/blue-fairlead-operator", "config.yaml is in force")
	h.tells("explain operator", "workers startup 16 built-in", "logLevel dynamic info built-in", "leaderElect startup true flag", h.namespace+" rollPause 20s")

	h.clusters("one", "two")
	h.annotate("one", "fairlead.dev/roll-pause", "45s")
	h.annotate("two", "fairlead.dev/roll-pause", "soon")
	h.tells("explain operator dcr/one", "rollPause dynamic 45s annotation")
	h.tells("explain operator dcr two", "rollPause dynamic 20s file, for the namespace", `annotation fairlead.dev/roll-pause is "soon"; write a duration such as 30s or 5m`)
	eventually(t, "the resource warns of its annotation", func() string {
		if got := h.plugin("status", "dcr/two"); !strings.Contains(got, `fairlead.dev/roll-pause is "soon"`) {
			return got
		}
		return ""
	})

	h.upgrade("blue", base+"logging: {level: debug}\nworkers: 4\n")
	op.sync("blue-fairlead")
	h.tells("status operator", "is in force, but for what needs a restart", "Needs restart workers is 16, and 4 in the file")
	h.tells("explain operator", "logLevel dynamic debug file", "workers startup 16 built-in in the file: 4, after a restart")

	const bad = "apiVersion: config.fairlead.dev/v1alpha1\nkind: OperatorConfiguration\nlogLevel: info\nworkers: many\n"
	op.mounts(bad)
	h.tells("status operator", "is refused; the former configuration stays in force", `config.yaml:4: workers is "many"; write a whole number`)
	h.tells("explain operator", "logLevel dynamic debug file")
	h.event("ConfigurationRefused", `workers is "many"; write a whole number`)
	h.measures(metrics, "fairlead_config_last_reload_successful 0", `fairlead_config_reloads_total{outcome="refused"} 1`)

	// Mended, and spoilt once more: the event is counted up.
	op.sync("blue-fairlead")
	h.tells("status operator", "is in force, but for what needs a restart")
	h.measures(metrics, "fairlead_config_last_reload_successful 1", `fairlead_config_restart_required{option="workers"} 1`)
	op.mounts(bad)
	h.tells("status operator", "is refused; the former configuration stays in force")
	h.measures(metrics, `fairlead_config_reloads_total{outcome="refused"} 2`)

	entries, err := clustertest.Shared(t).Audit().Since(mark)
	if err != nil {
		t.Fatal(err)
	}
	writes := 0
	for _, e := range entries {
		if e.User != "system:serviceaccount:"+h.namespace+":blue-fairlead" {
			continue
		}
		if e.Code == 403 {
			t.Errorf("the operator may not %s %s", e.Verb, e.Key().Resource)
		}
		if e.Name == "blue-fairlead-operator" && e.Key().Resource == "configmaps" {
			writes++
		}
	}
	if writes != 5 {
		t.Errorf("the operator told of itself in %d requests; it had five things to say", writes)
	}
	if err := story.CheckExercised(root, "chart/live/"+t.Name(), story.Using{
		Account: "system:serviceaccount:" + h.namespace + ":blue-fairlead", Own: h.namespace, Works: []string{h.namespace}, Lease: "blue-fairlead",
	}, entries); err != nil {
		t.Error(err)
	}
	var record corev1.ConfigMap
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "blue-fairlead-operator"}, &record); err != nil {
		t.Fatal(err)
	}
}

// measures waits until the operator serves all of the metrics.
func (h *helm) measures(port string, lines ...string) {
	h.Helper()
	eventually(h.T, "the metrics", func() string {
		answer, err := http.Get("http://127.0.0.1:" + port + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err.Error()
		}
		for _, line := range lines {
			if !strings.Contains(string(body), "\n"+line+"\n") {
				return "lack " + line
			}
		}
		return ""
	})
}

func (h *helm) annotate(name, key, value string) {
	h.Helper()
	var dc dorisv1.DorisCluster
	if err := h.client.Get(h.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, &dc); err != nil {
		h.Fatal(err)
	}
	before := dc.DeepCopy()
	if dc.Annotations == nil {
		dc.Annotations = map[string]string{}
	}
	dc.Annotations[key] = value
	if err := h.client.Patch(h.Context(), &dc, client.MergeFrom(before)); err != nil {
		h.Fatal(err)
	}
}
