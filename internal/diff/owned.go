package diff

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

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
		s, err := readSet(m)
		if err != nil {
			return nil, err
		}
		out = out.Union(s)
	}
	return out, nil
}

// Owns tells whether an entry of the managed fields owns a field that is reached by
// names alone.
func Owns(m metav1.ManagedFieldsEntry, names ...string) bool {
	if m.FieldsV1 == nil {
		return false
	}
	owned, err := readSet(m)
	path := make(fieldpath.Path, len(names))
	for i := range names {
		path[i].FieldName = &names[i]
	}
	return err == nil && owned.Has(path)
}

func readSet(m metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	s := fieldpath.NewSet()
	if err := s.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("reading managed fields of %q: %w", m.Manager, err)
	}
	return s, nil
}

// Keep returns what to apply so that every difference between rendered and
// live comes about except the held ones, which Compare returned for the two.
// Of a held field the manager goes on saying what it says now: the live value
// where it owns it, and nothing where somebody else does. Without held fields
// rendered itself is returned.
func (e *Engine) Keep(rendered, live client.Object, manager string, held []Field) (client.Object, error) {
	if len(held) == 0 {
		return rendered, nil
	}
	c, err := e.comparison(rendered, live)
	if err != nil {
		return nil, err
	}
	owned, err := ownedSet(live.GetManagedFields(), manager)
	if err != nil {
		return nil, err
	}
	wantedOrder, err := c.orders()
	if err != nil {
		return nil, err
	}
	heldOrder := map[string]bool{}
	for _, f := range held {
		if f.Order {
			heldOrder[f.Path] = true
			continue
		}
		var now any
		if owned.Has(f.path) {
			now = at(c.live.Object, f.path)
		}
		edited, ok := put(c.wanted.Object, f.path, now).(map[string]any)
		if !ok {
			return nil, fmt.Errorf("keeping %s of %s %q: nothing would be left", f.Path, c.wanted.GetKind(), c.wanted.GetName())
		}
		c.wanted.Object = edited
	}
	changing := slices.DeleteFunc(wantedOrder, func(f Field) bool { return heldOrder[f.Path] })
	return c.wanted, e.keepOrder(c, changing)
}

// keepOrder puts the entries of all lists into the order in which they are
// live, except of those lists whose order is to change.
func (e *Engine) keepOrder(c comparison, changing []Field) error {
	var err error
	if c.wantedTyped, err = e.converter.ObjectToTyped(c.wanted); err != nil {
		return fmt.Errorf("typing what is kept of %s %q: %w", c.wanted.GetKind(), c.wanted.GetName(), err)
	}
	now, err := c.orders()
	if err != nil {
		return err
	}
	for _, f := range now {
		if !slices.ContainsFunc(changing, func(g Field) bool { return g.Path == f.Path }) {
			alignOrder(c.wanted.Object, c.live.Object, f)
		}
	}
	return nil
}

// orders lists the lists whose order an apply would change.
func (c comparison) orders() ([]Field, error) {
	merged, err := c.liveTyped.Merge(c.wantedTyped)
	if err != nil {
		return nil, fmt.Errorf("merging %s %q: %w", c.wanted.GetKind(), c.wanted.GetName(), err)
	}
	return reordered(c, merged), nil
}
