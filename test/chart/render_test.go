package chart

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	root     = "../.."
	chartDir = root + "/charts/fairlead"
)

var update = flag.Bool("update", false, "write golden files anew")

// What Helm says of refusals besides returning them is not read here.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// release is what the chart makes of values.
type release struct {
	files   map[string]string // by template
	objects []*unstructured.Unstructured
	notes   string
}

// load reads the chart from its directory, with a small stand-in for the
// definitions: they are long, and have tests of their own.
func load(t testing.TB) *v2.Chart {
	t.Helper()
	c := loadWhole(t)
	for _, f := range c.Files {
		if strings.HasPrefix(f.Name, "files/crds/") {
			f.Data = []byte("spec: {group: x}\n")
		}
	}
	return c
}

// loadWhole reads the chart as it is.
func loadWhole(t testing.TB) *v2.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// install is a first release of this name in this namespace.
func install(name, namespace string) common.ReleaseOptions {
	return common.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
}

// render runs the engine as Helm does, without a cluster, for a new Kubernetes.
func render(t testing.TB, c *v2.Chart, values string, options common.ReleaseOptions) (*release, error) {
	t.Helper()
	return renderFor(t, 36, c, values, options)
}

// renderFor renders for a minor version of Kubernetes.
func renderFor(t testing.TB, minor int, c *v2.Chart, values string, options common.ReleaseOptions) (*release, error) {
	t.Helper()
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	if given == nil {
		given = map[string]any{}
	}
	can := common.DefaultCapabilities.Copy()
	can.KubeVersion = common.KubeVersion{Version: fmt.Sprintf("v1.%d.0", minor), Major: "1", Minor: strconv.Itoa(minor)}
	all, err := util.ToRenderValues(c, given, options, can)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	r := &release{files: map[string]string{}}
	for path, text := range files {
		path = strings.TrimPrefix(path, "fairlead/templates/")
		switch {
		case path == "NOTES.txt":
			r.notes = text
		case strings.HasSuffix(path, ".yaml"):
			r.files[path] = text
		}
	}
	for _, path := range r.paths() {
		objects, err := documents(r.files[path])
		if err != nil {
			return nil, fmt.Errorf("%s is no YAML: %w\n%s", path, err, r.files[path])
		}
		r.objects = append(r.objects, objects...)
	}
	return r, nil
}

// rendered renders values that must be taken.
func rendered(t testing.TB, values string) *release {
	t.Helper()
	r, err := render(t, load(t), values, install("fairlead", "fairlead-system"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *release) paths() []string {
	var paths []string
	for path := range r.files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// documents reads strictly: a key twice is an error.
func documents(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := yaml.UnmarshalStrict(doc, &object); err != nil {
			return nil, err
		}
		if len(object) > 0 {
			out = append(out, &unstructured.Unstructured{Object: object})
		}
	}
}

// find returns the object of a kind and name, or nil.
func (r *release) find(kind, name string) *unstructured.Unstructured {
	for _, o := range r.objects {
		if o.GetKind() == kind && (name == "" || o.GetName() == name) {
			return o
		}
	}
	return nil
}

// get reads an object of the kind into a typed one.
func get[T any](t testing.TB, r *release, kind, name string) *T {
	t.Helper()
	o := r.find(kind, name)
	if o == nil {
		t.Fatalf("no %s %s is rendered", kind, name)
	}
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, out, true); err != nil {
		t.Fatalf("%s %s: %v", kind, o.GetName(), err)
	}
	return out
}

// names lists what is rendered, as KIND NAMESPACE/NAME.
func (r *release) names() []string {
	var out []string
	for _, o := range r.objects {
		out = append(out, fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()))
	}
	slices.Sort(out)
	return out
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-golden +rendered; -update writes it anew):\n%s", path, diff)
	}
}

// manifest is all that is rendered but the definitions, which are long and have
// a test of their own.
func (r *release) manifest() string {
	var b strings.Builder
	for _, path := range r.paths() {
		if path == "crds.yaml" || strings.TrimSpace(r.files[path]) == "" {
			continue
		}
		fmt.Fprintf(&b, "# Source: %s\n%s\n", path, strings.TrimSpace(trimSpaces(r.files[path])))
	}
	return b.String()
}

// trimSpaces takes away what stands at the ends of lines.
func trimSpaces(text string) string {
	var b bytes.Buffer
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// gzipped is how many bytes are left when the text is packed.
func gzipped(t *testing.T, text []byte) int {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}
