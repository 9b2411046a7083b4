package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"
)

// epoch is the time stamp of every entry of every layer, so that equal inputs give equal bytes.
var epoch = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// Tree is the content of a layer: a file system in memory, keyed by slash path without a leading slash.
type Tree struct {
	entries map[string]entry
}

type entry struct {
	kind     byte
	mode     int64
	uid, gid int
	link     string
	data     []byte
}

// NewTree returns a tree that holds nothing.
func NewTree() *Tree { return &Tree{entries: map[string]entry{}} }

// Dir adds a directory and the directories above it. An entry that is there already stays as it is.
func (t *Tree) Dir(name string, mode fs.FileMode) {
	name = clean(name)
	if name == "" {
		return
	}
	t.parents(name)
	if _, ok := t.entries[name]; !ok {
		t.entries[name] = entry{kind: tar.TypeDir, mode: int64(mode)}
	}
}

// File adds or replaces a regular file that root owns.
func (t *Tree) File(name string, mode fs.FileMode, data []byte) {
	name = clean(name)
	t.parents(name)
	t.entries[name] = entry{kind: tar.TypeReg, mode: int64(mode), data: data}
}

// Link adds or replaces a symbolic link.
func (t *Tree) Link(name, target string) {
	name = clean(name)
	t.parents(name)
	t.entries[name] = entry{kind: tar.TypeSymlink, mode: 0o777, link: target}
}

// Has tells whether the tree holds an entry of that name.
func (t *Tree) Has(name string) bool {
	_, ok := t.entries[clean(name)]
	return ok
}

// Len returns the number of entries.
func (t *Tree) Len() int { return len(t.entries) }

func (t *Tree) parents(name string) {
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, ok := t.entries[dir]; !ok {
			t.entries[dir] = entry{kind: tar.TypeDir, mode: 0o755}
		}
	}
}

func (t *Tree) add(name string, e entry) {
	t.parents(name)
	if old, ok := t.entries[name]; ok && e.kind == tar.TypeDir && old.kind != tar.TypeReg {
		// A directory never replaces the link that stands in for it (/bin, /lib).
		if old.kind == tar.TypeSymlink {
			return
		}
	}
	t.entries[name] = e
}

// WriteLayer writes the tree as a gzipped layer, the same bytes for the same content.
func (t *Tree) WriteLayer(w io.Writer) error {
	zw, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("compress layer: %w", err)
	}
	tw := tar.NewWriter(zw)
	for _, name := range t.names() {
		if err := t.entries[name].write(tw, name); err != nil {
			return fmt.Errorf("write layer entry %q: %w", name, err)
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("close layer: %w", err)
	}
	if err := zw.Close(); err != nil {
		return fmt.Errorf("close layer compression: %w", err)
	}
	return nil
}

func (t *Tree) names() []string {
	names := make([]string, 0, len(t.entries))
	for name := range t.entries {
		names = append(names, name)
	}
	// A directory sorts before what it holds, because its path is a prefix.
	sort.Strings(names)
	return names
}

func (e entry) write(tw *tar.Writer, name string) error {
	if e.kind == tar.TypeDir {
		name += "/"
	}
	err := tw.WriteHeader(&tar.Header{
		Typeflag: e.kind, Name: name, Linkname: e.link, Mode: e.mode, Uid: e.uid, Gid: e.gid,
		Size: int64(len(e.data)), ModTime: epoch, Format: tar.FormatPAX,
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(tw, bytes.NewReader(e.data))
	return err
}

func clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}
