package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var now = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

const pause = 10 * time.Second

func member(n int, ready, outdated bool) Member {
	return Member{Name: fmt.Sprintf("fe-%d", n), Ordinal: n, Ready: ready, Outdated: outdated}
}

func with(m Member, change func(*Member)) Member { change(&m); return m }

func leaving(m Member) Member { m.Leaving = true; return m }

func TestNext(t *testing.T) {
	for _, tc := range []struct {
		name    string
		members []Member
		size    int
		want    Choice
	}{
		{name: "no members, nothing to do", size: 3},
		{name: "all on the wanted revision, nothing to do", members: []Member{member(0, true, false), member(1, true, false)}, size: 2},
		{name: "nobody outdated, a missing member does not make a roll", members: []Member{member(0, true, false)}, size: 2},
		{name: "nobody outdated, a leaving member does not make a roll", members: []Member{leaving(member(0, true, false))}, size: 1},
		{name: "all outdated and ready, highest ordinal goes first", members: []Member{member(0, true, true), member(10, true, true), member(9, true, true)}, size: 3, want: Choice{Name: "fe-10"}},
		{name: "highest is done, next below goes", members: []Member{member(2, true, false), member(1, true, true), member(0, true, true)}, size: 3, want: Choice{Name: "fe-1"}},
		{name: "replaced member not ready yet, others stay", members: []Member{member(2, false, false), member(1, true, true)}, size: 2, want: Choice{Waiting: "fe-2 to become ready"}},
		{name: "member is leaving, others stay", members: []Member{leaving(member(2, true, true)), member(1, true, true)}, size: 2, want: Choice{Waiting: "fe-2 to be replaced"}},
		{name: "last outdated member is leaving, roll is not over", members: []Member{leaving(member(0, false, true)), member(1, true, false)}, size: 2, want: Choice{Waiting: "fe-0 to be replaced"}},
		{name: "member is missing, others stay", members: []Member{member(1, true, true), member(0, true, true)}, size: 3, want: Choice{Waiting: "missing Pods"}},
		{name: "outdated member that does not serve goes before ready ones", members: []Member{member(2, true, true), member(0, false, true)}, size: 2, want: Choice{Name: "fe-0"}},
		{name: "outdated broken member goes although another is not ready", members: []Member{member(2, false, false), member(0, false, true)}, size: 2, want: Choice{Name: "fe-0"}},
		{name: "outdated broken member blocks the creation of others, it goes", members: []Member{member(0, false, true)}, size: 3, want: Choice{Name: "fe-0"}},
		{name: "several broken, one at a time from the top", members: []Member{member(0, false, true), member(1, false, true)}, size: 2, want: Choice{Name: "fe-1"}},
		{name: "broken member waits while another is leaving", members: []Member{leaving(member(1, false, true)), member(0, false, true)}, size: 2, want: Choice{Waiting: "fe-1 to be replaced"}},
		{
			name: "replaced member cannot run, the roll has stopped at it", size: 3, want: Choice{Waiting: "fe-1 to become ready", Stopped: "fe-1"},
			members: []Member{member(2, false, false), with(member(1, false, false), func(m *Member) { m.Failed = true }), member(0, true, true)},
		},
		{
			name: "lower rank goes first, whatever its ordinal", size: 2, want: Choice{Name: "fe-0"},
			members: []Member{with(member(1, true, true), func(m *Member) { m.Rank = 2 }), member(0, true, true)},
		},
		{
			name: "system does not count on another, nobody goes", size: 2, want: Choice{Waiting: "fe-0 to be alive in the system"},
			members: []Member{with(member(1, true, true), func(m *Member) { m.Alive = Yes }), with(member(0, true, false), func(m *Member) { m.Alive = No })},
		},
		{
			name: "system does not count on one that is to go anyway, that one goes", size: 2, want: Choice{Name: "fe-0"},
			members: []Member{with(member(1, true, true), func(m *Member) { m.Alive = Yes }), with(member(0, true, true), func(m *Member) { m.Alive = No })},
		},
		{
			name: "system does not count on one of a later rank, nobody goes", size: 2, want: Choice{Waiting: "fe-0 to be alive in the system"},
			members: []Member{member(1, true, true), with(member(0, true, true), func(m *Member) { m.Rank, m.Alive = 1, No })},
		},
		{
			name: "system still speaks of the process that is gone, others stay", size: 2, want: Choice{Waiting: "fe-1 to be seen by the system since it was replaced"},
			members: []Member{with(member(1, true, false), func(m *Member) { m.Alive, m.Before, m.Started = Yes, now, now }), member(0, true, true)},
		},
		{
			name: "system has heard from the new process, the next goes", size: 2, want: Choice{Name: "fe-0"},
			members: []Member{with(member(1, true, false), func(m *Member) { m.Alive, m.Before, m.Started = Yes, now, now.Add(time.Second) }), member(0, true, true)},
		},
		{
			name: "first of a group is good for a short time only, the second waits", size: 3, want: Choice{Waiting: "fe-2 to be good for 10s", After: 7 * time.Second},
			members: []Member{with(member(2, true, false), func(m *Member) { m.Since = now.Add(-3 * time.Second) }), member(1, true, true), member(0, true, true)},
		},
		{
			name: "first of a group was good for long enough, the second goes", size: 3, want: Choice{Name: "fe-1"},
			members: []Member{with(member(2, true, false), func(m *Member) { m.Since = now.Add(-pause) }), member(1, true, true), member(0, true, true)},
		},
		{
			name: "two of a group were replaced, the third waits for no pause", size: 3, want: Choice{Name: "fe-0"},
			members: []Member{member(2, true, false), with(member(1, true, false), func(m *Member) { m.Since = now }), member(0, true, true)},
		},
		{
			name: "last of a group is good for a short time only, the next group waits", size: 3, want: Choice{Waiting: "fe-1 to be good for 10s", After: pause},
			members: []Member{member(2, true, false), with(member(1, true, false), func(m *Member) { m.Since = now }), with(member(0, true, true), func(m *Member) { m.Rank, m.Group = 1, "fe" })},
		},
		{
			name: "clock that is an hour ahead stops nobody", size: 2, want: Choice{Name: "fe-0"},
			members: []Member{with(member(1, true, false), func(m *Member) { m.Since = now.Add(time.Hour) }), member(0, true, true)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := slices.Clone(tc.members)
			r := Roll{Members: tc.members, Size: tc.size, Pause: pause, Now: now}
			if diff := cmp.Diff(tc.want, Next(r)); diff != "" {
				t.Errorf("Next() (-want +got):\n%s", diff)
			}
			if !slices.Equal(before, tc.members) {
				t.Errorf("Next() reordered its input: %v", tc.members)
			}
		})
	}
}

