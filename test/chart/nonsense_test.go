package chart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// nonsense is what people write by mistake, as YAML.
var nonsense = []string{"null", "'123'", "-1", "true", "[{name: ''}]", "{a: 1}"}

// broken is an error that speaks of templates and not of values.
var broken = regexp.MustCompile(`nil pointer|error calling|can't evaluate|incompatible types|wrong type|is no YAML|template:`)

// whole switches everything on, so that each value is used.
const whole = `
metrics: {serviceMonitor: {create: true}, prometheusRule: {create: true}}
networkPolicy: {create: true, restrictEgress: true}
podDisruptionBudget: {create: true}
`

// Whatever is written for a value, a group of values or an option is taken, and then
// all objects are of their type; or it is refused by its name, in words about values.
func TestNonsenseIsRefusedByName(t *testing.T) {
	t.Parallel()
	c := load(t)
	paths := valuePaths(t)
	groups := map[string]bool{}
	for _, path := range paths {
		for at := strings.LastIndex(path, "."); at >= 0; at = strings.LastIndex(path[:at], ".") {
			groups[path[:at]] = true
		}
	}
	taken, refused := 0, 0
	for _, path := range append(slices.Sorted(maps.Keys(groups)), paths...) {
		for _, value := range nonsense {
			values := with(t, path, value)
			r, err := render(t, c, values, install("fairlead", "fairlead-system"))
			if err != nil {
				refused++
				key := path[strings.LastIndex(path, ".")+1:]
				if broken.MatchString(err.Error()) || !strings.Contains(err.Error(), key) {
					t.Errorf("%s: %s is refused with\n%v", path, value, err)
				}
				continue
			}
			taken++
			for _, fault := range untyped(r) {
				t.Errorf("%s: %s is taken, and %s", path, value, fault)
			}
		}
	}
	t.Logf("%d taken, %d refused", taken, refused)
	if taken < 60 || refused < 300 {
		t.Errorf("%d are taken and %d refused: this tests nothing", taken, refused)
	}
}

// with is everything, with another value at the path.
func with(t *testing.T, path, value string) string {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(whole), &values); err != nil {
		t.Fatal(err)
	}
	keys := strings.Split(path, ".")
	at := values
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	var v any
	if err := yaml.Unmarshal([]byte(value), &v); err != nil {
		t.Fatal(err)
	}
	at[keys[len(keys)-1]] = v
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// untyped says which objects are not of their kind's type.
func untyped(r *release) []string {
	var out []string
	for _, o := range r.objects {
		typed, err := clientgoscheme.Scheme.New(o.GroupVersionKind())
		if err != nil { // a kind that others define
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true); err != nil {
			out = append(out, fmt.Sprintf("%s %s: %v", o.GetKind(), o.GetName(), err))
		}
	}
	return out
}

// Names that YAML would read as numbers, booleans or dates are names.
func TestNamesThatLookLikeOtherThings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"123", "1e3", "true", "null", "2026-11-30", "0x10", "on"} {
		for _, values := range []string{
			"fullnameOverride: '" + name + "'\n",
			"nameOverride: '" + name + "'\n",
			"operatorServiceAccount: {name: '" + name + "'}\n",
			"leaderElection: {leaseName: '" + name + "'}\n",
			"watchNamespaces: ['" + name + "', b]\n",
			"operatorPod: {priorityClassName: '" + name + "'}\n",
			"defaultConfiguration: {create: false, existingConfigMap: '" + name + "', key: '" + name + "'}\n",
			"commonLabels: {a: '" + name + "'}\noperatorPod: {labels: {b: '" + name + "'}, annotations: {c: '" + name + "'}}\n",
		} {
			r, err := render(t, load(t), values+whole, install(name, name))
			if err != nil {
				t.Errorf("release %s, %s: %v", name, values, err)
				continue
			}
			for _, fault := range untyped(r) {
				t.Errorf("release %s, %s: %s", name, values, fault)
			}
			for _, o := range r.objects {
				if ns := o.GetNamespace(); ns != "" && ns != name && ns != "b" {
					t.Errorf("release %s: %s is in namespace %s", name, o.GetKind(), ns)
				}
			}
		}
	}
}
