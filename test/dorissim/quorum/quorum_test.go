package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
)

// network carries questions between nodes and can be cut between any two of them.
type network struct {
	mu   sync.Mutex
	cuts map[[2]string]bool
}

func (n *network) cut(a, b string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[[2]string{a, b}], n.cuts[[2]string{b, a}] = on, on
}

func (n *network) open(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.cuts[[2]string{a, b}]
}

// side is one node's end of the network. An answer can be lost as well as a question.
type side struct {
	net  *network
	self string
}

var errCut = errors.New("the network is cut")

func (s side) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.net.open(s.self, r.URL.Host) {
		return nil, errCut
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && !s.net.open(s.self, r.URL.Host) {
		_ = resp.Body.Close()
		return nil, errCut
	}
	return resp, err
}

type group struct {
	t     *testing.T
	net   *network
	addrs []string
	dirs  []string
	nodes []*Node
	stops []func()
}

// newGroup starts n followers that all know each other.
func newGroup(t *testing.T, n int) *group {
	t.Helper()
	g := &group{t: t, net: &network{cuts: map[[2]string]bool{}}, nodes: make([]*Node, n), stops: make([]func(), n)}
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		g.addrs, g.dirs = append(g.addrs, l.Addr().String()), append(g.dirs, t.TempDir())
		must(t, l.Close())
	}
	for i := range n {
		g.start(i)
	}
	t.Cleanup(func() {
		for i := range g.nodes {
			g.stop(i)
		}
	})
	return g
}

func (g *group) start(i int) {
	node, err := Open(Options{
		Self: g.addrs[i], Dir: g.dirs[i], Now: time.Now, Random: rand.Float64, Transport: side{g.net, g.addrs[i]},
		Log:    slog.New(slog.DiscardHandler),
		Timing: Timing{Heartbeat: 30 * time.Millisecond, ElectionMin: 150 * time.Millisecond, ElectionMax: 300 * time.Millisecond, Commit: time.Second},
	})
	must(g.t, err)
	if node.View() == nil {
		must(g.t, node.Bootstrap(g.first()))
	}
	l, err := net.Listen("tcp", g.addrs[i])
	must(g.t, err)
	server := &http.Server{Handler: node.Handler()}
	go func() { _ = server.Serve(l) }()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		node.Run(ctx)
	}()
	g.nodes[i] = node
	g.stops[i] = func() {
		cancel()
		_ = server.Close()
		<-done
	}
}

func (g *group) stop(i int) {
	if g.stops[i] != nil {
		g.stops[i]()
		g.stops[i] = nil
	}
}

// first is the state that all members begin with.
func (g *group) first() *meta.State {
	s := meta.New(1, meta.Frontend{Name: "x", Host: "x", EditLogPort: 1}, "")
	s.Frontends = nil
	for _, addr := range g.addrs {
		host, port, err := meta.SplitAddr(addr)
		must(g.t, err)
		s.Frontends = append(s.Frontends, meta.Frontend{Name: addr, Host: host, EditLogPort: port, Role: meta.Follower, Joined: true})
	}
	return s
}

// TestNothingAcknowledgedIsLost disturbs a group at random (cut networks, crashes) while clients write through
// whichever node takes it. In the end every acknowledged write is in the state of every node, and no term has had two
// masters.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	g := newGroup(t, 3)
	masters := map[uint64]string{}
	g.awaitMaster(-1)
	var acknowledged []string
	for i := range 80 {
		switch {
		case i%12 == 11: // now and then all is well again, so that something is written at all
			g.heal()
			g.awaitMaster(-1)
		case i%3 == 0:
			disturb(g, random)
		}
		name := fmt.Sprintf("db%d", i)
		for k, node := range g.nodes {
			if g.stops[k] == nil {
				continue
			}
			if s := node.Status(); s.IsMaster {
				if other, ok := masters[s.Term]; ok && other != g.addrs[k] {
					t.Fatalf("term %d has two masters: %s and %s", s.Term, other, g.addrs[k])
				}
				masters[s.Term] = g.addrs[k]
			}
			if write(t.Context(), node, name) == nil {
				acknowledged = append(acknowledged, name)
				break
			}
		}
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // lets elections happen at odd moments
	}
	g.heal()
	if len(acknowledged) == 0 {
		t.Fatal("no write was acknowledged at all")
	}
	t.Logf("%d of 80 writes were acknowledged in %d terms", len(acknowledged), len(masters))
	for i, node := range g.nodes {
		await(t, fmt.Sprintf("node %d has every acknowledged write", i), func() bool {
			if !node.Status().Ready {
				return false
			}
			for _, name := range acknowledged {
				if node.View().Databases[name] == nil {
					return false
				}
			}
			return true
		})
	}
}

