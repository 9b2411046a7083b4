package stories

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// states reads the state of namespaces.
type states struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface

	once  sync.Once
	kinds []schema.GroupVersionResource
	err   error
}

func newStates(cfg *rest.Config) (*states, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &states{client: c, discovery: d}, nil
}

// passing are the resources that are no part of a state: they come and go.
var passing = []string{"events", "leases", "endpoints", "endpointslices"}

// resources lists all that a namespace can hold, so that nothing can be left
// behind in a kind that nobody thought of.
func (s *states) resources() ([]schema.GroupVersionResource, error) {
	s.once.Do(func() {
		lists, err := s.discovery.ServerPreferredNamespacedResources()
		if err != nil {
			s.err = err
			return
		}
		for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				s.err = err
				return
			}
			for _, r := range list.APIResources {
				if !slices.Contains(passing, r.Name) {
					s.kinds = append(s.kinds, gv.WithResource(r.Name))
				}
			}
		}
	})
	return s.kinds, s.err
}

// of returns the state of a namespace as text by object, without all that
// differs from run to run.
func (s *states) of(ctx context.Context, namespace string) (map[string]string, error) {
	kinds, err := s.resources()
	if err != nil {
		return nil, err
	}
	var objects []unstructured.Unstructured
	for _, k := range kinds {
		list, err := s.client.Resource(k).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", k.Resource, err)
		}
		objects = append(objects, list.Items...)
	}
	objects = slices.DeleteFunc(objects, heardLater)
	return normalised(namespace, objects)
}

// heardLater tells whether an object says what nodes told of themselves when they were last
// asked, which is once a minute: how far that is when a tale ends is chance.
func heardLater(o unstructured.Unstructured) bool {
	return o.GetKind() == "ConfigMap" && o.GetName() == doris.ObservedName("doris")
}

// drawn are the fields that the cluster draws or counts by itself.
var drawn = []string{
	"uid", "resourceVersion", "creationTimestamp", "generation", "observedGeneration", "selfLink",
	"nodeName", "hostIP", "hostIPs", "podIP", "podIPs", "clusterIPs", "nodePort", "healthCheckNodePort",
	"containerID", "volumeName", "startTime",
	"volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
}

type pattern struct {
	re *regexp.Regexp
	by string
}

var patterns = []pattern{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`), "IP"},
	{regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`), "kube-api-access-RANDOM"},
	{regexp.MustCompile(`\bsim-\d+\b`), "NODE"},
	{regexp.MustCompile(`("retired-\d+": )"[0-9a-f]{12}"`), `$1"TOKEN"`},
	{regexp.MustCompile(`("masterInstance": )"[a-z0-9-]+"`), `$1"ELECTED"`}, // by the frontends
	{regexp.MustCompile(`(svc\.cluster\.local:)\d+`), "${1}PORT"},           // of processes that listen where there is room
	{regexp.MustCompile(`\bzone-\d+\b`), "ZONE"},
	{regexp.MustCompile(`\b(ErrImagePull|ImagePullBackOff)\b`), "PULL"}, // what a node said when it was looked at
	{regexp.MustCompile(`containerd://[0-9a-f]{64}`), "CONTAINER"},
	// What is recorded of Secrets depends on a key that each cluster draws.
	{regexp.MustCompile(`hmac:[0-9a-f]{16}`), "HMAC"},
	{regexp.MustCompile(`UID \d+`), "UID VERSION"},
}

// keyed are patterns of what follows from what is recorded of Secrets, and not
// otherwise.
var keyed = []pattern{
	{regexp.MustCompile(`("fairlead.dev/approve": )"[0-9a-f]+"`), `$1"DIGEST"`},
	{regexp.MustCompile(`(\\"template\\":\\")[0-9a-f]{10}`), "${1}STAMP"}, // of a template that is no more
}

func normalised(namespace string, objects []unstructured.Unstructured) (map[string]string, error) {
	pairs, also := revisionNames(objects), patterns
	if hasDigests(objects) {
		pairs, also = append(pairs, stampNames(objects)...), slices.Concat(patterns, keyed)
	}
	names := strings.NewReplacer(pairs...)
	out := map[string]string{}
	for _, o := range objects {
		switch o.GetKind() {
		case "Secret":
			withhold(o.Object)
		case "StatefulSet": // not told that a ControllerRevision is gone, its controller sees it when it looks next
			unstructured.RemoveNestedField(o.Object, "status", "currentRevision")
			unstructured.RemoveNestedField(o.Object, "status", "currentReplicas")
		}
		text, err := json.MarshalIndent(strip(o.Object), "", " ")
		if err != nil {
			return nil, err
		}
		body := names.Replace(strings.ReplaceAll(string(text), namespace, "NAMESPACE"))
		for _, p := range also {
			body = p.re.ReplaceAllString(body, p.by)
		}
		key := names.Replace(o.GetKind() + "/" + o.GetName())
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("two objects are %s", key)
		}
		out[key] = body
	}
	return out, nil
}

