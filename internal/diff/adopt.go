package diff

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Overlap tells whether two paths in print are the same, or one lies in the other.
func Overlap(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(a, b)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Adoption returns the managed fields of live with the fields of rendered that
// lie below a path (all of them when it is empty) moved to the manager, as those of an apply. Fields that are not
// live, and the excepted ones, stay with their owners, and so does everything
// that rendered does not name. needed is false when the manager owns them already.
//
// It is wanted where another manager wrote the fields by updates: an apply that
// leaves such a field out does not remove it.
func (e *Engine) Adoption(rendered, live client.Object, manager string, below string, except []Field) (entries []metav1.ManagedFieldsEntry, needed bool, err error) {
	c, err := e.comparison(rendered, live)
	if err != nil {
		return nil, false, err
	}
	wanted, err := c.wantedTyped.ToFieldSet()
	if err != nil {
		return nil, false, fmt.Errorf("fields of %s %q: %w", c.wanted.GetKind(), c.wanted.GetName(), err)
	}
	have, err := c.liveTyped.ToFieldSet()
	if err != nil {
		return nil, false, fmt.Errorf("fields of live %s %q: %w", c.live.GetKind(), c.live.GetName(), err)
	}
	kept := c.untouched(except)
	move := fieldpath.NewSet()
	wanted.Intersection(have).Iterate(func(p fieldpath.Path) {
		if in(p, below) && !slices.ContainsFunc(kept, func(k fieldpath.Path) bool { return prefixed(p, k) }) {
			move.Insert(p.Copy())
		}
	})
	return moved(live.GetManagedFields(), move, manager, c.wanted.GetAPIVersion())
}

// in tells whether a path is the one in print or lies below it.
func in(p fieldpath.Path, below string) bool {
	printed := printPath(p)
	if below == "" { // all but what says which object it is, which nobody owns
		return !slices.Contains([]string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}, printed)
	}
	return len(printed) >= len(below) && Overlap(printed, below)
}

// untouched are the paths of which nothing is adopted: the excepted fields, and
// of a list in another order the entries that occur more than once, since an
// apply cannot name those.
func (c comparison) untouched(except []Field) []fieldpath.Path {
	var out []fieldpath.Path
	for _, f := range except {
		if !f.Order {
			out = append(out, f.path)
			continue
		}
		list, _ := at(c.live.Object, f.path).([]any)
		for _, e := range list {
			entry, _ := e.(map[string]any)
			if f.occurs(list, e) < 2 || entry == nil {
				continue
			}
			var keys value.FieldList
			for _, k := range f.keys {
				keys = append(keys, value.Field{Name: k, Value: value.NewValueInterface(keyValue(entry, k))})
			}
			keys.Sort()
			out = append(out, append(f.path.Copy(), fieldpath.PathElement{Key: &keys}))
		}
	}
	return out
}

func prefixed(p, prefix fieldpath.Path) bool {
	return len(p) >= len(prefix) && p[:len(prefix)].Equals(prefix)
}

// moved returns the managed fields with a set moved to the manager.
func moved(managed []metav1.ManagedFieldsEntry, move *fieldpath.Set, manager, version string) ([]metav1.ManagedFieldsEntry, bool, error) {
	owned, err := ownedSet(managed, manager)
	if err != nil {
		return nil, false, err
	}
	needed := !move.Difference(owned).Empty()
	var out []metav1.ManagedFieldsEntry
	for _, m := range managed {
		if m.Subresource != "" || m.FieldsV1 == nil {
			out = append(out, m)
			continue
		}
		if m.Manager == manager && m.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		theirs, err := readSet(m)
		if err != nil {
			return nil, false, err
		}
		rest := theirs.Difference(move)
		if rest.Equals(theirs) {
			out = append(out, m)
			continue
		}
		if rest.Empty() {
			continue
		}
		if m.FieldsV1, err = writeSet(rest); err != nil {
			return nil, false, err
		}
		out = append(out, m)
	}
	ours, err := writeSet(owned.Union(move))
	if err != nil {
		return nil, false, err
	}
	out = append(out, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
		FieldsType: "FieldsV1", FieldsV1: ours,
	})
	return out, needed, nil
}

func writeSet(s *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := s.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("writing managed fields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}
