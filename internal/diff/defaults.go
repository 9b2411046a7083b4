package diff

// fillAtomicDefaults fills in what the API server defaults inside values that
// it treats as one: there a missing field and its default are two different
// values, although they mean the same. (Elsewhere a missing field is simply not
// ours.) The rules are those of the core/v1 API.
func fillAtomicDefaults(v any) {
	switch x := v.(type) {
	case map[string]any:
		for key, e := range x {
			if child, ok := e.(map[string]any); ok {
				fillReference(key, child)
			}
			fillAtomicDefaults(e)
		}
	case []any:
		for _, e := range x {
			fillAtomicDefaults(e)
		}
	}
}

func fillReference(key string, m map[string]any) {
	switch key {
	case "fieldRef":
		fill(m, "fieldPath", "apiVersion", "v1")
	case "resourceFieldRef":
		fill(m, "resource", "divisor", "0")
	case "serviceAccountToken":
		fill(m, "path", "expirationSeconds", int64(3600))
	}
}

// fill sets a default in a map that is what its name says it is.
func fill(m map[string]any, mark, key string, value any) {
	if _, is := m[mark]; !is {
		return
	}
	if _, set := m[key]; !set {
		m[key] = value
	}
}