// revisionNames replaces the hashes of ControllerRevisions by their numbers: a
// hash may depend on the name of the namespace.
func revisionNames(objects []unstructured.Unstructured) []string {
	var pairs []string
	for _, o := range objects {
		if o.GetKind() != "ControllerRevision" {
			continue
		}
		number, _, _ := unstructured.NestedInt64(o.Object, "revision")
		name := o.GetName()
		hash := name[strings.LastIndex(name, "-")+1:]
		pairs = append(pairs, hash, fmt.Sprintf("REVISION%d", number))
	}
	return pairs
}

// hasDigests tells whether anything is recorded of Secrets.
func hasDigests(objects []unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(o unstructured.Unstructured) bool {
		return strings.Contains(o.GetAnnotations()[meta.AnnotationAccepted], "hmac:")
	})
}

// stampNames replaces the stamps of templates by the names of their revisions: digests
// of Secrets are in them.
func stampNames(objects []unstructured.Unstructured) []string {
	var pairs []string
	for _, o := range objects {
		stamp, has, _ := unstructured.NestedString(o.Object, "data", "spec", "template", "metadata", "annotations", meta.AnnotationTemplate)
		if number, _, _ := unstructured.NestedInt64(o.Object, "revision"); has && o.GetKind() == "ControllerRevision" {
			pairs = append(pairs, stamp, fmt.Sprintf("STAMP%d", number))
		}
	}
	return pairs
}

// withhold leaves of a Secret's data only how long it is: it may be drawn.
func withhold(o map[string]any) {
	data, _, _ := unstructured.NestedMap(o, "data")
	for k, v := range data {
		data[k] = fmt.Sprintf("%d characters", len(fmt.Sprint(v)))
	}
	if data != nil {
		o["data"] = data
	}
}

func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			switch {
			case slices.Contains(drawn, k):
			case k == "clusterIP" && inner != "None":
			case k == "managedFields":
				out[k] = ownFields(inner)
			default:
				out[k] = strip(inner)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			out = append(out, strip(inner))
		}
		return out
	}
	return v
}

// ownFields tells what the operator owns, in an order that does not depend on
// when it was written. What others own is their own affair, and depends on time.
func ownFields(v any) []string {
	list, _ := v.([]any)
	out := []string{}
	for _, entry := range list {
		e, _ := entry.(map[string]any)
		if name, _ := e["manager"].(string); !strings.HasPrefix(name, "fairlead") {
			continue
		}
		delete(e, "time")
		text, err := json.Marshal(e)
		if err != nil {
			panic(err) // it came as JSON
		}
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}

// compare lists what differs between two states.
func compare(want, got map[string]string) []string {
	keys := map[string]bool{}
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		w, wanted := want[k]
		g, there := got[k]
		switch {
		case !there:
			out = append(out, k+" is missing")
		case !wanted:
			out = append(out, k+" is there and should not be")
		case w != g:
			out = append(out, k+" differs: "+differingLines(w, g))
		}
	}
	return out
}

// differingLines shows the lines that only one of two texts has.
func differingLines(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for _, l := range w {
		if !slices.Contains(g, l) {
			out = append(out, "-"+strings.TrimSpace(l))
		}
	}
	for _, l := range g {
		if !slices.Contains(w, l) {
			out = append(out, "+"+strings.TrimSpace(l))
		}
	}
	text := strings.Join(out, " ")
	if len(text) > 2000 {
		text = text[:2000] + "…"
	}
	if text == "" {
		return "the order of its lines"
	}
	return text
}

