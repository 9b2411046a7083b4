package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
	"github.com/fairlead-dev/fairlead/test/cluster/node"
	"github.com/fairlead-dev/fairlead/test/cluster/process"
)

// vanishWithin is how long a killed process may take to be gone.
const vanishWithin = 30 * time.Second

// lockPatience is for what a killed Up leaves behind for a moment.
const lockPatience = 3 * time.Second

// Down ends the cluster of a directory and leaves nothing of it behind. It
// works from the ledger alone, whatever became of the Up that wrote it, and
// can be repeated.
func Down(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	book, err := ledger.Open(dir)
	if err != nil {
		return err
	}
	release, err := ledger.Lock(dir, lockPatience)
	if err != nil {
		return err
	}
	defer release()
	if err := book.Update(func(r *ledger.Record) { r.Ready = false }); err != nil {
		return err
	}
	record := book.Record()
	if err := endProcesses(ctx, record); err != nil {
		return fmt.Errorf("take down the cluster in %s: %w", dir, err)
	}
	if err := removeNetworkAndCgroups(ctx, record); err != nil {
		return fmt.Errorf("take down the cluster in %s: %w", dir, err)
	}
	if err := removeFiles(dir, book, record.MadeDir); err != nil {
		return fmt.Errorf("take down the cluster in %s: %w", dir, err)
	}
	return nil
}

// endProcesses kills what the ledger names and what carries the cluster's
// mark, again until nothing is left: a process may have started another one
// meanwhile. Nothing is worth a gentle end, since all data goes as well.
func endProcesses(ctx context.Context, record ledger.Record) error {
	ctx, cancel := context.WithTimeout(ctx, vanishWithin)
	defer cancel()
	for {
		left, err := killOnce(record)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes have not ended: %w", left, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func killOnce(record ledger.Record) (left int, err error) {
	for _, p := range record.Processes {
		if process.Alive(p.PID, p.Start) {
			left++
			err = errors.Join(err, process.Signal(p.PID, p.Start, syscall.SIGKILL))
		}
	}
	marked, markErr := process.Marked(record.ID)
	for _, pid := range marked {
		start, gone := process.StartTime(pid)
		if gone == nil && process.Alive(pid, start) {
			left++
			err = errors.Join(err, process.Signal(pid, start, syscall.SIGKILL))
		}
	}
	return left, errors.Join(err, markErr)
}

// removeNetworkAndCgroups removes what is left of a real node when its
// processes have ended. A ledger from before these were made names none.
func removeNetworkAndCgroups(ctx context.Context, record ledger.Record) error {
	ctx, cancel := context.WithTimeout(ctx, vanishWithin)
	defer cancel()
	for _, link := range record.Links {
		if err := node.RemoveLink(ctx, link); err != nil {
			return err
		}
	}
	if record.Cgroup == "" {
		return nil
	}
	return node.RemoveCgroups(ctx, record.Cgroup)
}

// removeFiles empties the cluster's directory, the ledger last, and removes
// the directory if Up made it.
func removeFiles(dir string, book *ledger.Ledger, madeDir bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == ledger.FileName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	if err := book.Remove(); err != nil {
		return err
	}
	if !madeDir {
		return nil
	}
	return os.Remove(dir)
}