func (g *group) heal() {
	for i := range g.nodes {
		for j := range g.nodes {
			g.net.cut(g.addrs[i], g.addrs[j], false)
		}
		if g.stops[i] == nil {
			g.start(i)
		}
	}
}

func write(ctx context.Context, n *Node, name string) error {
	_, err := n.Propose(ctx, func(s *meta.State) error {
		s.Databases[name] = &meta.Database{Name: name}
		return nil
	})
	return err
}

func disturb(g *group, random *rand.Rand) {
	a, b := random.IntN(len(g.nodes)), random.IntN(len(g.nodes))
	switch random.IntN(6) {
	case 4, 5: // a master that is cut off goes on for a while
		for i, n := range g.nodes {
			if g.stops[i] != nil && n.Status().IsMaster {
				for j := range g.nodes {
					g.net.cut(g.addrs[i], g.addrs[j], i != j)
				}
			}
		}
	case 0, 1:
		if a != b {
			g.net.cut(g.addrs[a], g.addrs[b], random.IntN(2) == 0)
		}
	case 2:
		if g.stops[a] != nil {
			g.stop(a)
		} else {
			g.start(a)
		}
	case 3: // a master is the most interesting one to lose
		for i, n := range g.nodes {
			if g.stops[i] != nil && n.Status().IsMaster {
				g.stop(i)
			}
		}
	}
}

func TestACutOffMasterStepsDown(t *testing.T) {
	g := newGroup(t, 3)
	old := g.awaitMaster(-1)
	for i := range g.addrs {
		g.net.cut(g.addrs[old], g.addrs[i], i != old)
	}
	now := g.awaitMaster(old)
	must(t, write(t.Context(), g.nodes[now], "after"))
	await(t, "the old master steps down", func() bool { return !g.nodes[old].Status().Ready })
	if err := write(t.Context(), g.nodes[old], "lost"); err == nil {
		t.Error("a cut-off node acknowledged a write")
	}
	term := g.nodes[now].Status().Term
	for i := range g.addrs {
		g.net.cut(g.addrs[old], g.addrs[i], false)
	}
	await(t, "it follows again", func() bool {
		return g.nodes[old].Status().Master == g.addrs[now] && g.nodes[old].View().Databases["after"] != nil
	})
	if got := g.nodes[now].Status().Term; got != term {
		t.Errorf("its return made an election: term %d after %d", got, term)
	}
}

func (g *group) awaitMaster(not int) int {
	found := -1
	await(g.t, "a master", func() bool {
		for i, n := range g.nodes {
			if i != not && g.stops[i] != nil && n.Status().IsMaster && n.Status().Ready {
				found = i
			}
		}
		return found >= 0
	})
	return found
}

func TestRecoverMakesTheOnlyMember(t *testing.T) {
	g := newGroup(t, 3)
	must(t, write(t.Context(), g.nodes[g.awaitMaster(-1)], "kept"))
	await(t, "the first node has it", func() bool { return g.nodes[0].View().Databases["kept"] != nil })
	for i := range g.nodes {
		g.stop(i)
	}
	node, err := Open(Options{Self: g.addrs[0], Dir: g.dirs[0], Now: time.Now, Random: rand.Float64, Log: slog.Default()})
	must(t, err)
	must(t, node.Recover())
	g.start(0)
	if got := g.awaitMaster(-1); got != 0 || len(g.nodes[0].View().Frontends) != 1 || g.nodes[0].View().Databases["kept"] == nil {
		t.Errorf("master %d, members %v", got, g.nodes[0].View().Frontends)
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
