package manifest

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Stdin is the file name of standard input.
const Stdin = "-"

// Files lists the files that a name stands for: itself, or in a directory those
// that kubectl would take, in the order of their names.
func Files(name string, recursive bool) ([]string, error) {
	if name == Stdin {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != name && !recursive:
			return filepath.SkipDir
		case !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for manifests in %s: %w", name, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file that ends in .yaml, .yml or .json in directory %s%s", name, deeper(recursive))
	}
	return files, nil
}

func deeper(recursive bool) string {
	if recursive {
		return " or below it"
	}
	return "; directories in it are looked into with -R"
}

// Read reads a file or standard input.
func Read(name string, stdin io.Reader) ([]byte, error) {
	if name == Stdin {
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return text, nil
	}
	return os.ReadFile(name) //nolint:gosec // the user names the file to read
}
