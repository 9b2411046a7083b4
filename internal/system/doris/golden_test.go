package doris

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden renders every case under testdata. The files are the promise that
// the output of a revision never changes: a difference rolls Pods.
func TestGolden(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			dc, inputs := readCase(t, in)
			objects, findings := Desired(dc, inputs)
			got := printObjects(t, objects, findings)
			golden := filepath.Join(dir, "objects.yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("rendering changed, which restarts Pods of every cluster of this revision (-want +got):\n%s", diff)
			}
		})
	}
}

// readCase reads a DorisCluster and what it refers to from one file. A file that
// names no revision is of revision 1.
func readCase(t *testing.T, file string) (*dorisv1.DorisCluster, Inputs) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dc := &dorisv1.DorisCluster{}
	in := Inputs{
		Revision: 1, ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]bool{},
		Claims: map[string]*corev1.PersistentVolumeClaim{},
	}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var head struct {
			Kind         string
			Metadata     struct{ Name string }
			Bootstrapped bool
			Revision     *int
			Copies       map[string]string
			Runtime      map[dorisv1.ComponentType]*runtimeconfig.Record
		}
		decode(t, doc, &head)
		if head.Revision != nil {
			in.Revision = *head.Revision
		}
		if head.Copies != nil {
			in.Copies = head.Copies
		}
		if head.Runtime != nil {
			in.Runtime = head.Runtime
		}
		in.Bootstrapped = in.Bootstrapped || head.Bootstrapped
		switch head.Kind {
		case dorisv1.Kind:
			if err := yaml.UnmarshalStrict([]byte(doc), dc); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		case "ConfigMap":
			cm := &corev1.ConfigMap{}
			decode(t, doc, cm)
			in.ConfigMaps[cm.Name] = cm
		case "Secret":
			in.Secrets[head.Metadata.Name] = true
		case "PersistentVolumeClaim":
			claim := &corev1.PersistentVolumeClaim{}
			decode(t, doc, claim)
			in.Claims[claim.Name] = claim
		}
	}
	return dc, in
}

func decode(t *testing.T, doc string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(doc), into); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
}

// printObjects prints all that Desired returns.
func printObjects(t *testing.T, objects Objects, findings []plan.Finding) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range findings {
		fmt.Fprintf(&b, "# %s %s: %s\n#   %s\n", f.Severity, f.Reason, f.Field, f.Message)
	}
	for _, m := range objects.Missing {
		fmt.Fprintf(&b, "# missing for %s: %s\n#   %s\n", m.Component, m.On, m.Message)
	}
	for _, c := range objects.Components {
		fmt.Fprintf(&b, "# %s: %d of %d replicas\n", c.Type, c.Replicas, c.FullReplicas)
		printObject(t, &b, c.StatefulSet)
		for _, s := range c.Services {
			printObject(t, &b, s)
		}
	}
	if objects.Autoscaler != nil {
		printObject(t, &b, objects.Autoscaler)
	}
	for _, s := range objects.Secrets {
		printObject(t, &b, s)
	}
	for _, c := range objects.ConfigMaps {
		printObject(t, &b, c)
	}
	return b.Bytes()
}

func printObject(t *testing.T, b *bytes.Buffer, object any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "---\n%s", text)
}

// TestCompatibleManifests renders the manifests that users of the existing
// operator know, where they are at hand.
func TestCompatibleManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../shared/compat/doris/examples/doriscluster-sample*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the manifests are not here")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			dc, in := readCase(t, file)
			for _, name := range References(dc).ConfigMaps {
				in.ConfigMaps[name] = &corev1.ConfigMap{}
				for _, key := range []string{frontendConfKey, backendConfKey} {
					if text, err := os.ReadFile(filepath.Join(filepath.Dir(file), key)); err == nil && strings.HasPrefix(name, key[:2]) {
						in.ConfigMaps[name].Data = map[string]string{key: string(text)}
					}
				}
				if strings.HasPrefix(name, "cn-") { // as the example asks people to write it
					in.ConfigMaps[name].Data = map[string]string{backendConfKey: "be_node_role = computation"}
				}
			}
			objects, findings := Desired(dc, in)
			for _, f := range findings {
				if f.Severity == plan.Refusal {
					t.Errorf("refused: %v", f)
				}
			}
			if len(objects.Missing) > 0 {
				t.Errorf("missing: %v", objects.Missing)
			}
			for _, c := range objects.Components {
				checkComponent(t, c, in.Revision)
			}
		})
	}
}
