package doris

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/diff"
)

// mostChanges bounds how many differences of a roll are named.
const mostChanges = 5

// whatChanged says in words what is different between two records of a template. Values
// are told of images and sizes alone: others may hold what nobody else is to see.
func whatChanged(was, is accepted, from, to int) []string {
	var out []string
	before, after := tree(was.Spec), tree(is.Spec)
	for _, path := range specPaths(was.Spec, is.Spec) {
		text := strings.Join(path, ".")
		if tellable(path) {
			text += fmt.Sprintf(": %s -> %s", at(before, path), at(after, path))
		}
		out = append(out, text)
	}
	if was.Restart.Rendered != is.Restart.Rendered {
		out = append(out, "restart asked for at "+is.Restart.Rendered)
	}
	for _, name := range sortedKeys(is.Content) {
		if was.Content[name] != is.Content[name] {
			out = append(out, "ConfigMap "+name)
		}
	}
	if !reflect.DeepEqual(was.Secrets.keys(), is.Secrets.keys()) {
		out = append(out, "Secrets that Pods read")
	}
	if from != to {
		out = append(out, fmt.Sprintf("rendering %d -> %d", from, to))
	}
	if more := len(out) - mostChanges; more > 0 {
		out = append(out[:mostChanges], fmt.Sprintf("and %d more", more))
	}
	return out
}

// tellable tells whether the values of a field of the spec are told.
func tellable(path []string) bool {
	last := path[len(path)-1]
	return last == "image" || len(path) > 2 && (path[len(path)-2] == "requests" || path[len(path)-2] == "limits")
}

// specPaths are the fields in which two specs differ; lists count as one field.
func specPaths(a, b dorisv1.DorisClusterSpec) [][]string {
	return between(tree(a), tree(b), nil)
}

func between(a, b any, at []string) [][]string {
	before, is := a.(map[string]any)
	after, both := b.(map[string]any)
	if !is && !both || a != nil && !is || b != nil && !both {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return [][]string{slices.Clone(at)}
	}
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	var out [][]string
	for _, name := range sortedKeys(names) {
		out = append(out, between(before[name], after[name], append(slices.Clone(at), name))...)
	}
	return out
}

func tree(spec dorisv1.DorisClusterSpec) map[string]any {
	var out map[string]any
	if err := json.Unmarshal([]byte(encoded(spec)), &out); err != nil {
		panic(fmt.Sprintf("record: %v", err)) // it was encoded here
	}
	return out
}

func at(tree any, path []string) string {
	for _, name := range path {
		fields, _ := tree.(map[string]any)
		tree = fields[name]
	}
	if tree == nil || tree == "" {
		return "none"
	}
	return fmt.Sprint(tree)
}

func paths(fields []diff.Field) []string {
	out := make([]string, 0, len(fields))
	for _, f := range fields {
		out = append(out, f.Path)
	}
	return out
}

// authors are the field managers that own the fields, each once. A field that is gone has
// no owner any more: there it is who owns what is around it. Of several it is the one
// that wrote last.
func authors(managed []metav1.ManagedFieldsEntry, fields [][]string) []string {
	var out []string
	for _, path := range fields {
		if path[0] != "metadata" {
			path = append([]string{"spec"}, path...)
		}
		best, depth := (*metav1.ManagedFieldsEntry)(nil), 1
		for i := range managed {
			m := &managed[i]
			d := owns(m, path)
			if d > depth || d == depth && best != nil && later(m, best) {
				best, depth = m, d
			}
		}
		if best != nil && !slices.Contains(out, best.Manager) {
			out = append(out, best.Manager)
		}
	}
	slices.Sort(out)
	return out
}

// owns tells how many steps of a path a manager owns.
func owns(m *metav1.ManagedFieldsEntry, path []string) (steps int) {
	if m.FieldsV1 == nil || m.Subresource != "" || m.Manager == FieldManager {
		return 0
	}
	var fields map[string]any
	if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
		return 0
	}
	for _, name := range path {
		below, has := fields["f:"+name].(map[string]any)
		if !has {
			break
		}
		fields = below
		steps++
	}
	return steps
}

func later(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Time != nil && (b.Time == nil || a.Time.After(b.Time.Time))
}
