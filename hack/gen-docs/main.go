// Command gen-docs writes the reference page of each kind, docs/reference/KIND.md,
// from the CRDs in config/crd: what the API server enforces is what is documented.
//
// Run it from the root of the repository, by `make generate`.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run("config/crd", "docs/reference"); err != nil {
		fmt.Fprintln(os.Stderr, "gen-docs:", err)
		os.Exit(1)
	}
}

func run(crds, docs string) error {
	paths, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("no CRD in %s", crds)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		text, err := page(crd)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(docs, crd.Spec.Names.Singular+".md"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