func TestNextKeepsThoseThatServeWhileAConditionDoesNotHold(t *testing.T) {
	r := Roll{Members: []Member{member(1, true, true), member(0, true, true)}, Size: 2, Closed: []string{"rain", "snow"}}
	if got := Next(r); got != (Choice{Waiting: "rain, and for snow"}) {
		t.Errorf("Next() = %+v", got)
	}
	r.Members[1].Ready = false
	if got := Next(r); got != (Choice{Name: "fe-0"}) {
		t.Errorf("with one that does not serve Next() = %+v", got)
	}
}

func TestNextKeepsToTheBudget(t *testing.T) {
	r := Roll{Size: 4, Budget: 2, Members: []Member{leaving(member(3, true, true)), member(2, true, true), member(1, true, true), member(0, true, true)}}
	if got := Next(r); got != (Choice{Name: "fe-2"}) {
		t.Errorf("one of two is away: %+v", got)
	}
	r.Members[1].Leaving = true
	if got := Next(r); got != (Choice{Waiting: "fe-3 to be replaced"}) {
		t.Errorf("two of two are away: %+v", got)
	}
}

func drawRoll(t *rapid.T) Roll {
	r := Roll{Now: now, Pause: pause, Budget: rapid.IntRange(0, 3).Draw(t, "budget")}
	for rank := range rapid.IntRange(1, 4).Draw(t, "ranks") {
		for n := range rapid.IntRange(1, 4).Draw(t, "members") {
			r.Size++
			if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
				continue
			}
			m := newMember(rank, n)
			m.Ready, m.Outdated = rapid.IntRange(0, 4).Draw(t, "unready") > 0, rapid.Bool().Draw(t, "outdated")
			m.Leaving = rapid.IntRange(0, 7).Draw(t, "leaving") == 0
			m.Alive = rapid.SampledFrom([]Answer{Unknown, Yes, Yes, Yes, No}).Draw(t, "alive")
			if rapid.IntRange(0, 4).Draw(t, "restarted") == 0 {
				m.Before = now
			}
			r.Members = append(r.Members, m)
		}
	}
	return r
}

