package rollout

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNext(t *testing.T) {
	member := func(n int, ready, outdated bool) Member {
		return Member{Name: fmt.Sprintf("fe-%d", n), Ordinal: n, Ready: ready, Outdated: outdated}
	}
	leaving := func(m Member) Member { m.Leaving = true; return m }
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
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := slices.Clone(tc.members)
			if got := Next(tc.members, tc.size); got != tc.want {
				t.Errorf("Next() = %+v, want %+v", got, tc.want)
			}
			if !slices.Equal(before, tc.members) {
				t.Errorf("Next() reordered its input: %v", tc.members)
			}
		})
	}
}

func drawMembers(t *rapid.T) ([]Member, int) {
	size := rapid.IntRange(1, 7).Draw(t, "size")
	var members []Member
	for n := range size {
		if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
			continue
		}
		members = append(members, Member{
			Name: fmt.Sprintf("m-%d", n), Ordinal: n,
			Ready:    rapid.Bool().Draw(t, "ready"),
			Outdated: rapid.Bool().Draw(t, "outdated"),
			Leaving:  rapid.IntRange(0, 5).Draw(t, "leaving") == 0,
		})
	}
	return members, size
}

func TestNextNeverTakesAServingMemberWhileAnotherIsDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, size := drawMembers(t)
		c := Next(members, size)
		if c.Name != "" && c.Waiting != "" {
			t.Fatalf("chose %s and waits for %s", c.Name, c.Waiting)
		}
		if c.Name == "" {
			return
		}
		i := slices.IndexFunc(members, func(m Member) bool { return m.Name == c.Name })
		if i < 0 || !members[i].Outdated || members[i].Leaving {
			t.Fatalf("chose %q among %+v", c.Name, members)
		}
		broken := !members[i].Ready
		for j, m := range members {
			if m.Leaving {
				t.Fatalf("chose %s while %s is leaving", c.Name, m.Name)
			}
			if j != i && !m.Ready && !broken {
				t.Fatalf("chose %s, which serves, while %s does not", c.Name, m.Name)
			}
		}
		if len(members) < size && !broken {
			t.Fatalf("chose %s, which serves, while %d of %d are there", c.Name, len(members), size)
		}
	})
}

// A roll ends with every member replaced, whatever the start, if what is
// replaced becomes ready and what is missing or leaving comes back.
func TestNextAlwaysFinishes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, size := drawMembers(t)
		inOrder := rapid.Bool().Draw(t, "members are started in order")
		for range 10 * size {
			if c := Next(members, size); c.Name != "" {
				i := slices.IndexFunc(members, func(m Member) bool { return m.Name == c.Name })
				members[i].Leaving = true
				continue
			}
			members = settle(members, size, inOrder)
		}
		for _, m := range members {
			if m.Outdated || !m.Ready || m.Leaving {
				t.Fatalf("never finishes: %+v", members)
			}
		}
		if len(members) != size {
			t.Fatalf("%d members of %d", len(members), size)
		}
	})
}

// settle is one move of a world in which outdated members that do not serve
// never come up, up-to-date ones do, and missing ones are made again: in order,
// each when all below it are ready, or all at once.
func settle(members []Member, size int, inOrder bool) []Member {
	byOrdinal := map[int]Member{}
	for _, m := range members {
		if !m.Leaving {
			byOrdinal[m.Ordinal] = m
		}
	}
	var out []Member
	for n := range size {
		m, ok := byOrdinal[n]
		switch {
		case !ok && inOrder && slices.ContainsFunc(out, func(m Member) bool { return !m.Ready }):
			continue
		case !ok:
			m = Member{Name: fmt.Sprintf("m-%d", n), Ordinal: n}
		case !m.Outdated:
			m.Ready = true
		}
		out = append(out, m)
	}
	return out
}
