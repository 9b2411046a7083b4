package meta

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newState() *State {
	return New(7, Frontend{Name: "one", Host: "h0", EditLogPort: 9010}, "")
}

func TestOnlyJoinedFollowersVote(t *testing.T) {
	s := newState()
	for _, err := range []error{s.AddFrontend(Follower, "h1:9010"), s.AddFrontend(Observer, "h2:9010"), s.Join("h2:9010")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"h0:9010"}, s.Voters()); diff != "" {
		t.Errorf("voters differ (-want +got):\n%s", diff)
	}
	if err := s.Join("h1:9010"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"h0:9010", "h1:9010"}, s.Voters()); diff != "" {
		t.Errorf("voters differ (-want +got):\n%s", diff)
	}
}

func TestADroppedBackendLeavesNoReplica(t *testing.T) {
	s := newState()
	for _, addr := range []string{"b0:9050", "b1:9050"} {
		if err := s.AddBackend(addr, nil); err != nil {
			t.Fatal(err)
		}
	}
	tablet := &Tablet{ID: s.ID(), Version: 1, Replicas: []int64{s.Backends[0].ID, s.Backends[1].ID}}
	s.Databases["d"] = &Database{Name: "d", Tables: map[string]*Table{"t": {Name: "t", ReplicationNum: 2, Tablets: []*Tablet{tablet}}}}
	if err := s.Decommission("b0:9050", true); err == nil {
		t.Error("draining was accepted although the replicas would have no place")
	}
	left := s.Backends[1].ID
	if err := s.DropBackend("b0:9050"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{left}, tablet.Replicas); diff != "" {
		t.Errorf("replicas differ (-want +got):\n%s", diff)
	}
}

// TestCloneIsDeep changes a copy at random and finds the original as it was.
func TestCloneIsDeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState()
		change(t, s, rapid.IntRange(0, 20).Draw(t, "before"))
		before, c := s.Clone(), s.Clone()
		change(t, c, rapid.IntRange(0, 20).Draw(t, "after"))
		if diff := cmp.Diff(before, s); diff != "" {
			t.Fatalf("the original changed:\n%s", diff)
		}
	})
}

func change(t *rapid.T, s *State, n int) {
	for range n {
		addr := rapid.SampledFrom([]string{"a:1", "b:2", "c:3"}).Draw(t, "addr")
		_ = rapid.SampledFrom([]func() error{
			func() error { return s.AddFrontend(Follower, addr) },
			func() error { return s.Join(addr) },
			func() error { return s.DropFrontend(Follower, addr, "h0:9010") },
			func() error { return s.AddBackend(addr, map[string]string{"location": "x"}) },
			func() error {
				return s.ModifyBackend(addr, map[string]string{"tag.location": "y", "disable_query": "true"})
			},
			func() error { return s.DropBackend(addr) },
			func() error { return s.CreateUser(addr, "", false) },
			func() error { return s.Grant("root", []string{"Select_priv"}) },
		}).Draw(t, "change")()
	}
}

func TestSplitAddr(t *testing.T) {
	for addr, valid := range map[string]bool{
		"h:1": true, "a.b.c:65535": true, "h": false, ":1": false, "h:0": false, "h:65536": false, "h:x": false, "": false,
	} {
		host, port, err := SplitAddr(addr)
		if (err == nil) != valid {
			t.Errorf("%q: %v", addr, err)
		}
		if err == nil && Addr(host, port) != addr {
			t.Errorf("%q became %q", addr, Addr(host, port))
		}
	}
}
