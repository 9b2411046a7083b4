// Package diff compares a wanted object with a live one the way server-side
// apply would: field by field over the fields that we own, with list entries
// matched by their keys, and nothing said about fields that belong to others.
//
// It is what makes "a converged object costs no request" possible: the answer
// "no difference" is reached without asking the API server.
package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	// Order tells that the entries of a list are all there, but an apply would
	// put them in another order (or collapse entries that occur twice). From and
	// To hold their keys then.
	Order bool

	path fieldpath.Path
	keys []string // of the entries of a list whose order differs
}

// Engine compares objects of the built-in kinds. It is safe for concurrent use.
type Engine struct {
	scheme    *runtime.Scheme
	converter managedfields.TypeConverter
	memo      memo
}

// New returns an Engine for the kinds in scheme that client-go knows.
func New(scheme *runtime.Scheme) *Engine {
	return &Engine{scheme: scheme, converter: applyconfigurations.NewTypeConverter(scheme)}
}

// Compare lists what an apply of wanted by the field manager would change in
// live: fields added or modified, fields that the manager owns but no longer
// wants, and lists whose order would change. The result is sorted by path.
// live needs the managed fields of the manager. A field that the manager owns
// together with others and no longer wants is listed too, although an apply
// only gives up the manager's share of it.
func (e *Engine) Compare(wanted, live client.Object, manager string) ([]Field, error) {
	q, known := e.memo.ask(wanted, live, manager)
	if known {
		return nil, nil
	}
	fields, err := e.compare(wanted, live, manager)
	if err == nil && len(fields) == 0 {
		e.memo.nothing(q)
	}
	return fields, err
}

func (e *Engine) compare(wanted, live client.Object, manager string) ([]Field, error) {
	c, err := e.comparison(wanted, live)
	if err != nil {
		return nil, err
	}
	merged, err := c.liveTyped.Merge(c.wantedTyped)
	if err != nil {
		return nil, fmt.Errorf("merging %s %q: %w", c.wanted.GetKind(), c.wanted.GetName(), err)
	}
	changed, removed, err := differingPaths(c, merged, live.GetManagedFields(), manager)
	if err != nil {
		return nil, fmt.Errorf("comparing %s %q: %w", c.wanted.GetKind(), c.wanted.GetName(), err)
	}
	return c.fields(merged, changed, removed), nil
}

// Between lists how one rendering differs from another: fields added, modified
// or removed, and lists in another order. Nothing is asked of managed fields.
func (e *Engine) Between(before, after client.Object) ([]Field, error) {
	c, err := e.comparison(after, before)
	if err != nil {
		return nil, err
	}
	cmp, err := c.liveTyped.Compare(c.wantedTyped)
	if err != nil {
		return nil, fmt.Errorf("comparing two renderings of %s %q: %w", c.wanted.GetKind(), c.wanted.GetName(), err)
	}
	return c.fields(c.wantedTyped, cmp.Modified.Union(cmp.Added), cmp.Removed), nil
}

// comparison holds both sides of one comparison, in the form of an apply and
// with their types.
type comparison struct {
	wanted, live           *unstructured.Unstructured
	wantedTyped, liveTyped *typed.TypedValue
}

func (e *Engine) comparison(wanted, live client.Object) (comparison, error) {
	w, err := e.Intent(wanted)
	if err != nil {
		return comparison{}, err
	}
	l, err := e.Intent(live)
	if err != nil {
		return comparison{}, err
	}
	if w.GroupVersionKind() != l.GroupVersionKind() {
		return comparison{}, fmt.Errorf("wanted %q is a %s, the live object a %s", w.GetName(), w.GroupVersionKind(), l.GroupVersionKind())
	}
	wt, err := e.converter.ObjectToTyped(w)
	if err != nil {
		return comparison{}, fmt.Errorf("typing wanted %s %q: %w", w.GetKind(), w.GetName(), err)
	}
	// A live list may hold duplicates that only an old client could write.
	lt, err := e.converter.ObjectToTyped(l, typed.AllowDuplicates)
	if err != nil {
		return comparison{}, fmt.Errorf("typing live %s %q: %w", l.GetKind(), l.GetName(), err)
	}
	return comparison{wanted: w, live: l, wantedTyped: wt, liveTyped: lt}, nil
}

func differingPaths(c comparison, merged *typed.TypedValue, managed []metav1.ManagedFieldsEntry, manager string) (changed, removed *fieldpath.Set, err error) {
	cmp, err := c.liveTyped.Compare(merged)
	if err != nil {
		return nil, nil, err
	}
	owned, err := ownedSet(managed, manager)
	if err != nil {
		return nil, nil, err
	}
	wantedSet, err := c.wantedTyped.ToFieldSet()
	if err != nil {
		return nil, nil, err
	}
	changed = cmp.Modified.Union(cmp.Added)
	unwanted := owned.Difference(wantedSet)
	if unwanted.Empty() {
		return changed, unwanted, nil
	}
	liveSet, err := c.liveTyped.ToFieldSet()
	if err != nil {
		return nil, nil, err
	}
	return changed, unwanted.Intersection(liveSet), nil
}

func (c comparison) fields(merged *typed.TypedValue, changed, removed *fieldpath.Set) []Field {
	var out []Field
	for _, p := range outermost(changed) {
		out = append(out, Field{Path: printPath(p), From: valueAt(c.live.Object, p), To: valueAt(c.wanted.Object, p), path: p})
	}
	for _, p := range outermost(removed) {
		out = append(out, Field{Path: printPath(p), From: valueAt(c.live.Object, p), path: p})
	}
	out = append(out, reordered(c, merged)...)
	if c.wanted.GetKind() == "Secret" {
		for i, f := range out {
			if name := f.path[0].FieldName; name != nil && (*name == "data" || *name == "stringData") {
				out[i] = withhold(f)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
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
	v := at(obj, p)
	if v == nil {
		return ""
	}
	b, err := json.Marshal(redacted(v, p))
	if err != nil {
		return ""
	}
	return string(b)
}
