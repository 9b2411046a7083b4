package quorum

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

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
	if n.hearsMaster() || ask.Term < n.term || n.accepted.Newer(ask.StateTerm, ask.StateVersion) {
		return voteAnswer{Term: n.term}, nil
	}
	if ask.Poll {
		return voteAnswer{Term: n.term, Granted: ask.Term > n.term}, nil
	}
	return n.vote(ask)
}

// hearsMaster tells whether there is no reason for an election; the lock is held.
func (n *Node) hearsMaster() bool {
	now := n.opt.Now()
	if n.role == master {
		return n.majorityAnswers(now)
	}
	return n.leader != "" && now.Sub(n.heard) < n.opt.Timing.ElectionMin
}

// vote gives this term's vote, once; the lock is held.
func (n *Node) vote(ask voteRequest) (voteAnswer, error) {
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
	n.heard = n.opt.Now() // who has just voted waits a full timeout before it stands itself
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
	if err := n.take(in.State); err != nil {
		return appendAnswer{}, err
	}
	out := appendAnswer{Term: n.term}
	if s := n.accepted; s != nil {
		out.HaveTerm, out.HaveVersion = s.Term, s.Version
		out.OK = s.Term == in.StateTerm && s.Version == in.StateVersion
		if s != n.applied && s.Term == in.Term && !s.Newer(in.CommitTerm, in.CommitVersion) {
			n.apply(s)
		}
	}
	n.exchange(in, &out)
	return out, nil
}

// exchange hears what the master tells and reports about this node; the lock is held.
func (n *Node) exchange(in appendRequest, out *appendAnswer) {
	if n.opt.Hear != nil && in.Told != nil {
		n.opt.Hear(in.Told)
	}
	if n.opt.Report != nil {
		out.Report = n.opt.Report()
	}
}

// take stores a state that is later than the present one; the lock is held.
func (n *Node) take(s *meta.State) error {
	if s == nil || n.accepted != nil && !s.Newer(n.accepted.Term, n.accepted.Version) {
		return nil
	}
	previous := n.accepted
	n.accepted = s
	if err := n.persist(); err != nil {
		n.accepted = previous
		return err
	}
	return nil
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
