package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// baseFormat changes when the way of building the base changes, so that older layers are not taken for it.
const baseFormat = "1"

// Base describes the base layer.
type Base struct {
	// CacheDir holds finished layers and apt's private state; see DefaultCacheDir.
	CacheDir string
	// Packages are the Debian packages; their dependencies come along.
	Packages []string
	// Log is told what is downloaded and built.
	Log io.Writer
}

// DefaultCacheDir is $XDG_CACHE_HOME/fairlead/images, or its usual place below the home directory.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	return filepath.Join(dir, "fairlead", "images"), nil
}

// Layer returns the file of the base layer. It builds it if no layer of the same inputs is in the cache.
func (b Base) Layer(ctx context.Context) (string, error) {
	key, err := b.key()
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.CacheDir, "base-"+key+".tar.gz")
	if _, err := os.Stat(file); err == nil {
		fmt.Fprintf(b.Log, "image: base layer %s is cached\n", key)
		return file, nil
	}
	if err := os.MkdirAll(b.CacheDir, 0o755); err != nil {
		return "", fmt.Errorf("make image cache: %w", err)
	}
	debs, err := apt{dir: filepath.Join(b.CacheDir, "apt"), log: b.Log}.fetch(ctx, b.Packages)
	if err != nil {
		return "", err
	}
	tree, err := baseTree(ctx, debs)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(b.Log, "image: base layer %s has %d entries of %d packages\n", key, tree.Len(), len(debs))
	return file, writeAtomically(file, tree.WriteLayer)
}

// key names the inputs: the packages, the Debian release and the machine's architecture.
func (b Base) key() (string, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", fmt.Errorf("read the Debian release: %w", err)
	}
	inputs := []string{baseFormat, runtime.GOARCH, string(release), strings.Join(b.Packages, " "), strings.Join(setupOnly, " "), strings.Join(leftOut, " ")}
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\x00")))
	return hex.EncodeToString(sum[:6]), nil
}

// baseTree lays out a root directory from packages, doing by hand the few things that their installation scripts do.
func baseTree(ctx context.Context, debs []string) (*Tree, error) {
	t := NewTree()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		t.Dir("usr/"+dir, 0o755)
		t.Link(dir, "usr/"+dir)
	}
	for _, deb := range debs {
		if err := unpack(ctx, deb, t); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{"dev", "proc", "sys", "run", "root", "etc", "var/log", "home"} {
		t.Dir(dir, 0o755)
	}
	t.Dir("tmp", 0o1777)
	t.entries["tmp"] = entry{kind: '5', mode: 0o1777}
	alternatives := [][2]string{{"awk", "mawk"}, {"mysql", "mariadb"}, {"which", "which.debianutils"}}
	for _, a := range alternatives {
		if !t.Has("usr/bin/"+a[0]) && t.Has("usr/bin/"+a[1]) {
			t.Link("usr/bin/"+a[0], a[1])
		}
	}
	if !t.Has("usr/bin/sh") {
		t.Link("usr/bin/sh", "dash")
	}
	t.File("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n"))
	t.File("etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n"))
	t.File("etc/nsswitch.conf", 0o644, []byte("passwd: files\ngroup: files\nhosts: files dns\n"))
	return t, nil
}

// writeAtomically writes a file so that a reader never sees half of it.
func writeAtomically(file string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".tmp-*")
	if err != nil {
		return fmt.Errorf("create %q: %w", file, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	if err := write(tmp); err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		_ = tmp.Close()
		return fmt.Errorf("write %q: %w", file, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write %q: %w", file, err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("write %q: %w", file, err)
	}
	return nil
}
