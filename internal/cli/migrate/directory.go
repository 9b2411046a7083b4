package migrate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// manifest says what a backup is of. It has no settings in it, but the digests of files
// with settings: it is as private as they are.
type manifest struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Taken   time.Time `json:"taken"`

	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	// Approval is what migrate will write, of the workloads as they were.
	Approval string        `json:"approval"`
	Members  []savedMember `json:"members"`
}

// savedMember is one Pod of a backup.
type savedMember struct {
	Component string `json:"component"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	// Container is the one that ran: what it wrote goes with it.
	Container string `json:"container,omitempty"`
	// File is the name of its file in the directory; empty where it had none.
	File   string `json:"file,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// backup is a manifest with the files.
type backup struct {
	manifest
	files map[string][]byte // by Pod; nil where it had none
}

const (
	manifestVersion = 1
	manifestFile    = "manifest.json"
)

// digest is of the content of a file.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// nameOf is the name of the file of a Pod in the directory.
func nameOf(pod, file string) string { return pod + "." + file }

// private makes the directory, or holds that nobody else can look into the one that is
// there.
func private(dir string) error {
	if dir == "" {
		return errors.New("--backup-dir: say in which directory the settings are, or are to be, backed up; it has to be yours alone")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--backup-dir: %w", err)
	}
	return closed(dir)
}

func closed(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("--backup-dir: %w", err)
	case !info.IsDir():
		return fmt.Errorf("--backup-dir: %s is no directory: name another one", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("--backup-dir: others may look into %s (mode %04o), and settings may hold passwords: chmod 700 %s, or name another directory", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// put writes a file that is not there, whole or not at all. One that is there and holds
// the same stays.
func put(dir, name string, content []byte) (err error) {
	file := filepath.Join(dir, name)
	had, err := os.ReadFile(file) //nolint:gosec // a file of the directory that the person names
	switch {
	case err == nil && bytes.Equal(had, content):
		return os.Chmod(file, 0o600)
	case err == nil:
		return fmt.Errorf("%s is there already and holds something else; it was not overwritten: name another directory with --backup-dir", file)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temporary, err := os.CreateTemp(dir, "."+name+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(temporary.Name())) }()
	_, wrote := temporary.Write(content)
	if err := errors.Join(wrote, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), file); err != nil { // a rename would overwrite
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the directory that the person names
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// write writes a backup, the manifest last: without one there is no backup.
func (b *backup) write(dir string) error {
	for i := range b.Members {
		m := &b.Members[i]
		if m.File == "" {
			continue
		}
		if err := put(dir, m.File, b.files[m.Pod]); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(b.manifest, "", "  ")
	if err != nil {
		return err
	}
	return put(dir, manifestFile, append(text, '\n'))
}

// load reads the backup of a directory; nil where there is none.
func load(dir string) (*backup, error) {
	if err := closed(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestFile)) //nolint:gosec // in the directory that the person names
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &backup{files: map[string][]byte{}}
	if err := json.Unmarshal(text, &b.manifest); err != nil || b.Version != manifestVersion {
		return nil, fmt.Errorf("%s is no manifest of a backup that this version can read: name another directory", filepath.Join(dir, manifestFile))
	}
	err = b.loadFiles(dir)
	return b, err
}

// loadFiles reads the files of the members, which have to be those that were saved.
func (b *backup) loadFiles(dir string) error {
	for _, m := range b.Members {
		if m.File == "" {
			continue
		}
		if m.File != filepath.Base(m.File) || !strings.HasPrefix(m.File, m.Pod+".") {
			return fmt.Errorf("the manifest in %s names a file elsewhere: it was edited; make a new backup", dir)
		}
		content, err := os.ReadFile(filepath.Join(dir, m.File)) //nolint:gosec // a name without a directory
		if err != nil {
			return fmt.Errorf("the backup in %s is not whole: %w; make a new one in another directory", dir, err)
		}
		if digest(content) != m.Digest {
			return fmt.Errorf("%s is not what was backed up: to drop a setting, take it out of the running node, and make a new backup in another directory", filepath.Join(dir, m.File))
		}
		b.files[m.Pod] = content
	}
	return nil
}

// sameAs says in what a backup differs from another one; empty where it does not.
func (b *backup) sameAs(other *backup) string {
	switch {
	case b.UID != other.UID || b.Namespace != other.Namespace || b.Name != other.Name:
		return fmt.Sprintf("it is of another cluster, %s/%s", b.Namespace, b.Name)
	case b.Generation != other.Generation:
		return "the spec was edited since"
	case len(b.Members) != len(other.Members):
		return "there are other Pods now"
	}
	for i := range b.Members {
		had, has := b.Members[i], other.Members[i]
		switch {
		case had.Pod != has.Pod || had.UID != has.UID:
			return "Pod " + had.Pod + " is another one now"
		case had.File != has.File || had.Digest != has.Digest:
			return "the settings of " + had.Pod + " are others now"
		}
	}
	return ""
}
