package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file of testdata/values is rendered and compared with a golden file; its
// first comment says what it is.
func TestRenderedManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files of values, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := rendered(t, string(values))
			golden(t, filepath.Join("golden", name+".yaml"), r.manifest())
			golden(t, filepath.Join("golden", name+".notes.txt"), strings.TrimSpace(trimSpaces(r.notes))+"\n")
		})
	}
}
