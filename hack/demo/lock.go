package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock keeps two runs of the demonstration out of one directory: the second
// would tell the story on the cluster of the first. The lock ends with the
// process, however that ends.
func lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("another run of the demonstration is at work in %s; end it first (Ctrl-C)", dir)
		}
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // closing the file gives the lock back
}