func TestStatesAreComparedByWhatMatters(t *testing.T) {
	object := func(kind, name string, rest map[string]any) unstructured.Unstructured {
		o := map[string]any{"kind": kind, "metadata": map[string]any{"name": name, "uid": name + "-uid", "resourceVersion": "7"}}
		maps.Copy(o, rest)
		return unstructured.Unstructured{Object: o}
	}
	base := func() []unstructured.Unstructured {
		return []unstructured.Unstructured{
			object("Service", "a", map[string]any{"spec": map[string]any{"clusterIP": "10.0.0.1", "type": "ClusterIP"}}),
			object("Secret", "s", map[string]any{"data": map[string]any{"password": "AAAA"}}),
			object("ControllerRevision", "doris-fe-abc", map[string]any{"revision": int64(1)}),
			object("Pod", "p", map[string]any{"status": map[string]any{"at": "2026-01-01T00:00:00Z", "of": "doris-fe-abc", "in": "ns-1"}}),
		}
	}
	tests := map[string]struct {
		change func([]unstructured.Unstructured) []unstructured.Unstructured
		want   string
	}{
		"the same": {func(o []unstructured.Unstructured) []unstructured.Unstructured { return o }, ""},
		"another address, version, password of that length, time and hash": {func(o []unstructured.Unstructured) []unstructured.Unstructured {
			o[0] = object("Service", "a", map[string]any{"spec": map[string]any{"clusterIP": "10.0.0.2", "type": "ClusterIP"}})
			o[0].SetResourceVersion("8")
			o[1] = object("Secret", "s", map[string]any{"data": map[string]any{"password": "BBBB"}})
			o[2] = object("ControllerRevision", "doris-fe-def", map[string]any{"revision": int64(1)})
			o[3] = object("Pod", "p", map[string]any{"status": map[string]any{"at": "2026-01-01T00:00:01Z", "of": "doris-fe-def", "in": "ns-1"}})
			return o
		}, ""},
		"another type": {func(o []unstructured.Unstructured) []unstructured.Unstructured {
			o[0] = object("Service", "a", map[string]any{"spec": map[string]any{"clusterIP": "10.0.0.1", "type": "NodePort"}})
			return o
		}, `Service/a differs: -"type": "ClusterIP" +"type": "NodePort"`},
		"headless": {func(o []unstructured.Unstructured) []unstructured.Unstructured {
			o[0] = object("Service", "a", map[string]any{"spec": map[string]any{"clusterIP": "None", "type": "ClusterIP"}})
			return o
		}, `Service/a differs: +"clusterIP": "None",`},
		"one missing": {func(o []unstructured.Unstructured) []unstructured.Unstructured { return o[1:] }, "Service/a is missing"},
		"an orphan": {func(o []unstructured.Unstructured) []unstructured.Unstructured {
			return append(o, object("ConfigMap", "b", nil))
		}, "ConfigMap/b is there and should not be"},
		"another owner of a field": {func(o []unstructured.Unstructured) []unstructured.Unstructured {
			o[0].Object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "fairlead-x", "time": "x"}}
			return o
		}, "managedFields"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want, err := normalised("ns-1", base())
			if err != nil {
				t.Fatal(err)
			}
			got, err := normalised("ns-1", tc.change(base()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := strings.Join(compare(want, got), "; "); (diff == "") != (tc.want == "") || !strings.Contains(diff, tc.want) {
				t.Errorf("differences are %q, want %q", diff, tc.want)
			}
		})
	}
}

func TestDigestsOfSecretsAreNoDifference(t *testing.T) {
	digest := func(key, version, stamp, image string) map[string]string {
		marked := map[string]any{meta.AnnotationTemplate: stamp}
		template := map[string]any{"metadata": map[string]any{"annotations": marked}, "image": image}
		objects := []unstructured.Unstructured{
			{Object: map[string]any{"kind": "StatefulSet", "spec": map[string]any{"template": template}, "metadata": map[string]any{
				"name": "doris-be", "annotations": map[string]any{
					meta.AnnotationAccepted: `{"version":"1b4e28ba-2fa1-11d2-883f-0016d3cca427 ` + version + `","tls.key":"hmac:` + key + `"}`,
				},
			}}},
			{Object: map[string]any{"kind": "ControllerRevision", "revision": int64(2), "metadata": map[string]any{"name": "doris-be-" + stamp[:5]}, "data": map[string]any{"spec": map[string]any{"template": template}}}},
			{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "doris-be-0", "annotations": marked}}},
			{Object: map[string]any{"kind": "DorisCluster", "metadata": map[string]any{"name": "doris", "annotations": map[string]any{meta.AnnotationApprove: stamp}}}},
		}
		out, err := normalised("ns-1", objects)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := digest("00000000000000aa", "7", "aaaaaaaaaa", "be-1")
	if diff := compare(first, digest("00000000000000bb", "8", "bbbbbbbbbb", "be-1")); len(diff) > 0 {
		t.Errorf("differences are %q", diff)
	}
	if diff := compare(first, digest("00000000000000bb", "8", "bbbbbbbbbb", "be-2")); len(diff) != 2 {
		t.Errorf("of another image the differences are %q", diff)
	}
}
