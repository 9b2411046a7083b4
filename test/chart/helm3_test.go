package chart

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chart3 "helm.sh/helm/v3/pkg/chart"
	loader3 "helm.sh/helm/v3/pkg/chart/loader"
	util3 "helm.sh/helm/v3/pkg/chartutil"
	engine3 "helm.sh/helm/v3/pkg/engine"
	lint3 "helm.sh/helm/v3/pkg/lint"
	support3 "helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"
)

// render3 renders as Helm 3 does, for the Kubernetes that render is for.
func render3(t *testing.T, c *chart3.Chart, values string) (map[string]string, error) {
	t.Helper()
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	can := util3.DefaultCapabilities.Copy()
	can.KubeVersion = util3.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	all, err := util3.ToRenderValues(c, given, util3.ReleaseOptions{Name: "fairlead", Namespace: "fairlead-system", Revision: 1, IsInstall: true}, can)
	if err != nil {
		return nil, err
	}
	files, err := engine3.Render(c, all)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for path, text := range files {
		if name := strings.TrimPrefix(path, "fairlead/templates/"); strings.HasSuffix(name, ".yaml") {
			out[name] = text
		}
	}
	return out, nil
}

// Helm 3 renders each file of values as Helm 4 does, to the byte, checksums included.
func TestHelm3RendersTheSame(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d files of values, %v", len(paths), err)
	}
	c, err := loader3.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		values, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := render3(t, c, string(values))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want, err := render(t, loadWhole(t), string(values), install("fairlead", "fairlead-system"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.files, got); diff != "" {
			t.Errorf("%s (-Helm 4 +Helm 3):\n%s", path, diff)
		}
	}
}

// Helm 3 refuses what is nonsense or contradicts itself by the same names, if in other
// words.
func TestHelm3RefusesTheSame(t *testing.T) {
	t.Parallel()
	c, err := loader3.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	refusals := map[string]string{
		"replica: 2":                      "replica",
		"image: {digest: latest}":         "/image/digest",
		"metrics: null":                   "metrics",
		"leaderElection: {enabled: null}": "enabled",
		"defaultConfiguration: {options: {workers: many}}":               "/defaultConfiguration/options/workers",
		"dialVia: socks5://me:hunter2@proxy:1080":                        "/dialVia",
		"replicas: 2\nleaderElection: {enabled: false}":                  "replicas is 2 and leaderElection.enabled is false",
		"operatorPod: {volumeMounts: [{name: v, mountPath: /v}]}":        "operatorPod.volumeMounts has v, of which there is no volume",
		"podDisruptionBudget: {create: true, minAvailable: 50%}":         "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable",
		"dorisOperator: {image: {tag: x}}":                               "docs/migrating-helm-values.md",
		"operatorPod: {restartOnConfigChange: always}":                   "/operatorPod/restartOnConfigChange",
		"defaultConfiguration: {create: false, options: {workers: 1}}":   "defaultConfiguration.options are not used",
		"logging: {level: loud}":                                         "/logging/level",
		"operatorPod: {env: [{name: FAIRLEAD_NAMESPACES, value: a}]}":    "operatorPod.env has FAIRLEAD_NAMESPACES",
		"operatorPod: {env: [{name: A, value: a}, {name: A, value: b}]}": "operatorPod.env has A twice",
		"podSecurityContext: {runAsUser: 0}":                             "podSecurityContext.runAsUser is 0",
		"metrics: {enabled: false, serviceMonitor: {create: true}}":      "metrics.serviceMonitor.create needs",
		"operatorPod: {labels: {app.kubernetes.io/name: x}}":             "app.kubernetes.io/name",
		"watchNamespaces: [Sales_1]":                                     "/watchNamespaces/0",
		"fullnameOverride: Fair.Lead":                                    `"Fair.Lead"`,
	}
	for _, values := range slices.Sorted(maps.Keys(refusals)) {
		_, err := render3(t, c, values)
		if err == nil || !strings.Contains(err.Error(), refusals[values]) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// What `helm lint --strict` of Helm 3 says.
func TestHelm3Lint(t *testing.T) {
	t.Parallel()
	for _, m := range lint3.AllWithKubeVersion(chartDir, nil, "fairlead-system", &util3.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}).Messages {
		if m.Severity > support3.InfoSev {
			t.Error(m)
		}
	}
}
