package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/internal/config"
)

// What `helm lint --strict` says: nothing that is more than information.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"testdata/values/default.yaml", "testdata/values/everything.yaml", "testdata/values/bare.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var values map[string]any
		if err := yaml.Unmarshal(text, &values); err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.RunAll(chartDir, values, "fairlead-system").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", filepath.Base(file), m)
			}
		}
	}
}

// The definitions are those of config/crd, and stay when the release goes.
func TestDefinitionsAreThoseOfTheAPI(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		values := "crds: {keep: " + map[bool]string{true: "true", false: "false"}[keep] + "}"
		r, err := render(t, loadWhole(t), values, install("fairlead", "fairlead-system"))
		if err != nil {
			t.Fatal(err)
		}
		paths, err := filepath.Glob(root + "/config/crd/*.yaml")
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := documents(string(text))
			if err != nil {
				t.Fatal(err)
			}
			got := r.find("CustomResourceDefinition", want[0].GetName())
			if got == nil {
				t.Fatalf("%s is not rendered", want[0].GetName())
			}
			if diff := cmp.Diff(want[0].Object["spec"], got.Object["spec"]); diff != "" {
				t.Errorf("%s: %s", got.GetName(), diff)
			}
			if _, kept := got.GetAnnotations()["helm.sh/resource-policy"]; kept != keep {
				t.Errorf("crds.keep: %t, annotations are %v", keep, got.GetAnnotations())
			}
		}
	}
}

// The alerts are those of config/monitoring, all of them and as they are there, but
// for those that are left out by name.
func TestAlertsAreThoseOfTheRuleFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/config/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got := rendered(t, alerts("")).find("PrometheusRule", "fairlead")
	if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
		t.Errorf("-config/monitoring +chart:\n%s", diff)
	}
	whole := strings.Count(string(text), "- alert: ")
	left := rendered(t, alerts("disabled: [FairleadDown, FairleadStalled]")).files["prometheusrule.yaml"]
	if n := strings.Count(left, "- alert: "); n != whole-2 || strings.Contains(left, "FairleadDown") {
		t.Errorf("%d of %d alerts are left:\n%s", n, whole, left)
	}
}

// Helm keeps chart and manifest in a Secret, which holds a megabyte at most.
func TestReleaseFitsIntoASecret(t *testing.T) {
	t.Parallel()
	c := loadWhole(t)
	r, err := render(t, c, "{}", install("fairlead", "fairlead-system"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"chart": c, "manifest": r.manifest() + r.files["crds.yaml"]})
	if err != nil {
		t.Fatal(err)
	}
	packed := gzipped(t, text)
	t.Logf("%d bytes, packed %d", len(text), packed)
	if packed*4/3 > 1<<19 {
		t.Errorf("a release takes about %d bytes; half a megabyte is the limit here", packed*4/3)
	}
}

// What the chart writes into the file, the operator reads.
func TestRenderedConfigurationIsTaken(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		values, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o := rendered(t, string(values)).find("ConfigMap", "")
		if o == nil {
			continue
		}
		data := o.Object["data"].(map[string]any)
		if _, err := config.Parse(file, []byte(data["config.yaml"].(string)), config.Table([]string{"doriscluster"})); err != nil {
			t.Error(err)
		}
		read++
	}
	if read < 4 {
		t.Errorf("only %d files of values render a configuration", read)
	}
}

// The flags that the chart passes are flags of the operator, and no option that
// the chart sets by a flag may be an option of its file.
func TestFlagsOfTheChartAreOptions(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"config": true}
	for _, o := range config.Table(nil) {
		known[o.Flag] = true
	}
	args := operatorContainer(t, rendered(t, "{}")).Args
	for _, arg := range args[1:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !known[name] {
			t.Errorf("%s is no flag of the operator", arg)
		}
	}
	for _, o := range config.Table(nil) {
		values := map[string]any{}
		byFlag := strings.Contains(strings.Join(args, " ")+" ", "--"+o.Flag+"=")
		switch o.Key() {
		case "workers":
			values[o.Key()] = 3
		case "leaderElect":
			values[o.Key()] = true
		case "systems", "namespaces":
			values[o.Key()] = []string{"doriscluster"}
		case "logFormat":
			values[o.Key()] = "text"
		case "logLevel":
			values[o.Key()] = "warn"
		case "rollPause", "databaseInterval":
			values[o.Key()] = "2m"
		case "dialVia":
			values[o.Key()] = "socks5://p:1"
		default:
			values[o.Key()] = "x:1"
			if strings.HasPrefix(o.Key(), "leader") {
				values[o.Key()] = "x"
			}
		}
		text, err := yaml.Marshal(map[string]any{"defaultConfiguration": map[string]any{"options": values}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = render(t, load(t), string(text), install("fairlead", "fairlead-system"))
		switch {
		case byFlag && (err == nil || !strings.Contains(err.Error(), "defaultConfiguration.options."+o.Key()+": other objects of the chart depend on it")):
			t.Errorf("%s is set by a flag; in the file it is answered with %v", o.Key(), err)
		case !byFlag && err != nil:
			t.Errorf("%s is an option of the file, and refused: %v", o.Key(), err)
		}
	}
}

// The policy that protects from deletion is made where the API server knows its kind,
// and where the installer may make what lies outside of namespaces.
func TestDeletionProtectionWhereItCanBe(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, values string
		minor        int
		want         int
	}{
		{"all namespaces", "{}", 30, 2},
		{"an older Kubernetes", "{}", 29, 0},
		{"some namespaces", "watchNamespaces: [a]", 36, 2},
		{"an installer of namespaces", "watchNamespaces: [a]\nrbac: {clusterScoped: false}", 36, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, err := renderFor(t, tc.minor, load(t), tc.values, install("fairlead", "fairlead-system"))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, o := range r.objects {
				if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
					n++
				}
			}
			if n != tc.want {
				t.Errorf("%d objects of the policy, want %d", n, tc.want)
			}
		})
	}
}
