// Package quorum keeps one metadata state on several frontends and chooses the master among them.
//
// The algorithm is Raft with a log of length one: what is replicated is always the whole state, stamped with the
// master's term and a version. The state is small, so this costs little and leaves out log matching, snapshots and
// catching up.
//
//	follower ──no heartbeat for an election timeout──► candidate (asks first, without raising the term)
//	candidate ──votes of a majority of the joined followers──► master (stamps the state with its term)
//	master ──no answer of a majority for an election timeout, or a later term──► follower without a master
//
// A state is committed once a majority of the joined followers of that very state has stored it and its term is the
// master's own. A follower votes only for a candidate whose state is not older than its own, once per term, and not
// while it hears a master. Hence a committed state is in every later master, and a term has at most one master.
// One proposal runs at a time, and the next waits until the last is committed, so memberships change one by one.
// Observers receive states and neither vote nor count.
//
// Limits: a follower that lost its directory may vote again in a term that it voted in before, once it has been given
// a state; reads are served from the last state known to be committed and may be a heartbeat old.
package quorum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
)

// Timing sets the pace.
type Timing struct {
	Heartbeat                time.Duration
	ElectionMin, ElectionMax time.Duration
	// Commit bounds how long a proposal waits for its majority.
	Commit time.Duration
}

// Options are what a node is made of.
type Options struct {
	// Self is this node's identity and the address that the others reach it at.
	Self   string
	Dir    string
	Timing Timing
	Now    func() time.Time
	// Random returns a number in [0,1); it spreads the election timeouts.
	Random func() float64
	Log    *slog.Logger
	// Transport carries the questions to other nodes; nil means the default one.
	Transport http.RoundTripper
	// Tell returns what a master passes on with each heartbeat besides the state; Hear receives it on the others.
	Tell func() json.RawMessage
	Hear func(json.RawMessage)
	// Report returns what this node says about itself in its answers to heartbeats.
	Report func() json.RawMessage
}

type role int

const (
	follower role = iota
	master
)

// Node is one member.
type Node struct {
	opt    Options
	client *http.Client

	proposing sync.Mutex

	mu       sync.Mutex
	term     uint64
	voted    string
	accepted *meta.State // stored here, perhaps not committed
	applied  *meta.State // the latest known to be committed
	role     role
	leader   string
	heard    time.Time
	timeout  time.Duration
	peers    map[string]*peer
	changed  chan struct{} // closed and replaced when applied, role or leader changes
	removed  chan struct{}
	leading  context.Context // ends with the mastership
	stepDown context.CancelFunc
}

type peer struct {
	wake          chan struct{}
	acked         time.Time
	term, version uint64
	report        json.RawMessage
	err           string
	joining       bool
}

type stored struct {
	Term  uint64      `json:"term"`
	Voted string      `json:"votedFor"`
	State *meta.State `json:"state"`
}

// ErrNoMaster means that this node knows no master that could take a change.
var ErrNoMaster = errors.New("no master frontend is known: the followers have no majority or an election is running")

// NotMasterError names the frontend to ask instead.
type NotMasterError struct{ Master string }

func (e *NotMasterError) Error() string { return "not the master frontend; the master is " + e.Master }

// Open reads what the node stored before. A node without a stored state waits for a master to send it one.
func Open(opt Options) (*Node, error) {
	n := &Node{
		opt: opt, client: &http.Client{Timeout: opt.Timing.ElectionMin, Transport: opt.Transport},
		changed: make(chan struct{}), removed: make(chan struct{}), peers: map[string]*peer{},
	}
	b, err := os.ReadFile(n.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read metadata: %w", err)
	default:
		var s stored
		if err := json.Unmarshal(b, &s); err != nil {
			return nil, fmt.Errorf("read metadata %q: %w", n.file(), err)
		}
		n.term, n.voted, n.accepted = s.Term, s.Voted, s.State
	}
	n.heard = opt.Now()
	n.drawTimeout()
	return n, nil
}

// Bootstrap makes this node the first member of a new group.
func (n *Node) Bootstrap(s *meta.State) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted != nil {
		return errors.New("metadata exists already")
	}
	n.accepted = s
	return n.persist()
}

// Recover makes this node the only member, keeping the rest of its state: the last resort after a lost majority.
func (n *Node) Recover() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted == nil {
		return errors.New("there is no metadata to recover")
	}
	self, ok := n.accepted.Frontend(n.opt.Self)
	if !ok {
		return fmt.Errorf("frontend %s is not in the metadata", n.opt.Self)
	}
	self.Role, self.Joined = meta.Follower, true
	n.accepted = n.accepted.Clone()
	n.accepted.Frontends = []meta.Frontend{self}
	n.accepted.Version++
	return n.persist()
}

func (n *Node) file() string { return filepath.Join(n.opt.Dir, "bdb", "metadata.json") }

// persist stores term, vote and state; it is called with the lock held and before anything is promised to others.
func (n *Node) persist() error {
	b, err := json.Marshal(stored{Term: n.term, Voted: n.voted, State: n.accepted})
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	return WriteFile(n.file(), b)
}

// WriteFile replaces a file as a whole and makes it durable.
func WriteFile(file string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write %q: %w", file, err)
	}
	tmp, err := os.OpenFile(file+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write %q: %w", file, err)
	}
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", file, err)
	}
	return nil
}

// View returns the state to read from; nobody changes it. It is nil before the first state has arrived.
func (n *Node) View() *meta.State {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.applied != nil {
		return n.applied
	}
	return n.accepted
}

// Status is what a node knows about its group.
type Status struct {
	Master   string
	IsMaster bool
	// Ready means that the node serves: it has a committed state and a master, itself or another.
	Ready         bool
	Term, Version uint64
}

// Status returns the present status.
func (n *Node) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := Status{Master: n.leader, IsMaster: n.role == master, Term: n.term}
	if n.applied != nil {
		s.Version = n.applied.Version
		s.Ready = n.leader != ""
		if n.role == master {
			s.Ready = n.applied.Term == n.term
		}
	}
	return s
}

// Removed is closed when the group no longer counts this node among its members.
func (n *Node) Removed() <-chan struct{} { return n.removed }

// PeerStatus is what the master knows of another frontend.
type PeerStatus struct {
	Alive  bool
	Heard  time.Time
	Report json.RawMessage
	Err    string
	// Version is that of the state that the frontend has stored.
	Version uint64
}

// Peers returns the master's view of the other frontends.
func (n *Node) Peers() map[string]PeerStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make(map[string]PeerStatus, len(n.peers))
	now := n.opt.Now()
	for addr, p := range n.peers {
		alive := !p.acked.IsZero() && now.Sub(p.acked) < n.opt.Timing.ElectionMax
		out[addr] = PeerStatus{Alive: alive, Heard: p.acked, Report: p.report, Err: p.err, Version: p.version}
	}
	return out
}

// notify wakes all who wait for a change; the lock is held.
func (n *Node) notify() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Node) drawTimeout() {
	t := n.opt.Timing
	n.timeout = t.ElectionMin + time.Duration(n.opt.Random()*float64(t.ElectionMax-t.ElectionMin))
}
