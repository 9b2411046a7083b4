package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrBusy says that another process is bringing the cluster up or down.
var ErrBusy = errors.New("another up or down works on this cluster")

// Lock keeps two processes from working on one cluster at the same time. The
// kernel drops it when its holder dies, but a child that the holder was just
// about to start holds it for a moment longer: patience waits for that.
func Lock(dir string, patience time.Duration) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			break
		}
	}
	switch {
	case err == nil:
		return func() { file.Close() }, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: %q", ErrBusy, dir)
	default:
		err = fmt.Errorf("lock %q: %w", dir, err)
	}
	file.Close()
	return nil, err
}
