package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-dev/fairlead/internal/config"
)

// schema completes the hand-written form of the values: descriptions and
// defaults come from values.yaml, options of the configuration from their table, and
// names of alerts from their file.
// A value that only one of the two knows is an error.
func schema(path string, values []value, table []config.Option, alerts []string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var root map[string]any
	if err := yaml.Unmarshal(content, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var errs []error
	known := map[string]bool{}
	for _, v := range values {
		s := at(root, v.path)
		if s == nil {
			errs = append(errs, fmt.Errorf("%s has no %s, which values.yaml has", path, v.path))
			continue
		}
		s["description"], s["default"] = v.help, v.content
		known[v.path] = true
	}
	for _, p := range leaves(root, "") {
		if !known[p] {
			errs = append(errs, fmt.Errorf("values.yaml has no %s, which %s has", p, path))
		}
	}
	require(root)
	if options := at(root, "defaultConfiguration.options"); options != nil {
		all := optionSchemas(table)
		all[config.PerNamespace] = perNamespace(table)
		options["additionalProperties"], options["properties"] = false, all
	}
	if disabled := at(root, "metrics.prometheusRule.disabled"); disabled != nil {
		disabled["items"] = map[string]any{"enum": alerts}
	}
	if systems := at(root, "systems"); systems != nil {
		systems["items"] = map[string]any{"enum": table[0].Values}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

// require refuses what null takes away: groups, and values whose default is not
// nothing. An object that is a value may go, such as a security context, and so may
// what is empty anyway.
func require(s map[string]any) {
	var required []string
	p := properties(s)
	for _, key := range slices.Sorted(maps.Keys(p)) {
		child, ok := p[key].(map[string]any)
		if !ok || child["$comment"] == "foreign" {
			continue
		}
		value, isValue := child["default"]
		if !isValue {
			require(child)
		}
		if !isValue || !mayBeNothing(value) {
			required = append(required, key)
		}
	}
	if len(required) > 0 {
		s["required"] = required
	}
}

func mayBeNothing(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return true
	case []any:
		return len(v) == 0
	}
	return value == "" || value == 0 || value == false
}

func properties(s map[string]any) map[string]any {
	p, _ := s["properties"].(map[string]any)
	return p
}

// at finds the schema of a value, or nil.
func at(s map[string]any, path string) map[string]any {
	for key := range strings.SplitSeq(path, ".") {
		next, ok := properties(s)[key].(map[string]any)
		if !ok {
			return nil
		}
		s = next
	}
	return s
}

// leaves are the paths of the values that the form has, but for those that it
// marks as foreign: they are there to be refused with a reason.
func leaves(s map[string]any, prefix string) []string {
	var out []string
	p := properties(s)
	for _, key := range slices.Sorted(maps.Keys(p)) {
		child, ok := p[key].(map[string]any)
		switch {
		case !ok || child["$comment"] == "foreign":
		case child["additionalProperties"] == false && len(properties(child)) > 0 && child["$comment"] != "one value":
			out = append(out, leaves(child, prefix+key+".")...)
		default:
			out = append(out, prefix+key)
		}
	}
	return out
}

// perNamespace is the form of what the file says for namespaces.
func perNamespace(table []config.Option) map[string]any {
	of := slices.DeleteFunc(slices.Clone(table), func(o config.Option) bool { return !o.Resource })
	return map[string]any{
		"type": "object", "description": "options for the resources of a namespace",
		"propertyNames":        map[string]any{"pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"},
		"additionalProperties": map[string]any{"type": "object", "additionalProperties": false, "properties": optionSchemas(of)},
	}
}

func optionSchemas(table []config.Option) map[string]any {
	out := map[string]any{}
	for _, o := range table {
		out[o.Key()] = optionSchema(o)
	}
	return out
}

func optionSchema(o config.Option) map[string]any {
	s := typeSchema(o)
	s["description"] = fmt.Sprintf("%s (%s)", o.Help, o.Class)
	switch {
	case s["type"] == "string" && len(o.Values) > 0:
		s["enum"] = o.Values
	case s["type"] == "string" && o.Secret: // a password has no place in a ConfigMap
		s["pattern"] = "^(" + strings.ReplaceAll(o.Item, "([^@/?#]*@)?", "") + ")?$"
	case s["type"] == "string" && o.Item != "":
		s["pattern"] = "^(" + o.Item + ")$"
	}
	return s
}

// typeSchema is the form of a value of the option's type.
func typeSchema(o config.Option) map[string]any {
	switch name := o.Field(&config.Settings{}).Type(); name {
	case "bool":
		return map[string]any{"type": "boolean"}
	case "int":
		return map[string]any{"type": "integer", "minimum": o.Min}
	case "stringSlice":
		return map[string]any{"type": "array"}
	case "duration":
		return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`}
	default:
		return map[string]any{"type": name}
	}
}
