package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/internal/cli/kube"
)

func reading() Reading { return Reading{Scheme: kube.Scheme(), Namespace: "analytics"} }

const doris = `apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec:
    replicas: 3
`

func TestAdd(t *testing.T) {
	for _, tc := range []struct {
		name     string
		text     string
		clusters []string // namespace/name with its number of frontends
		ignored  []string
		replaced int
		fails    string
	}{
		{name: "one cluster", text: doris, clusters: []string{"analytics/doris 3"}},
		{name: "comments and empty documents", text: "# a file\n---\n---\n" + doris + "---\n# the end\n", clusters: []string{"analytics/doris 3"}},
		{name: "a document that begins on the line of the dashes", text: "--- # the cluster\n" + doris, clusters: []string{"analytics/doris 3"}},
		{name: "lines that end as in Windows", text: strings.ReplaceAll(doris+"---\n"+strings.Replace(doris, "name: doris", "name: other", 1), "\n", "\r\n"), clusters: []string{"analytics/doris 3", "analytics/other 3"}},
		{name: "JSON", text: `{"apiVersion": "doris.selectdb.com/v1", "kind": "DorisCluster", "metadata": {"name": "doris"}, "spec": {"feSpec": {"replicas": 3}}}`, clusters: []string{"analytics/doris 3"}},
		{
			name: "another kind is named with its line", text: doris + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
			clusters: []string{"analytics/doris 3"}, ignored: []string{"f.yaml:8: Service web"},
		},
		{
			name: "the same name twice: the last counts", text: doris + "---\n" + strings.Replace(doris, "replicas: 3", "replicas: 5", 1),
			clusters: []string{"analytics/doris 5"}, replaced: 1,
		},
		{
			name: "a list", text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: doris.selectdb.com/v1\n  kind: DorisCluster\n  metadata: {name: doris}\n  spec: {feSpec: {replicas: 3}}\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n",
			clusters: []string{"analytics/doris 3"}, ignored: []string{"f.yaml:8: Pod p"},
		},
		{name: "no name", text: strings.Replace(doris, "name: doris", "labels: {}", 1), fails: "f.yaml:1: the DorisCluster has no metadata.name"},
		{name: "a generated name", text: strings.Replace(doris, "name: doris", "generateName: doris-", 1), fails: "a name that is generated cannot be planned for"},
		{name: "another version", text: strings.Replace(doris, ".com/v1", ".com/v2", 1), fails: "f.yaml:1: this version of the plugin does not know DorisCluster of doris.selectdb.com/v2"},
		{name: "no kind", text: "replicas: 3\n", fails: "f.yaml:1: no manifest"},
		{name: "no mapping", text: "hello\n", fails: "f.yaml:1: no manifest"},
		{name: "an unknown field has its line", text: "# first\n---\n" + strings.Replace(doris, "replicas", "replica", 1), fails: `f.yaml:8: unknown field "spec.feSpec.replica"`},
		{name: "two unknown fields, both are named", text: strings.Replace(doris, "replicas: 3", "replica: 3\n    images: x", 1), fails: `f.yaml:7: unknown field "spec.feSpec.images"`},
		{
			name:  "an unknown field in a list of a list",
			text:  "apiVersion: v1\nkind: List\nitems:\n- apiVersion: doris.selectdb.com/v1\n  kind: DorisCluster\n  metadata: {name: doris}\n  spec:\n    feSpec:\n      persistentVolumes:\n      - name: meta\n        mountPath: /x\n        mountpath: /y\n",
			fails: `f.yaml:12: unknown field "spec.feSpec.persistentVolumes[0].mountpath"`,
		},
		{name: "a key twice", text: doris + "    replicas: 4\n", fails: "line 7"},
		{name: "a wrong type", text: strings.Replace(doris, "replicas: 3", "replicas: three", 1), fails: `f.yaml:6: "spec.feSpec.replicas" is a string, and a whole number that fits is wanted`},
		{name: "a list for a mapping", text: "apiVersion: doris.selectdb.com/v1\nkind: DorisCluster\nmetadata: {name: doris}\nspec:\n  feSpec: []\n", fails: `f.yaml:5: "spec.feSpec" is a list, and a mapping is wanted`},
		{name: "a fraction for a number", text: strings.Replace(doris, "replicas: 3", "replicas: 1.5", 1), fails: `"spec.feSpec.replicas" is the number 1.5, and a whole number that fits is wanted`},
		{name: "no size", text: strings.Replace(doris, "replicas: 3", "limits: {memory: lots}", 1), fails: "f.yaml:1:"},
		{name: "no YAML, in the second document", text: doris + "---\na: [\n", fails: "f.yaml: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewSet()
			err := s.Add(reading(), "f.yaml", []byte(tc.text))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("error %v, want one that says %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var clusters []string
			for _, dc := range s.Clusters {
				clusters = append(clusters, fmt.Sprintf("%s/%s %d", dc.Namespace, dc.Name, *dc.Spec.FeSpec.Replicas))
			}
			if diff := cmp.Diff(tc.clusters, clusters); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.ignored, s.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
			if len(s.Replaced) != tc.replaced {
				t.Errorf("replaced: %v", s.Replaced)
			}
		})
	}
}

func TestNamespaceOfTheFlagWinsOnlyWhereItAgrees(t *testing.T) {
	text := strings.Replace(doris, "name: doris", "name: doris, namespace: other", 1)
	r := reading()
	if err := NewSet().Add(r, "f.yaml", []byte(text)); err != nil {
		t.Errorf("without the flag: %v", err)
	}
	r.Chosen = true
	if err := NewSet().Add(r, "f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), `namespace "other"`) {
		t.Errorf("with another namespace in the flag: %v", err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", "c.json", "notes.txt", "sub/d.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name      string
		of        string
		recursive bool
		want      []string
		fails     string
	}{
		{name: "a file, whatever its name", of: "notes.txt", want: []string{"notes.txt"}},
		{name: "a directory", of: ".", want: []string{"a.yml", "b.yaml", "c.json"}},
		{name: "a directory and those below", of: ".", recursive: true, want: []string{"a.yml", "b.yaml", "c.json", "sub/d.yaml"}},
		{name: "nothing there", of: "none", fails: "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Files(filepath.Join(dir, tc.of), tc.recursive)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("error %v, want one that says %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i], _ = filepath.Rel(dir, got[i])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
	empty := t.TempDir()
	if _, err := Files(empty, false); err == nil || !strings.Contains(err.Error(), "-R") {
		t.Errorf("an empty directory: %v", err)
	}
}

// FuzzAdd holds that no text makes the reader fail other than by an error, and
// that each error tells where.
func FuzzAdd(f *testing.F) {
	f.Add(doris)
	f.Add(doris + "---\n- a\n- b: [c]\n")
	f.Add("apiVersion: v1\nkind: List\nitems: [{kind: x}, 3, null]\n")
	f.Add("a: &x [*x]\n")
	f.Add("---\n--- {}\n")
	r := reading()
	f.Fuzz(func(t *testing.T, text string) {
		s := NewSet()
		if err := s.Add(r, "f.yaml", []byte(text)); err != nil && !strings.HasPrefix(err.Error(), "f.yaml:") {
			t.Errorf("the error tells no file: %v", err)
		}
		for _, dc := range s.Clusters {
			if dc.Name == "" || dc.Namespace == "" {
				t.Errorf("a cluster without a name: %+v", dc.ObjectMeta)
			}
		}
	})
}
