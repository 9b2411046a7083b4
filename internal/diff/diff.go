// Package diff compares a wanted object with a live one the way server-side
// apply would: field by field over the fields that we own, with list entries
// matched by their keys, and nothing said about fields that belong to others.
//
// It is what makes "a converged object costs no request" possible: the answer
// "no difference" is reached without asking the API server.
package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Field is one differing field of an object.
type Field struct {
	// Path in print, such as `spec.ports[port=9030,protocol="TCP"].nodePort`.
	Path string
	// From and To hold the live and the wanted value as JSON; empty where the
	// field is absent on that side. Those of Secret data are "(withheld)".
	From, To string
}

// Engine compares objects of the built-in kinds. It is safe for concurrent use.
type Engine struct {
	scheme    *runtime.Scheme
	converter managedfields.TypeConverter
}

// New returns an Engine for the kinds in scheme that client-go knows.
func New(scheme *runtime.Scheme) *Engine {
	return &Engine{scheme: scheme, converter: applyconfigurations.NewTypeConverter(scheme)}
}

// Compare lists what an apply of wanted by the field manager would change in
// live: fields added or modified, and fields that the manager owns but no
// longer wants. The result is sorted by path. live needs its managed fields.
func (e *Engine) Compare(wanted, live client.Object, manager string) ([]Field, error) {
	w, err := e.Intent(wanted)
	if err != nil {
		return nil, err
	}
	l, err := e.Intent(live)
	if err != nil {
		return nil, err
	}
	wt, err := e.converter.ObjectToTyped(w)
	if err != nil {
		return nil, fmt.Errorf("typing wanted %s %q: %w", w.GetKind(), w.GetName(), err)
	}
	// A live list may hold duplicates that only an old client could write.
	lt, err := e.converter.ObjectToTyped(l, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("typing live %s %q: %w", l.GetKind(), l.GetName(), err)
	}
	changed, removed, err := differingPaths(wt, lt, live.GetManagedFields(), manager)
	if err != nil {
		return nil, fmt.Errorf("comparing %s %q: %w", w.GetKind(), w.GetName(), err)
	}
	return e.fields(w, l, changed, removed), nil
}

func differingPaths(wt, lt *typed.TypedValue, managed []metav1.ManagedFieldsEntry, manager string) (changed, removed *fieldpath.Set, err error) {
	merged, err := lt.Merge(wt)
	if err != nil {
		return nil, nil, err
	}
	cmp, err := lt.Compare(merged)
	if err != nil {
		return nil, nil, err
	}
	changed = cmp.Modified.Union(cmp.Added)
	owned, err := ownedSet(managed, manager)
	if err != nil {
		return nil, nil, err
	}
	wantedSet, err := wt.ToFieldSet()
	if err != nil {
		return nil, nil, err
	}
	liveSet, err := lt.ToFieldSet()
	if err != nil {
		return nil, nil, err
	}
	return changed, owned.Difference(wantedSet).Intersection(liveSet), nil
}

// Owned returns the live values of the fields that the manager owns: what the
// manager's last apply said, as far as nobody has taken it over since.
func (e *Engine) Owned(live client.Object, manager string) (map[string]any, error) {
	l, err := e.Intent(live)
	if err != nil {
		return nil, err
	}
	lt, err := e.converter.ObjectToTyped(l, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("typing live %s %q: %w", l.GetKind(), l.GetName(), err)
	}
	owned, err := ownedSet(live.GetManagedFields(), manager)
	if err != nil {
		return nil, err
	}
	got, ok := lt.ExtractItems(owned.Leaves(), typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	if !ok {
		return map[string]any{}, nil
	}
	return got, nil
}

func ownedSet(managed []metav1.ManagedFieldsEntry, manager string) (*fieldpath.Set, error) {
	out := fieldpath.NewSet()
	for _, m := range managed {
		if m.Manager != manager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		s := fieldpath.NewSet()
		if err := s.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("reading managed fields of %q: %w", manager, err)
		}
		out = out.Union(s)
	}
	return out, nil
}

// Intent converts a typed object to the form that is sent in an apply: the
// kind filled in, and without status, nulls and what only the server writes.
func (e *Engine) Intent(o client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(o, e.scheme)
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", o, err)
	}
	var content map[string]any
	if u, ok := o.(*unstructured.Unstructured); ok {
		content = u.DeepCopy().Object
	} else if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
		return nil, fmt.Errorf("converting %s %q: %w", gvk.Kind, o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	if meta, ok := u.Object["metadata"].(map[string]any); ok {
		for _, k := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"} {
			delete(meta, k)
		}
	}
	dropClaimStatus(u.Object)
	dropNulls(u.Object)
	return u, nil
}

// dropClaimStatus removes the status that Go's struct of a claim template
// always carries; the API server fills one in by itself.
func dropClaimStatus(obj map[string]any) {
	templates, _, _ := unstructured.NestedFieldNoCopy(obj, "spec", "volumeClaimTemplates")
	list, _ := templates.([]any)
	for _, t := range list {
		if m, ok := t.(map[string]any); ok {
			delete(m, "status")
		}
	}
}

func dropNulls(v any) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if e == nil {
				delete(x, k)
				continue
			}
			dropNulls(e)
		}
	case []any:
		for _, e := range x {
			dropNulls(e)
		}
	}
}

func (e *Engine) fields(wanted, live *unstructured.Unstructured, changed, removed *fieldpath.Set) []Field {
	secret := wanted.GetKind() == "Secret"
	var out []Field
	add := func(p fieldpath.Path, gone bool) {
		f := Field{Path: printPath(p)}
		f.From = valueAt(live.Object, p)
		if !gone {
			f.To = valueAt(wanted.Object, p)
		}
		if secret && len(p) > 0 && p[0].FieldName != nil && (*p[0].FieldName == "data" || *p[0].FieldName == "stringData") {
			f = withhold(f)
		}
		out = append(out, f)
	}
	for _, p := range outermost(changed) {
		add(p, false)
	}
	for _, p := range outermost(removed) {
		add(p, true)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

func withhold(f Field) Field {
	const withheld = "(withheld)"
	if f.From != "" {
		f.From = withheld
	}
	if f.To != "" {
		f.To = withheld
	}
	return f
}

// outermost drops every path whose ancestor is in the set too: a new list
// entry is one change, not one for each of its fields.
func outermost(s *fieldpath.Set) []fieldpath.Path {
	var out []fieldpath.Path
	s.Iterate(func(p fieldpath.Path) {
		for n := 1; n < len(p); n++ {
			if s.Has(p[:n]) {
				return
			}
		}
		out = append(out, p.Copy())
	})
	return out
}

func valueAt(obj any, p fieldpath.Path) string {
	for _, el := range p {
		obj = step(obj, el)
		if obj == nil {
			return ""
		}
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return ""
	}
	return string(b)
}
