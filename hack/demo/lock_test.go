package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDirectoryOfSomebodyElseStays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		makes []string
		fails bool
	}{
		"one that does not exist":      {nil, false},
		"that of a demonstration":      {[]string{"cluster", "images"}, false},
		"one with files of other kind": {[]string{"images", "letters"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "demo")
			for _, m := range tc.makes {
				if err := os.MkdirAll(filepath.Join(dir, m), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			err := down(t.Context(), dir)
			if !tc.fails {
				if left, _ := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
					t.Errorf("error %v, and %v is left", err, left)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), `holds "letters"`) {
				t.Errorf("error %v, want one that names what is foreign", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "images")); err != nil {
				t.Errorf("it was removed all the same: %v", err)
			}
		})
	}
}

func TestLockOutlivesItsFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	release, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a second run: %v", err)
	}
	if err := os.Remove(lockFile(dir)); err != nil {
		t.Fatal(err)
	}
	release()
	again, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
