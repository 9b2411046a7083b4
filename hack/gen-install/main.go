// Command gen-install puts the install manifest together: the hand-written
// sources in config/operator and config/rbac and the generated CRDs become
// config/install/fairlead.yaml, in the order in which they have to be created.
// It refuses sources that ask for more rights than the operator may have.
//
// Run it from the root of the repository, by `make generate`.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// target is the manifest that users apply.
const target = "config/install/fairlead.yaml"

// sources are glob patterns in the order of creation.
var sources = []string{
	"config/operator/namespace.yaml",
	"config/crd/*.yaml",
	"config/rbac/*.yaml",
	"config/operator/deployment.yaml",
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen-install:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := read(sources)
	if err != nil {
		return err
	}
	manifest, err := assemble(files)
	if err != nil {
		return err
	}
	return os.WriteFile(target, manifest, 0o644)
}

// read returns the files of all patterns, each pattern's in the order of names.
func read(patterns []string) ([]file, error) {
	var files []file
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern) // sorted
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("no file matches %s", pattern)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, file{path: filepath.ToSlash(path), content: content})
		}
	}
	return files, nil
}
