package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

func path(parts ...any) fieldpath.Path { return fieldpath.MakePathOrDie(parts...) }

func key(name string) *value.FieldList {
	l := value.FieldList{{Name: "name", Value: value.NewValueInterface(name)}}
	return &l
}

func TestPut(t *testing.T) {
	entry := func(name string) map[string]any { return map[string]any{"name": name} }
	for _, tc := range []struct {
		name string
		obj  any
		path fieldpath.Path
		to   any
		want any
	}{
		{"field set in an empty object, maps made on the way", map[string]any{}, path("a", "b"), "v", map[string]any{"a": map[string]any{"b": "v"}}},
		{"field replaced, others stay", map[string]any{"a": "1", "b": "2"}, path("a"), "v", map[string]any{"a": "v", "b": "2"}},
		{"last field removed takes its map along", map[string]any{"a": map[string]any{"b": "v"}, "c": "1"}, path("a", "b"), nil, map[string]any{"c": "1"}},
		{"absent field removed, nothing happens", map[string]any{"a": map[string]any{}}, path("a", "b"), nil, map[string]any{"a": map[string]any{}}},
		{"field below an absent map removed, nothing happens", map[string]any{}, path("a", "b"), nil, map[string]any{}},
		{"entry added at the end", map[string]any{"l": []any{entry("x")}}, path("l", key("y")), entry("y"), map[string]any{"l": []any{entry("x"), entry("y")}}},
		{"entry made on the way gets its keys", map[string]any{}, path("l", key("y"), "v"), "1", map[string]any{"l": []any{map[string]any{"name": "y", "v": "1"}}}},
		{"entry removed, others stay", map[string]any{"l": []any{entry("x"), entry("y")}}, path("l", key("x")), nil, map[string]any{"l": []any{entry("y")}}},
		{"last entry removed takes the list along", map[string]any{"l": []any{entry("x")}, "a": "1"}, path("l", key("x")), nil, map[string]any{"a": "1"}},
		{"value added to a set", map[string]any{"s": []any{"x"}}, path("s", fieldpath.PathElement{Value: new(value.NewValueInterface("y"))}), "y", map[string]any{"s": []any{"x", "y"}}},
		{"value removed from a set", map[string]any{"s": []any{"x", "y"}}, path("s", fieldpath.PathElement{Value: new(value.NewValueInterface("x"))}), nil, map[string]any{"s": []any{"y"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, put(tc.obj, tc.path, tc.to)); d != "" {
				t.Errorf("put (-want +got):\n%s", d)
			}
		})
	}
}

func TestPutThenAt(t *testing.T) {
	element := rapid.Custom(func(t *rapid.T) fieldpath.PathElement {
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		if rapid.Bool().Draw(t, "is a list entry") {
			return fieldpath.PathElement{Key: key(name)}
		}
		return fieldpath.PathElement{FieldName: &name}
	})
	rapid.Check(t, func(t *rapid.T) {
		var obj any = map[string]any{}
		root := "root"
		for range rapid.IntRange(1, 8).Draw(t, "writes") {
			// Lists and maps never stand in each other's place in a typed object.
			p := fieldpath.Path{{FieldName: &root}}
			for depth, el := range rapid.SliceOfN(element, 1, 4).Draw(t, "path") {
				if wantsList := depth%2 == 0; wantsList != (el.Key != nil) {
					name := "f"
					el = fieldpath.PathElement{FieldName: &name}
					if wantsList {
						el = fieldpath.PathElement{Key: key("k")}
					}
				}
				p = append(p, el)
			}
			if p[len(p)-1].Key != nil {
				p = append(p, fieldpath.PathElement{FieldName: new("leaf")})
			}
			if _, taken := at(obj, p).(map[string]any); taken {
				continue
			}
			if _, taken := at(obj, p).([]any); taken {
				continue
			}
			obj = put(obj, p, "v")
			if got := at(obj, p); got != "v" {
				t.Fatalf("%s = %v after put, in %v", printPath(p), got, obj)
			}
			if rapid.Bool().Draw(t, "take it away again") {
				if obj = put(obj, p, nil); obj == nil {
					obj = map[string]any{}
				}
				if got := at(obj, p); got != nil {
					t.Fatalf("%s = %v after it was removed", printPath(p), got)
				}
			}
		}
	})
}

func FuzzOwnedSet(f *testing.F) {
	f.Add(`{"f:spec":{"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}`)
	f.Add(`{"f:metadata":{"f:finalizers":{"v:\"x\"":{}}}}`)
	f.Add(`{"i:0":{}}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, raw string) {
		managed := []metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(raw),
		}}
		s, err := ownedSet(managed, "m")
		if err != nil {
			return
		}
		s.Iterate(func(p fieldpath.Path) { // whatever it holds can be printed and looked for
			_ = printPath(p)
			_ = at(map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(1)}}}}, p)
		})
	})
}