func newMember(rank, n int) Member {
	return Member{Name: fmt.Sprintf("m-%d-%d", rank, n), Group: fmt.Sprint(rank / 2), Rank: rank, Ordinal: n}
}

func TestNextNeverTakesMoreThanTheBudgetAndKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoll(t)
		if rapid.IntRange(0, 3).Draw(t, "closed") == 0 {
			r.Closed = []string{"a condition"}
		}
		c := Next(r)
		if (c.Name != "") == (c.Waiting != "") && (c.Name != "" || slices.ContainsFunc(r.Members, func(m Member) bool { return m.Outdated })) {
			t.Fatalf("chose %q and waits for %q", c.Name, c.Waiting)
		}
		if c.Name == "" {
			return
		}
		i := slices.IndexFunc(r.Members, func(m Member) bool { return m.Name == c.Name })
		if i < 0 || !r.Members[i].Outdated || r.Members[i].Leaving {
			t.Fatalf("chose %q among %+v", c.Name, r.Members)
		}
		gone, away := 0, max(r.Size-len(r.Members), 0)
		for j, m := range r.Members {
			if m.Leaving {
				gone++
			}
			if j != i && !m.good() {
				away++
			}
			if r.Members[i].Ready && m.Outdated && !m.Leaving && m.Rank < r.Members[i].Rank {
				t.Fatalf("chose %s before %s", c.Name, m.Name)
			}
		}
		if gone >= max(r.Budget, 1) {
			t.Fatalf("chose %s while %d are going", c.Name, gone)
		}
		if r.Members[i].Ready && (away >= max(r.Budget, 1) || len(r.Closed) > 0) {
			t.Fatalf("chose %s, which serves, while %d are away and %v does not hold", c.Name, away, r.Closed)
		}
	})
}

// A roll ends with every member replaced, whatever the start, if what is
// replaced becomes ready and alive and what is missing or leaving comes back; and
// on the way no more than the budget of those that served are away.
func TestNextAlwaysFinishes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoll(t)
		size := map[[2]int]bool{}
		for rank := range 4 {
			for n := range 4 {
				size[[2]int{rank, n}] = slices.ContainsFunc(r.Members, func(m Member) bool { return m.Rank == rank && m.Ordinal == n })
			}
		}
		r.Size = len(r.Members) // what is missing at first is one that left at first
		inOrder := rapid.Bool().Draw(t, "members are started in order")
		for range 20 * (r.Size + 1) {
			if c := Next(r); c.Name != "" {
				i := slices.IndexFunc(r.Members, func(m Member) bool { return m.Name == c.Name })
				r.Members[i].Leaving = true
				continue
			}
			r.Now = r.Now.Add(4 * time.Second)
			r.Members = settle(r, size, inOrder)
		}
		for _, m := range r.Members {
			if m.Outdated || !m.good() {
				t.Fatalf("never finishes: %+v; %+v", r.Members, Next(r))
			}
		}
	})
}

// settle is one move of a world in which outdated members that do not serve
// never come up, up-to-date ones do, and missing ones are made again: in order,
// each when all below it are ready, or all at once. The system hears of each a move
// later.
func settle(r Roll, size map[[2]int]bool, inOrder bool) []Member {
	var out []Member
	for rank := range 4 {
		waits := false
		for n := range 4 {
			if !size[[2]int{rank, n}] {
				continue
			}
			i := slices.IndexFunc(r.Members, func(m Member) bool { return m.Rank == rank && m.Ordinal == n && !m.Leaving })
			switch {
			case i < 0 && inOrder && waits:
				continue
			case i < 0:
				m := newMember(rank, n)
				m.Before, m.Started, m.Alive = r.Now, r.Now, Yes
				out = append(out, m)
			default:
				out = append(out, goesOn(r.Members[i], r.Now))
			}
			waits = waits || !out[len(out)-1].Ready
		}
	}
	return out
}

func goesOn(m Member, now time.Time) Member {
	switch {
	case m.Ready:
		m.Alive, m.Started = Yes, now
	case !m.Outdated:
		m.Ready, m.Since = true, now
	}
	return m
}
