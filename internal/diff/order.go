package diff

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// reordered lists the lists whose live entries an apply would put in another
// order. It matters: environment variables refer to earlier ones, and a Pod
// template that differs by order alone is another template.
func reordered(c comparison, merged *typed.TypedValue) []Field {
	w := orderWalk{schema: merged.Schema()}
	after, _ := merged.AsValue().Unstructured().(map[string]any)
	w.visit(merged.TypeRef(), nil, c.live.Object, after)
	return w.found
}

// orderWalk walks two versions of a value side by side.
type orderWalk struct {
	schema *schema.Schema
	found  []Field
}

func (w *orderWalk) visit(ref schema.TypeRef, p fieldpath.Path, before, after any) {
	if before == nil || after == nil {
		return
	}
	atom, ok := w.schema.Resolve(ref)
	if !ok {
		return
	}
	switch {
	case atom.Map != nil && atom.Map.ElementRelationship != schema.Atomic:
		w.visitMap(atom.Map, p, before, after)
	case atom.List != nil && atom.List.ElementRelationship == schema.Associative:
		w.visitList(atom.List, p, before, after)
	}
}

func (w *orderWalk) visitMap(t *schema.Map, p fieldpath.Path, before, after any) {
	b, _ := before.(map[string]any)
	a, _ := after.(map[string]any)
	names := make([]string, 0, len(b))
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ref := t.ElementType
		if f, ok := t.FindField(name); ok {
			ref = f.Type
		}
		w.visit(ref, append(p, fieldpath.PathElement{FieldName: &name}), b[name], a[name])
	}
}

func (w *orderWalk) visitList(t *schema.List, p fieldpath.Path, before, after any) {
	b, _ := before.([]any)
	a, _ := after.([]any)
	was := w.elements(t, b)
	var is []fieldpath.PathElement
	for _, el := range w.elements(t, a) {
		if contains(was, el) {
			is = append(is, el)
		}
	}
	if !slices.EqualFunc(was, is, fieldpath.PathElement.Equals) {
		w.found = append(w.found, Field{Path: printPath(p), From: printElements(was), To: printElements(is), Order: true, path: p.Copy(), keys: t.Keys})
	}
	for _, el := range was {
		w.visit(t.ElementType, append(p, el), step(b, el), step(a, el))
	}
}

// elements are the path elements of the entries of an associative list.
func (w *orderWalk) elements(t *schema.List, list []any) []fieldpath.PathElement {
	out := make([]fieldpath.PathElement, 0, len(list))
	for _, e := range list {
		if len(t.Keys) == 0 {
			v := value.NewValueInterface(e)
			out = append(out, fieldpath.PathElement{Value: &v})
			continue
		}
		m, _ := e.(map[string]any)
		keys := make(value.FieldList, 0, len(t.Keys))
		for _, k := range t.Keys {
			if v := keyValue(m, k); v != nil {
				keys = append(keys, value.Field{Name: k, Value: value.NewValueInterface(v)})
			}
		}
		keys.Sort()
		out = append(out, fieldpath.PathElement{Key: &keys})
	}
	return out
}

func contains(list []fieldpath.PathElement, el fieldpath.PathElement) bool {
	return slices.ContainsFunc(list, el.Equals)
}

// alignOrder puts those entries of a wanted list that are live into the order
// in which they are live. Wanted entries that are not live keep their places.
// One that is live more than once is left out: naming it would make it one.
func alignOrder(wanted map[string]any, live any, f Field) {
	want, _ := at(wanted, f.path).([]any)
	have, _ := at(live, f.path).([]any)
	rank := func(e any) int {
		return slices.IndexFunc(have, func(h any) bool { return f.sameEntry(h, e) })
	}
	want = slices.DeleteFunc(want, func(e any) bool { return f.occurs(have, e) > 1 })
	var places []int
	var shared []any
	for i, e := range want {
		if rank(e) >= 0 {
			places, shared = append(places, i), append(shared, e)
		}
	}
	slices.SortStableFunc(shared, func(a, b any) int { return rank(a) - rank(b) })
	for i, place := range places {
		want[place] = shared[i]
	}
	if len(want) == 0 {
		put(wanted, f.path, nil)
		return
	}
	put(wanted, f.path, want)
}

func (f Field) occurs(list []any, e any) int {
	n := 0
	for _, have := range list {
		if f.sameEntry(have, e) {
			n++
		}
	}
	return n
}

// sameEntry tells whether two entries of a list that changed its order are the
// same one.
func (f Field) sameEntry(a, b any) bool {
	if len(f.keys) == 0 {
		return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b))
	}
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	for _, k := range f.keys {
		if !value.Equals(value.NewValueInterface(keyValue(x, k)), value.NewValueInterface(keyValue(y, k))) {
			return false
		}
	}
	return true
}
