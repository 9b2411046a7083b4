// Command crd-rules writes what the API server is to check of a DorisCluster
// into the custom resource definition named as its argument.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/internal/system/doris/admission"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crd-rules FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "crd-rules: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func write(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return err
	}
	rules, err := plain(admission.Validations())
	if err != nil {
		return err
	}
	versions, ok := at(crd, "spec", "versions").([]any)
	if !ok {
		return fmt.Errorf("it has no versions")
	}
	for _, v := range versions {
		root, ok := at(v, "schema", "openAPIV3Schema").(map[string]any)
		if !ok {
			return fmt.Errorf("a version has no schema")
		}
		root["x-kubernetes-validations"] = rules
		if err := imageByRule(root); err != nil {
			return err
		}
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644)
}

// imageByRule leaves the image of compute nodes to a rule: `kubectl scale` writes a
// number of compute nodes where there may be none, and what the schema says of a
// field that is missing then helps nobody.
func imageByRule(root map[string]any) error {
	compute, ok := at(root, "properties", "spec", "properties", "cnSpec").(map[string]any)
	required, listed := compute["required"].([]any)
	if !ok || !listed {
		return fmt.Errorf("the schema has no cnSpec with required fields")
	}
	compute["required"] = slices.DeleteFunc(required, func(f any) bool { return f == "image" })
	if len(required) == 1 {
		delete(compute, "required")
	}
	return nil
}

// plain turns typed values into what a YAML document holds.
func plain(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(text, &out)
	return out, err
}

func at(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}
