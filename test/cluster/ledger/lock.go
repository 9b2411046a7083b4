package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrBusy says that another process is bringing the cluster up or down.
var ErrBusy = errors.New("another up or down works on this cluster")

// Lock keeps two processes from working on one cluster at the same time. The
// kernel drops it when its holder dies.
func Lock(dir string) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %q", ErrBusy, dir)
		}
		return nil, fmt.Errorf("lock %q: %w", dir, err)
	}
	return func() { file.Close() }, nil
}
