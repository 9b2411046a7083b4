package manifest

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// wrongType finds the first value that is of another type than its field. The error
// of the decoder speaks of types of Go, which a manifest does not have.
func (e entry) wrongType(scheme *runtime.Scheme) *json.UnmarshalTypeError {
	what := e.identity()
	into, err := scheme.New(schema.FromAPIVersionAndKind(what.APIVersion, what.Kind))
	if err != nil {
		return nil //nolint:nilerr // a kind that is not ours has no types to hold it against
	}
	var wrong *json.UnmarshalTypeError
	if !errors.As(json.Unmarshal(e.json, into), &wrong) || wrong.Field == "" {
		return nil
	}
	return wrong
}

// fieldOf is the path of the field in a manifest, where embedded types have no name.
func fieldOf(wrong *json.UnmarshalTypeError) string {
	return strings.Join(slices.DeleteFunc(strings.Split(wrong.Field, "."), func(part string) bool {
		first, _ := utf8.DecodeRuneInString(part)
		return unicode.IsUpper(first)
	}), ".")
}

// valueWord says what stands in the manifest.
func valueWord(value string) string {
	kind, number, _ := strings.Cut(value, " ")
	switch kind {
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "bool":
		return "true or false"
	case "number":
		return strings.TrimSpace("the number " + number)
	}
	return "a " + kind
}

// typeWord says what is wanted there.
func typeWord(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number that fits"
	default:
		return t.String()
	}
}
