// Command gen-chart writes those parts of the Helm chart that have another
// source: custom resource definitions and rights from config/, the schema and
// the README of its values from values.yaml, and the options of the operator's
// configuration, with their reference page, from the table in internal/config.
//
// Run it from the root of the repository, by `make generate`.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/internal/config"
	"github.com/fairlead-dev/fairlead/internal/operator"
)

const chart = "charts/fairlead"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen-chart:", err)
		os.Exit(1)
	}
}

func run() error {
	systems := operator.SystemNames()
	table, defaults := config.Table(systems), config.Defaults(systems)
	if err := copyDefinitions("config/crd", filepath.Join(chart, "files/crds")); err != nil {
		return err
	}
	if err := writeRules("config/rbac", filepath.Join(chart, "files/rbac")); err != nil {
		return err
	}
	values, err := readValues(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	schema, err := schema("hack/gen-chart/schema.yaml", values, table)
	if err != nil {
		return err
	}
	for path, content := range map[string][]byte{
		filepath.Join(chart, "values.schema.json"): schema,
		filepath.Join(chart, "README.md"):          readme(values),
		"docs/reference/operator-configuration.md": reference(table, defaults),
	} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyDefinitions makes the files in to those in from, and no others.
func copyDefinitions(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("no definition in %s", from)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
