package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ownDirectory refuses a directory with anything that the demonstration does not
// make: it is removed as a whole in the end.
func ownDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Name() != "cluster" && e.Name() != "images" {
			return fmt.Errorf("%s holds %q, which is not of the demonstration, and nothing was done: give another --dir, one that does not exist yet", dir, e.Name())
		}
	}
	return nil
}

func lockFile(dir string) string { return dir + ".lock" }

// lock keeps two runs of the demonstration out of one directory: the second
// would tell the story on the cluster of the first. The lock ends with the
// process, however that ends, and its file may be removed while it is held.
func lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(lockFile(dir), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = fmt.Errorf("another run of the demonstration is at work in %s; end it first (Ctrl-C)", dir)
			}
			return nil, errors.Join(err, f.Close())
		}
		if current(f) {
			return func() { _ = f.Close() }, nil // closing the file gives the lock back
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// current tells whether a file is still the one of its name: the run that held the
// lock before may have removed it.
func current(f *os.File) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(locked, named)
}
