package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// step descends from obj by one path element; nil when there is no such child.
func step(obj any, el fieldpath.PathElement) any {
	switch {
	case el.FieldName != nil:
		m, ok := obj.(map[string]any)
		if !ok {
			return nil
		}
		return m[*el.FieldName]
	case el.Key != nil:
		list, _ := obj.([]any)
		for _, e := range list {
			if m, ok := e.(map[string]any); ok && hasKeys(m, *el.Key) {
				return m
			}
		}
	case el.Value != nil:
		list, _ := obj.([]any)
		for _, e := range list {
			if value.Equals(value.NewValueInterface(e), *el.Value) {
				return e
			}
		}
	case el.Index != nil:
		if list, ok := obj.([]any); ok && *el.Index >= 0 && *el.Index < len(list) {
			return list[*el.Index]
		}
	}
	return nil
}

func hasKeys(m map[string]any, keys value.FieldList) bool {
	for _, k := range keys {
		got, ok := m[k.Name]
		if !ok {
			// A key may be left to its default, as the protocol of a port is.
			if k.Name == "protocol" {
				got = "TCP"
			} else {
				return false
			}
		}
		if !value.Equals(value.NewValueInterface(got), k.Value) {
			return false
		}
	}
	return true
}

// printPath renders a path the way people write one:
// spec.template.spec.containers[name="fe"].env[name="USER"].value.
func printPath(p fieldpath.Path) string {
	var b strings.Builder
	for _, el := range p {
		switch {
		case el.FieldName != nil:
			writeField(&b, *el.FieldName)
		case el.Key != nil:
			parts := make([]string, 0, len(*el.Key))
			for _, k := range *el.Key {
				parts = append(parts, k.Name+"="+printValue(k.Value))
			}
			fmt.Fprintf(&b, "[%s]", strings.Join(parts, ","))
		case el.Value != nil:
			fmt.Fprintf(&b, "[=%s]", printValue(*el.Value))
		case el.Index != nil:
			fmt.Fprintf(&b, "[%d]", *el.Index)
		}
	}
	return b.String()
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
