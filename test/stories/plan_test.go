package stories

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/story"
)

const pluginAgent = "kubectl-fairlead"

// plugin runs a verb of the plugin, which has to succeed, and returns what it
// prints.
func (s *scene) plugin(args ...string) string {
	s.Helper()
	out, code := s.plugged("", args...)
	if code != exit.OK {
		s.Fatalf("%v ended with %d:\n%s", args, code, out)
	}
	return out
}

// plugged runs a verb of the plugin with an input and returns all that it prints
// and its exit code.
func (s *scene) plugged(input string, args ...string) (out string, code int) {
	s.Helper()
	return pluggedAnywhere(s, input, append(slices.Clone(args), "--kubeconfig", s.cluster.Kubeconfig(), "-n", s.namespace)...)
}

func pluggedAnywhere(s *scene, input string, args ...string) (out string, code int) {
	var printed bytes.Buffer
	cmd := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(input), Out: &printed, ErrOut: &printed})
	cmd.SetArgs(args)
	cmd.SetOut(&printed)
	cmd.SetErr(&printed)
	err := cmd.ExecuteContext(s.Context())
	code, say := exit.Code(err)
	if say {
		fmt.Fprintln(&printed, "Error:", err)
	}
	return printed.String(), code
}

// planned asks the plugin about an edit of the cluster doris.
func (s *scene) planned(edit func(*dorisv1.DorisCluster)) cliplan.Result {
	s.Helper()
	dc := s.doris("doris")
	edit(dc)
	manifest := dorisv1.DorisCluster{TypeMeta: dc.TypeMeta, Spec: dc.Spec}
	manifest.SetGroupVersionKind(dorisv1.GroupVersionKind())
	manifest.Name, manifest.Namespace = dc.Name, dc.Namespace
	text, err := yaml.Marshal(manifest)
	if err != nil {
		s.Fatal(err)
	}
	file := filepath.Join(s.TempDir(), "doris.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.Fatal(err)
	}
	var results []cliplan.Result
	if err := json.Unmarshal([]byte(s.plugin("plan", "-f", file, "-o", "json")), &results); err != nil {
		s.Fatal(err)
	}
	if len(results) != 1 {
		s.Fatalf("%d plans", len(results))
	}
	return results[0]
}

// TestWhatHappensIsWhatWasPlanned plans some edits, carries them out, and
// compares: the objects that change, and the Pods that are replaced.
func TestWhatHappensIsWhatWasPlanned(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(strings.ReplaceAll(three, "replicas: 3", "replicas: 2"))
	s.settled("doris")
	mark := s.mark()
	for _, tc := range []struct {
		name string
		edit func(*dorisv1.DorisCluster)
		pods []string
	}{
		{"an image", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-3.0.5" }, []string{"doris-be-0", "doris-be-1"}},
		{"more replicas", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = new(int32(3)) }, nil},
		{"a Service", func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort}
		}, nil},
		{"nothing", func(*dorisv1.DorisCluster) {}, nil},
	} {
		s.quiet(time.Second)
		p := s.planned(tc.edit)
		before, went := s.versions(), len(s.history.Went())
		s.edit("doris", tc.edit)
		s.settled("doris")
		s.quiet(time.Second)
		var wanted, pods []string
		for _, c := range p.Changes {
			name := c.Object.String()
			switch {
			case c.Object.Kind == "Pod" && c.Effect == plan.EffectRestartPod:
				pods = append(pods, c.Object.Name)
			case c.Verdict == plan.VerdictApply && !slices.Contains(wanted, name):
				wanted = append(wanted, name)
			}
		}
		slices.Sort(wanted)
		slices.Sort(pods)
		replaced := slices.Sorted(slices.Values(s.history.Went()[went:]))
		if diff := cmp.Diff(wanted, s.changedSince(before)); diff != "" {
			t.Errorf("%s: objects (-planned +happened):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(pods, replaced); diff != "" {
			t.Errorf("%s: Pods (-planned +happened):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.pods, pods); diff != "" {
			t.Errorf("%s: Pods (-want +planned):\n%s", tc.name, diff)
		}
	}
	text := s.plugin("status", "doris")
	for _, part := range []string{"DorisCluster " + s.namespace + "/doris", "Ready", "2/2", "3/3", "available", "nothing to do"} {
		if !strings.Contains(text, part) {
			t.Errorf("status does not say %q:\n%s", part, text)
		}
	}
	if text := s.plugin("plan", "doris"); !strings.Contains(text, "nothing to do") {
		t.Errorf("the plan of a settled cluster:\n%s", text)
	}
	s.nothingWritten(mark)
}

// versions are what tells one state of the operator's objects from the next:
// the generation of what has one that counts, else the resource version.
func (s *scene) versions() map[string]string {
	s.Helper()
	out := map[string]string{}
	for kind, list := range ownKinds() {
		for _, o := range s.list(list) {
			if !strings.HasPrefix(o.GetName(), "doris-") {
				continue
			}
			out[kind+"/"+o.GetName()] = o.GetName() + " " + story.Wrote(o)
		}
	}
	return out
}

// changedSince lists the objects that the operator has applied anew.
func (s *scene) changedSince(before map[string]string) []string {
	s.Helper()
	var changed []string
	for name, version := range s.versions() {
		if before[name] != version {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}
