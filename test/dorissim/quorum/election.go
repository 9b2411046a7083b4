package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
)

// Run takes part in elections and, as master, sends heartbeats, until the context ends.
func (n *Node) Run(ctx context.Context) {
	tick := time.NewTicker(n.opt.Timing.Heartbeat / 2)
	defer tick.Stop()
	asked := n.opt.Now()
	for {
		select {
		case <-ctx.Done():
			n.mu.Lock()
			n.resign()
			n.mu.Unlock()
			return
		case <-tick.C:
		}
		if n.due() {
			n.campaign(ctx)
		}
		if now := n.opt.Now(); n.lost() && now.Sub(asked) > n.opt.Timing.ElectionMax {
			asked = now
			n.askMembership(ctx)
		}
	}
}

// due tells whether it is time to stand for election. As master it checks instead that a majority still answers.
func (n *Node) due() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.opt.Now()
	if n.role == master {
		if !n.majorityAnswers(now) {
			n.opt.Log.Warn("the majority of the followers does not answer; no longer master", "term", n.term)
			n.resign()
		}
		return false
	}
	if n.isAlone() {
		return true // nobody else could be master
	}
	if now.Sub(n.heard) < n.timeout {
		return false
	}
	if n.leader != "" {
		n.leader = ""
		n.notify()
	}
	return n.isVoter()
}

func (n *Node) isAlone() bool {
	return n.isVoter() && len(n.accepted.Voters()) == 1
}

func (n *Node) isVoter() bool {
	if n.accepted == nil {
		return false
	}
	f, ok := n.accepted.Frontend(n.opt.Self)
	return ok && f.Joined && f.Role == meta.Follower
}

func (n *Node) majorityAnswers(now time.Time) bool {
	voters, have := n.accepted.Voters(), 0
	for _, addr := range voters {
		p := n.peers[addr]
		if addr == n.opt.Self || p != nil && now.Sub(p.acked) < n.opt.Timing.ElectionMax {
			have++
		}
	}
	// A new master has not had the time to be answered yet.
	return have > len(voters)/2 || now.Sub(n.heard) < n.opt.Timing.ElectionMax
}

// lost tells whether the node has state but no master.
func (n *Node) lost() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.accepted != nil && n.leader == ""
}

// resign ends mastership or the following of a master; the lock is held.
func (n *Node) resign() {
	if n.stepDown != nil {
		n.stepDown()
		n.stepDown = nil
	}
	if n.role == master {
		n.heard = n.opt.Now()
	}
	n.role, n.leader = follower, ""
	n.peers = map[string]*peer{}
	n.drawTimeout()
	n.notify()
}

// campaign stands for election: first a poll that changes nothing, so that a node that was cut off does not disturb
// the others when it comes back, then the election itself.
func (n *Node) campaign(ctx context.Context) {
	for _, poll := range []bool{true, false} {
		n.mu.Lock()
		if n.role == master || !n.isAlone() && n.opt.Now().Sub(n.heard) < n.timeout {
			n.mu.Unlock()
			return
		}
		ask := voteRequest{
			Poll: poll, Candidate: n.opt.Self, Term: n.term + 1, ClusterID: n.accepted.ClusterID,
			StateTerm: n.accepted.Term, StateVersion: n.accepted.Version,
		}
		voters := n.accepted.Voters()
		if !poll {
			n.term, n.voted = ask.Term, n.opt.Self
			if err := n.persist(); err != nil {
				n.opt.Log.Error("store vote", "error", err)
				n.mu.Unlock()
				return
			}
		}
		n.mu.Unlock()
		if n.countVotes(ctx, voters, ask) <= len(voters)/2 {
			n.mu.Lock()
			n.heard = n.opt.Now()
			n.drawTimeout()
			n.mu.Unlock()
			return
		}
		if !poll {
			n.lead(ctx, ask.Term)
		}
	}
}

func (n *Node) countVotes(ctx context.Context, voters []string, ask voteRequest) int {
	granted := make([]bool, len(voters))
	terms := make([]uint64, len(voters))
	var wg sync.WaitGroup
	for i, addr := range voters {
		if addr == n.opt.Self {
			granted[i] = true
			continue
		}
		wg.Go(func() {
			var answer voteAnswer
			if err := n.call(ctx, addr, "vote", ask, &answer); err == nil {
				granted[i], terms[i] = answer.Granted, answer.Term
			}
		})
	}
	wg.Wait()
	count := 0
	for i := range voters {
		if granted[i] {
			count++
		}
		n.seeTerm(terms[i])
	}
	return count
}

// seeTerm follows a later term.
func (n *Node) seeTerm(term uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if term <= n.term {
		return
	}
	n.term, n.voted = term, ""
	if err := n.persist(); err != nil {
		n.opt.Log.Error("store term", "error", err)
	}
	if n.role == master {
		n.resign()
	}
}

// lead begins mastership of a term that was won: the state is stamped with the term, which also commits what earlier
// masters left behind.
func (n *Node) lead(ctx context.Context, term uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.term != term || n.role == master {
		return
	}
	n.role, n.leader, n.heard = master, n.opt.Self, n.opt.Now()
	n.peers = map[string]*peer{}
	leading, cancel := context.WithCancel(ctx)
	n.stepDown = cancel
	n.leading = leading
	n.opt.Log.Info("elected master", "term", term, "version", n.accepted.Version+1)
	if err := n.accept(n.accepted.Clone()); err != nil {
		n.opt.Log.Error("begin mastership", "error", err)
		n.resign()
		return
	}
	n.notify()
}
