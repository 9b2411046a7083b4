package live

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
)

// What the notes of a release tell to do next does what they say, line by line.
func TestNextStepsOfTheNotes(t *testing.T) {
	h := newHelm(t)
	r := h.install("fairlead", fmt.Sprintf("watchNamespaces: [%s]\nmetrics: {port: %s}\noperatorHealth: {port: %s}\n", h.namespace, port(t), port(t)))
	h.served()
	h.operate("fairlead").says("Starting workers")
	file := filepath.Join(t.TempDir(), "doriscluster.yaml")
	if err := os.WriteFile(file, []byte(shared(t, "examples/doriscluster.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, line := range regexp.MustCompile(`(?m)^  kubectl .*$`).FindAllString(r.Info.Notes, -1) {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = filepath.Dir(file)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+clustertest.Shared(t).Kubeconfig(),
			"PATH="+filepath.Dir(build(t))+":"+filepath.Dir(clustertest.Shared(t).Record().Kubectl)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		t.Logf("%s\n%s", line, out)
		did = append(did, strings.Join(strings.Fields(line)[1:4], " "))
	}
	for _, verb := range []string{"fairlead status operator", "fairlead plan -n", "apply -n " + h.namespace, "fairlead status -n"} {
		if !strings.Contains(strings.Join(did, "\n"), verb) {
			t.Errorf("the notes do not tell to %s:\n%s", verb, r.Info.Notes)
		}
	}
	name := h.clusterNames()
	if len(name) != 1 {
		t.Fatalf("there are %v after what the notes say", name)
	}
	for _, verb := range regexp.MustCompile(`\b(history|explain)\b`).FindAllString(r.Info.Notes, -1) {
		if got := h.plugin(verb, "dcr/"+name[0]); strings.Contains(got, "exit status") {
			t.Errorf("kubectl fairlead %s: %s", verb, got)
		}
	}
}
