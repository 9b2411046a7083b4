package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const checksum = "checksum/config"

func podAnnotations(t *testing.T, values string) map[string]string {
	t.Helper()
	return get[appsv1.Deployment](t, rendered(t, values), "Deployment", "").Spec.Template.Annotations
}

func podTemplate(t *testing.T, values string) string {
	t.Helper()
	text, err := yaml.Marshal(get[appsv1.Deployment](t, rendered(t, values), "Deployment", "").Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Toggle off: the configuration changes and the Pod does not.
func TestToggleOffAChangedConfigurationLeavesThePodAlone(t *testing.T) {
	t.Parallel()
	before, after := "{}", "workers: 4\nlogging: {level: debug}"
	if diff := cmp.Diff(podTemplate(t, before), podTemplate(t, after)); diff != "" {
		t.Errorf("the Pod template changes:\n%s", diff)
	}
	if _, has := podAnnotations(t, after)[checksum]; has {
		t.Error("there is a checksum")
	}
	config := func(values string) string {
		return get[corev1.ConfigMap](t, rendered(t, values), "ConfigMap", "").Data["config.yaml"]
	}
	if config(before) == config(after) {
		t.Error("the ConfigMap does not change")
	}
}

// Default values and the toggle written out render the same, to the byte.
func TestToggleOffIsTheDefault(t *testing.T) {
	t.Parallel()
	a := rendered(t, "{}").manifest()
	b := rendered(t, "operatorPod: {restartOnConfigChange: false}\noperatorDeployment: {annotations: {}}").manifest()
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

// Toggle on: the checksum is that of the whole rendered document.
func TestToggleOnHashesTheWholeConfigMap(t *testing.T) {
	t.Parallel()
	const on = "operatorPod: {restartOnConfigChange: true}\n"
	r := rendered(t, on)
	got := get[appsv1.Deployment](t, r, "Deployment", "").Spec.Template.Annotations[checksum]
	sum := sha256.Sum256([]byte(r.files["configmap.yaml"]))
	if want := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("checksum is %q, that of the document is %q", got, want)
	}
	if changed := podAnnotations(t, on+"workers: 4")[checksum]; changed == got {
		t.Error("the configuration changes and the checksum does not")
	}
	if again := podAnnotations(t, on)[checksum]; again != got {
		t.Error("the same values have another checksum")
	}
	if other := podAnnotations(t, on+"image: {tag: v2}")[checksum]; other != got {
		t.Error("another image changes the checksum of the configuration")
	}
}

// A new version of the chart changes the labels of the ConfigMap: true counts
// them, "data" does not.
func TestChartVersionCountsForTrueAndNotForData(t *testing.T) {
	t.Parallel()
	for mode, same := range map[string]bool{"true": false, `"data"`: true} {
		values := "operatorPod: {restartOnConfigChange: " + mode + "}"
		var sums []string
		for _, version := range []string{"1.0.0", "1.0.1"} {
			c := load(t)
			c.Metadata.Version = version
			r, err := render(t, c, values, install("fairlead", "fairlead-system"))
			if err != nil {
				t.Fatal(err)
			}
			sum := get[appsv1.Deployment](t, r, "Deployment", "").Spec.Template.Annotations[checksum]
			if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(sum) {
				t.Fatalf("%s: checksum is %q", mode, sum)
			}
			sums = append(sums, sum)
		}
		if (sums[0] == sums[1]) != same {
			t.Errorf("restartOnConfigChange: %s: checksums of two chart versions are %v", mode, sums)
		}
	}
}

// "data" follows the data.
func TestDataHashesTheData(t *testing.T) {
	t.Parallel()
	const on = "operatorPod: {restartOnConfigChange: data}\n"
	if podAnnotations(t, on)[checksum] == podAnnotations(t, on+"logging: {level: warn}")[checksum] {
		t.Error("the data changes and the checksum does not")
	}
	if podAnnotations(t, on)[checksum] != podAnnotations(t, on+"commonLabels: {a: b}")[checksum] {
		t.Error("a label changes the checksum of the data")
	}
}

// What the chart does not render it does not hash.
func TestToggleOnWithoutTheChartsConfigMapHasNoChecksum(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"true", `"data"`} {
		annotations := podAnnotations(t, "operatorPod: {restartOnConfigChange: "+mode+"}\ndefaultConfiguration: {create: false, existingConfigMap: mine}")
		if sum, has := annotations[checksum]; has {
			t.Errorf("restartOnConfigChange: %s: there is a checksum %q", mode, sum)
		}
	}
}

// Annotations of the Deployment are of the Deployment, those of the Pod of the
// Pod; labels of the Pod are of both.
func TestWhereAnnotationsAndLabelsGo(t *testing.T) {
	t.Parallel()
	d := get[appsv1.Deployment](t, rendered(t, "operatorDeployment: {annotations: {of: deployment}}\noperatorPod: {annotations: {for: pod}, labels: {both: yes-both}}"), "Deployment", "")
	if diff := cmp.Diff(map[string]string{"of": "deployment"}, d.Annotations); diff != "" {
		t.Errorf("Deployment: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"for": "pod", "kubectl.kubernetes.io/default-container": "operator"}, d.Spec.Template.Annotations); diff != "" {
		t.Errorf("Pod: %s", diff)
	}
	if d.Labels["both"] != "yes-both" || d.Spec.Template.Labels["both"] != "yes-both" {
		t.Errorf("labels are %v and %v", d.Labels, d.Spec.Template.Labels)
	}
	plain := get[appsv1.Deployment](t, rendered(t, "{}"), "Deployment", "")
	if plain.Annotations != nil || strings.Contains(rendered(t, "{}").files["deployment.yaml"][:400], "annotations:") {
		t.Errorf("an empty value makes annotations: %v", plain.Annotations)
	}
}

// Leader election, namespaces and ports are no matter of the file: a change of
// them replaces the Pod at once, whatever the toggle says, so it cannot be that
// the chart has changed and the operator has not.
func TestWhatOtherObjectsDependOnReplacesThePod(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"leader election": "leaderElection: {enabled: false}\nstrategy: {type: Recreate}",
		"lease":           "leaderElection: {leaseName: other}",
		"namespaces":      "watchNamespaces: [a]",
		"metrics":         "metrics: {port: 9090}",
		"health":          "operatorHealth: {port: 9091}",
	} {
		if podTemplate(t, values) == podTemplate(t, "{}") {
			t.Errorf("%s: the Pod template does not change", name)
		}
	}
}

// As a part of another chart, it renders the same checksum.
func TestChecksumInASubChart(t *testing.T) {
	t.Parallel()
	parent := load(t)
	child := load(t)
	parent.Metadata.Name, parent.Templates, parent.Schema = "umbrella", nil, nil
	parent.Values = map[string]any{"fairlead": map[string]any{"operatorPod": map[string]any{"restartOnConfigChange": true}}}
	parent.AddDependency(child)
	r, err := render(t, parent, "{}", install("fairlead", "fairlead-system"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for path, content := range r.files {
		if strings.HasSuffix(path, "/deployment.yaml") {
			text = content
		}
	}
	want := podAnnotations(t, "operatorPod: {restartOnConfigChange: true}")[checksum]
	if !strings.Contains(text, checksum+": "+want) {
		t.Errorf("want checksum %s in:\n%s", want, text)
	}
}
