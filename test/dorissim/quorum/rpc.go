package quorum

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
)

type voteRequest struct {
	// Poll asks what the answer would be, and changes nothing.
	Poll                    bool
	Candidate               string
	Term                    uint64
	ClusterID               int64
	StateTerm, StateVersion uint64
}

type voteAnswer struct {
	Term    uint64
	Granted bool
}

type appendRequest struct {
	Leader                    string
	Term                      uint64
	ClusterID                 int64
	StateTerm, StateVersion   uint64
	CommitTerm, CommitVersion uint64
	State                     *meta.State     `json:",omitempty"`
	Told                      json.RawMessage `json:",omitempty"`
}

type appendAnswer struct {
	Term                  uint64
	OK                    bool
	HaveTerm, HaveVersion uint64
	Report                json.RawMessage `json:",omitempty"`
}

// Membership is what a frontend says about another.
type Membership struct {
	// Sure is true when the frontend that answers is or follows a master.
	Sure      bool
	Member    bool
	Role      string
	Name      string
	ClusterID int64
	Master    string
}

// call sends a request to another node and reads its answer.
func (n *Node) call(ctx context.Context, addr, op string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode %s: %w", op, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/quorum/"+op, bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("ask %s: %w", addr, err)
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", addr, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return fmt.Errorf("ask %s: %s: %s", addr, resp.Status, bytes.TrimSpace(text))
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// AskMembership asks a frontend whether it knows another as a member.
func AskMembership(ctx context.Context, client *http.Client, helper, addr string) (Membership, error) {
	var m Membership
	n := &Node{client: client}
	err := n.call(ctx, helper, "member", addr, &m)
	return m, err
}

// Handler serves the other nodes.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /quorum/vote", serve(n.onVote))
	mux.HandleFunc("POST /quorum/append", serve(n.onAppend))
	mux.HandleFunc("POST /quorum/member", serve(n.onMember))
	return mux
}

func serve[I, O any](answer func(I) (O, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in I
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := answer(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}
}

func (n *Node) onMember(addr string) (Membership, error) {
	status := n.Status()
	n.mu.Lock()
	defer n.mu.Unlock()
	m := Membership{Sure: status.Ready, Master: status.Master}
	if n.applied == nil {
		m.Sure = false
		return m, nil
	}
	m.ClusterID = n.applied.ClusterID
	if f, ok := n.applied.Frontend(addr); ok {
		m.Member, m.Role, m.Name = true, f.Role, f.Name
	}
	return m, nil
}

func (n *Node) onVote(ask voteRequest) (voteAnswer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted == nil || n.accepted.ClusterID != ask.ClusterID {
		return voteAnswer{Term: n.term}, nil
	}
	now := n.opt.Now()
	hearsMaster := n.role == master && n.majorityAnswers(now) ||
		n.leader != "" && now.Sub(n.heard) < n.opt.Timing.ElectionMin
	if hearsMaster || ask.Term < n.term || n.accepted.Newer(ask.StateTerm, ask.StateVersion) {
		return voteAnswer{Term: n.term}, nil
	}
	if ask.Poll {
		return voteAnswer{Term: n.term, Granted: ask.Term > n.term}, nil
	}
	if ask.Term > n.term {
		if n.role == master {
			n.resign()
		}
		n.term, n.voted = ask.Term, ""
	}
	if n.voted != "" && n.voted != ask.Candidate {
		return voteAnswer{Term: n.term}, nil
	}
	n.voted = ask.Candidate
	if err := n.persist(); err != nil {
		return voteAnswer{}, err
	}
	n.heard = now // who has just voted waits a full timeout before it stands itself
	return voteAnswer{Term: n.term, Granted: true}, nil
}

func (n *Node) onAppend(in appendRequest) (appendAnswer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted != nil && n.accepted.ClusterID != in.ClusterID {
		return appendAnswer{}, fmt.Errorf("cluster id %d is not mine: %d", in.ClusterID, n.accepted.ClusterID)
	}
	if in.Term < n.term {
		return appendAnswer{Term: n.term}, nil
	}
	if err := n.follow(in.Term, in.Leader); err != nil {
		return appendAnswer{}, err
	}
	if s := in.State; s != nil && (n.accepted == nil || s.Newer(n.accepted.Term, n.accepted.Version)) {
		previous := n.accepted
		n.accepted = s
		if err := n.persist(); err != nil {
			n.accepted = previous
			return appendAnswer{}, err
		}
	}
	out := appendAnswer{Term: n.term}
	if s := n.accepted; s != nil {
		out.HaveTerm, out.HaveVersion = s.Term, s.Version
		out.OK = s.Term == in.StateTerm && s.Version == in.StateVersion
		if s != n.applied && s.Term == in.Term && !s.Newer(in.CommitTerm, in.CommitVersion) {
			n.apply(s)
		}
	}
	if n.opt.Hear != nil && in.Told != nil {
		n.opt.Hear(in.Told)
	}
	if n.opt.Report != nil {
		out.Report = n.opt.Report()
	}
	return out, nil
}

// follow takes the sender as master of its term; the lock is held.
func (n *Node) follow(term uint64, leader string) error {
	if n.role == master {
		n.resign()
	}
	if term > n.term {
		n.term, n.voted = term, ""
		if err := n.persist(); err != nil {
			return err
		}
	}
	n.heard = n.opt.Now()
	if n.leader != leader {
		n.leader = leader
		n.notify()
	}
	return nil
}

// apply takes a committed state over for reading; the lock is held.
func (n *Node) apply(s *meta.State) {
	n.applied = s
	n.notify()
	if _, ok := s.Frontend(n.opt.Self); !ok {
		n.leave()
	}
}

func (n *Node) leave() {
	select {
	case <-n.removed:
	default:
		close(n.removed)
	}
}

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
	n.mu.Lock()
	if n.role != master || ctx.Err() != nil {
		n.mu.Unlock()
		return false
	}
	s, committed := n.accepted, n.applied
	in := appendRequest{
		Leader: n.opt.Self, Term: n.term, ClusterID: s.ClusterID, StateTerm: s.Term, StateVersion: s.Version,
	}
	if committed != nil {
		in.CommitTerm, in.CommitVersion = committed.Term, committed.Version
	}
	if p.term != s.Term || p.version != s.Version {
		in.State = s
	}
	f, isMember := s.Frontend(addr)
	n.mu.Unlock()
	if n.opt.Tell != nil {
		in.Told = n.opt.Tell()
	}
	sent := n.opt.Now()
	var out appendAnswer
	err := n.call(ctx, addr, "append", in, &out)
	n.note(p, sent, out, err)
	n.seeTerm(out.Term)
	if err == nil && isMember && !f.Joined && out.OK && n.beginJoin(p) {
		go n.join(ctx, addr, p)
	}
	if !isMember {
		return n.forget(addr, committed, s, err)
	}
	return true
}

// forget ends the talk with a dropped member once its drop is committed; one attempt has told it so.
func (n *Node) forget(addr string, committed, s *meta.State, err error) bool {
	if committed != s && err == nil {
		return true
	}
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
