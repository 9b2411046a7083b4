package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// at descends from obj along a path; nil when there is nothing there.
func at(obj any, p fieldpath.Path) any {
	for _, el := range p {
		if obj = step(obj, el); obj == nil {
			return nil
		}
	}
	return obj
}

// step descends from obj by one path element; nil when there is no such child.
func step(obj any, el fieldpath.PathElement) any {
	if el.FieldName != nil {
		m, _ := obj.(map[string]any)
		return m[*el.FieldName]
	}
	list, _ := obj.([]any)
	if i := indexOf(list, el); i >= 0 {
		return list[i]
	}
	return nil
}

// indexOf returns the place of the entry that a path element names, or -1.
func indexOf(list []any, el fieldpath.PathElement) int {
	for i, e := range list {
		switch {
		case el.Key != nil:
			if m, ok := e.(map[string]any); ok && hasKeys(m, *el.Key) {
				return i
			}
		case el.Value != nil:
			if value.Equals(value.NewValueInterface(e), *el.Value) {
				return i
			}
		case el.Index != nil:
			if i == *el.Index {
				return i
			}
		}
	}
	return -1
}

func hasKeys(m map[string]any, keys value.FieldList) bool {
	for _, k := range keys {
		got := keyValue(m, k.Name)
		if got == nil || !value.Equals(value.NewValueInterface(got), k.Value) {
			return false
		}
	}
	return true
}

// keyValue returns one key of a list entry. A key may be left to its default;
// the protocol of a port is the only one that has one (a test holds that).
func keyValue(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	if name == "protocol" {
		return "TCP"
	}
	return nil
}

// put returns obj with the value at the path replaced, or removed when it is
// nil. Maps and lists that this empties are removed as well: they were there
// for what they held.
func put(obj any, p fieldpath.Path, to any) any {
	if len(p) == 0 {
		return to
	}
	if p[0].FieldName != nil {
		return putField(obj, *p[0].FieldName, p[1:], to)
	}
	list, _ := obj.([]any)
	i := indexOf(list, p[0])
	switch {
	case i < 0 && to == nil:
		return obj
	case i < 0:
		return append(list, put(newEntry(p[0]), p[1:], to))
	}
	entry := put(list[i], p[1:], to)
	if entry != nil {
		list[i] = entry
		return list
	}
	if len(list) == 1 {
		return nil
	}
	return append(list[:i:i], list[i+1:]...)
}

func putField(obj any, name string, rest fieldpath.Path, to any) any {
	m, _ := obj.(map[string]any)
	if m == nil {
		if to == nil {
			return obj
		}
		m = map[string]any{}
	}
	if child := put(m[name], rest, to); child != nil {
		m[name] = child
		return m
	}
	if _, had := m[name]; !had {
		return obj
	}
	delete(m, name)
	if len(m) == 0 {
		return nil
	}
	return m
}

// newEntry is a list entry that holds nothing but its keys.
func newEntry(el fieldpath.PathElement) any {
	if el.Key == nil {
		return nil
	}
	m := map[string]any{}
	for _, k := range *el.Key {
		m[k.Name] = k.Value.Unstructured()
	}
	return m
}

// printPath renders a path the way people write one:
// spec.template.spec.containers[name="fe"].env[name="USER"].value.
func printPath(p fieldpath.Path) string {
	var b strings.Builder
	for _, el := range p {
		if el.FieldName != nil {
			writeField(&b, *el.FieldName)
			continue
		}
		fmt.Fprintf(&b, "[%s]", printElement(el))
	}
	return b.String()
}

func printElement(el fieldpath.PathElement) string {
	switch {
	case el.Key != nil:
		parts := make([]string, 0, len(*el.Key))
		for _, k := range *el.Key {
			parts = append(parts, k.Name+"="+printValue(k.Value))
		}
		return strings.Join(parts, ",")
	case el.Value != nil:
		return "=" + printValue(*el.Value)
	case el.Index != nil:
		return fmt.Sprint(*el.Index)
	}
	return ""
}

func printElements(list []fieldpath.PathElement) string {
	parts := make([]string, 0, len(list))
	for _, el := range list {
		parts = append(parts, printElement(el))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func writeField(b *strings.Builder, name string) {
	if strings.ContainsAny(name, "./[]") {
		fmt.Fprintf(b, "[%q]", name)
		return
	}
	if b.Len() > 0 {
		b.WriteByte('.')
	}
	b.WriteString(name)
}

func printValue(v value.Value) string {
	raw, err := json.Marshal(v.Unstructured())
	if err != nil {
		return "?"
	}
	return string(raw)
}
