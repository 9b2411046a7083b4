package quorum

import (
	"context"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
)

// askMembership finds out whether a node without a master was dropped while it was away.
func (n *Node) askMembership(ctx context.Context) {
	n.mu.Lock()
	others := n.accepted.Frontends
	n.mu.Unlock()
	for _, f := range others {
		if f.Addr() == n.opt.Self {
			continue
		}
		var m Membership
		if err := n.call(ctx, f.Addr(), "member", n.opt.Self, &m); err == nil && m.Sure && !m.Member {
			n.mu.Lock()
			n.leave()
			n.mu.Unlock()
			return
		}
	}
}

// startPeers begins to talk to members that are new; the lock is held by the master.
func (n *Node) startPeers() {
	for _, f := range n.accepted.Frontends {
		addr := f.Addr()
		if addr == n.opt.Self || n.peers[addr] != nil {
			continue
		}
		p := &peer{wake: make(chan struct{}, 1)}
		n.peers[addr] = p
		go n.talk(n.leading, addr, p)
	}
}

func (p *peer) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// talk sends heartbeats and states to one member while the mastership lasts. A dropped member hears of it once.
func (n *Node) talk(ctx context.Context, addr string, p *peer) {
	tick := time.NewTicker(n.opt.Timing.Heartbeat)
	defer tick.Stop()
	for {
		member := n.send(ctx, addr, p)
		if !member {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.wake:
		}
	}
}

// send makes one exchange with a member and reports whether it still is one.
func (n *Node) send(ctx context.Context, addr string, p *peer) bool {
	in, f, ok := n.next(addr, p)
	if !ok || ctx.Err() != nil {
		return false
	}
	if n.opt.Tell != nil {
		in.Told = n.opt.Tell()
	}
	sent := n.opt.Now()
	var out appendAnswer
	err := n.call(ctx, addr, "append", in, &out)
	n.note(p, sent, out, err)
	n.seeTerm(out.Term)
	if f == nil {
		dropCommitted := in.CommitTerm == in.StateTerm && in.CommitVersion == in.StateVersion
		return err == nil && !dropCommitted || n.forget(addr)
	}
	if err == nil && !f.Joined && out.OK && n.beginJoin(p) {
		go n.join(ctx, addr, p)
	}
	return true
}

// next makes the question for a member, with the state if it does not have it. The frontend is nil when the newest
// state no longer has it.
func (n *Node) next(addr string, p *peer) (appendRequest, *meta.Frontend, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.role != master {
		return appendRequest{}, nil, false
	}
	s := n.accepted
	in := appendRequest{
		Leader: n.opt.Self, Term: n.term, ClusterID: s.ClusterID, StateTerm: s.Term, StateVersion: s.Version,
	}
	if n.applied != nil {
		in.CommitTerm, in.CommitVersion = n.applied.Term, n.applied.Version
	}
	if p.term != s.Term || p.version != s.Version {
		in.State = s
	}
	if f, ok := s.Frontend(addr); ok {
		return in, &f, true
	}
	return in, nil, true
}

// forget ends the talk with a dropped member once its drop is committed, or at once if it does not answer: it has been
// told, or finds out when it asks.
func (n *Node) forget(addr string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.peers, addr)
	return false
}

func (n *Node) note(p *peer, sent time.Time, out appendAnswer, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		p.err = err.Error()
		return
	}
	if out.Term != n.term {
		return
	}
	p.err, p.acked, p.report = "", sent, out.Report
	p.term, p.version = out.HaveTerm, out.HaveVersion
	n.commit()
}

func (n *Node) beginJoin(p *peer) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	begin := !p.joining
	p.joining = true
	return begin
}

func (n *Node) join(ctx context.Context, addr string, p *peer) {
	_, err := n.Propose(ctx, func(s *meta.State) error { return s.Join(addr) })
	n.mu.Lock()
	p.joining = false
	n.mu.Unlock()
	if err != nil {
		n.opt.Log.Warn("member could not join", "frontend", addr, "error", err)
	}
}
