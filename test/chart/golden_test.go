package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v2 "helm.sh/helm/v4/pkg/chart/v2"
)

// withoutRights is the chart with a stand-in for the rights of the operator, which
// are config/rbac's and have a test of their own.
func withoutRights(t *testing.T) *v2.Chart {
	t.Helper()
	c := load(t)
	for _, f := range c.Files {
		switch f.Name {
		case "files/rbac/operator.yaml", "files/rbac/view.yaml", "files/rbac/edit.yaml":
			f.Data = []byte("# Generated\n# As in " + f.Name + "\n- apiGroups: [x]\n  resources: [x]\n  verbs: [get]\n")
		}
	}
	return c
}

// Each file of testdata/values is rendered and compared with a golden file; its
// first comment says what it is.
func TestRenderedManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files of values, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := render(t, withoutRights(t), string(values), install("fairlead", "fairlead-system"))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("golden", name+".yaml"), r.manifest())
			golden(t, filepath.Join("golden", name+".notes.txt"), strings.TrimSpace(trimSpaces(r.notes))+"\n")
		})
	}
}
