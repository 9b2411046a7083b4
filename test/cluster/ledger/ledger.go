// Package ledger remembers what a cluster made on its host, so that all of it
// can be undone later by another process, also when the first one was killed.
//
// A thing is written to the ledger before it is made. What cannot be known
// before (the process id of a child) is written right after, and a mark that
// the thing carries from birth closes the gap: a process has the cluster's id
// in its environment, a network interface has a hardware address drawn for it.
// Undo looks at the mark before it touches anything, so that a recycled
// process id or a namesake of another cluster is left alone.
package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// FileName is the ledger's name in the cluster's directory.
const FileName = "cluster.json"

// ErrNone says that a directory holds no ledger.
var ErrNone = errors.New("no cluster in this directory")

// Ledger is the persistent record of one cluster.
type Ledger struct {
	mu   sync.Mutex
	path string
	data Record
}

// Record is the ledger's content.
type Record struct {
	ID      string // drawn for each cluster; the mark of its processes
	Version string // Kubernetes version
	Nodes   string // kind of nodes
	// MadeDir says that the cluster's directory did not exist before.
	MadeDir   bool
	Ready     bool   // Up came to its end
	Server    string // URL of the API server
	Kubectl   string // path of the kubectl of the same version
	Network   Network
	Processes []Process
	Links     []Link
	Cgroup    string // name of the cgroup made in every hierarchy; empty for none
}

// Network holds the addresses of a real node; all empty without one.
type Network struct {
	Host, Node, Pods, Services string
}

// Process is a started program.
type Process struct {
	Name  string
	PID   int
	Start uint64 // start time in clock ticks since boot: a recycled PID has another
}

// Link is a network interface.
type Link struct {
	Name string
	MAC  string
}

// Create writes the first version of a ledger. The directory must hold nothing yet.
func Create(dir string, first Record) (*Ledger, error) {
	// An Up that was killed in its first moment may have left this.
	_ = os.Remove(filepath.Join(dir, FileName+".tmp"))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		first.MadeDir = true
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("directory %q is not empty: a cluster needs one of its own (is one up there already?)", dir)
	}
	l := &Ledger{path: filepath.Join(dir, FileName), data: first}
	return l, l.save()
}

// Open reads the ledger of a directory.
func Open(dir string) (*Ledger, error) {
	l := &Ledger{path: filepath.Join(dir, FileName)}
	data, err := os.ReadFile(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %q", ErrNone, dir)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &l.data); err != nil {
		return nil, fmt.Errorf("read %s: %w", l.path, err)
	}
	return l, nil
}

// Record returns a copy of the content.
func (l *Ledger) Record() Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.data
	out.Processes = append([]Process(nil), l.data.Processes...)
	out.Links = append([]Link(nil), l.data.Links...)
	return out
}

// Update changes the content and has it on disk when it returns.
func (l *Ledger) Update(change func(*Record)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.data)
	return l.save()
}

// Remove deletes the ledger's file: the last act of undoing.
func (l *Ledger) Remove() error { return os.Remove(l.path) }

// save replaces the file in one step, so that a kill leaves the old or the new one.
func (l *Ledger) save() error {
	data, err := json.MarshalIndent(l.data, "", "  ")
	if err != nil {
		return err
	}
	tmp := l.path + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(tmp, l.path); err != nil {
		return fmt.Errorf("save the ledger: %w", err)
	}
	return nil
}
