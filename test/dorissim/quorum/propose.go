package quorum

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
)

// ErrUnknown means that the majority did not answer in time. The change may still come true.
var ErrUnknown = errors.New("the change did not reach a majority of the followers in time")

// Propose changes the state on the master and returns once a majority has stored it. The function gets a copy; if it
// fails, nothing changes.
func (n *Node) Propose(ctx context.Context, change func(*meta.State) error) (*meta.State, error) {
	n.proposing.Lock()
	defer n.proposing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, n.opt.Timing.Commit)
	defer cancel()
	if err := n.settle(ctx); err != nil {
		return nil, err
	}
	n.mu.Lock()
	if err := n.mustBeMaster(); err != nil {
		n.mu.Unlock()
		return nil, err
	}
	next := n.accepted.Clone()
	if err := change(next); err != nil {
		n.mu.Unlock()
		return nil, err
	}
	err := n.accept(next)
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return next, n.settle(ctx)
}

func (n *Node) mustBeMaster() error {
	if n.role == master {
		return nil
	}
	if n.leader == "" {
		return ErrNoMaster
	}
	return &NotMasterError{Master: n.leader}
}

// accept stamps and stores the master's next state and sets out to spread it; the lock is held.
func (n *Node) accept(next *meta.State) error {
	previous := n.accepted
	next.Term, next.Version = n.term, previous.Version+1
	n.accepted = next
	if err := n.persist(); err != nil {
		n.accepted = previous
		return fmt.Errorf("store metadata: %w", err)
	}
	n.startPeers()
	for _, p := range n.peers {
		p.poke()
	}
	n.commit()
	return nil
}

// settle waits until the master's newest state is committed.
func (n *Node) settle(ctx context.Context) error {
	for {
		n.mu.Lock()
		if err := n.mustBeMaster(); err != nil {
			n.mu.Unlock()
			return err
		}
		done, changed := n.applied == n.accepted, n.changed
		n.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ErrUnknown
		}
	}
}

// commit applies the newest state if a majority of its voters has it; the lock is held.
func (n *Node) commit() {
	if n.role != master || n.accepted == n.applied {
		return
	}
	s, have := n.accepted, 0
	voters := s.Voters()
	for _, addr := range voters {
		p := n.peers[addr]
		if addr == n.opt.Self || p != nil && p.term == s.Term && p.version == s.Version {
			have++
		}
	}
	if have > len(voters)/2 {
		n.applied = s
		n.notify()
	}
}

// Await returns once the node has applied the version, so that a client who changed something on the master reads it
// here.
func (n *Node) Await(ctx context.Context, version uint64) error {
	for {
		n.mu.Lock()
		done, changed := n.applied != nil && n.applied.Version >= version, n.changed
		n.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for metadata version %d: %w", version, ctx.Err())
		}
	}
}

// AwaitReady returns once the node serves, or with an error when the group does not want it.
func (n *Node) AwaitReady(ctx context.Context) error {
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if n.Status().Ready {
			return nil
		}
		select {
		case <-changed:
		case <-n.removed:
			return errors.New("this frontend is not a member of the cluster")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
