package diff

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// withheldValue stands for a value that is not printed.
const withheldValue = "(withheld)"

// redacted returns the value at a path without what may be a credential: the
// values of environment variables with names like PASSWD. What is printed of a
// plan is read by more people than may read the object.
func redacted(v any, p fieldpath.Path) any {
	if n := len(p); n >= 2 && p[n-1].FieldName != nil && *p[n-1].FieldName == "value" && p[n-2].Key != nil {
		for _, k := range *p[n-2].Key {
			if name, ok := k.Value.Unstructured().(string); ok && k.Name == "name" && Sensitive(name) {
				return withheldValue
			}
		}
	}
	switch v.(type) {
	case map[string]any, []any:
		v = runtime.DeepCopyJSONValue(v)
		redact(v)
	}
	return v
}

func redact(v any) {
	switch x := v.(type) {
	case map[string]any:
		if name, ok := x["name"].(string); ok && Sensitive(name) {
			if _, is := x["value"].(string); is {
				x["value"] = withheldValue
			}
		}
		for _, e := range x {
			redact(e)
		}
	case []any:
		for _, e := range x {
			redact(e)
		}
	}
}

// Sensitive tells by the name of a variable or setting whether its value may be a
// credential.
func Sensitive(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"passw", "secret", "token", "access_key", "credential", "private_key"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
