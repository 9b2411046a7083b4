// Package rollout chooses which Pod goes next when the members of a system have
// to be replaced. It is arithmetic: facts in, choice out. It knows no system: who
// goes before whom is a number, and what a system says of its members is a few
// named facts.
package rollout

import (
	"slices"
	"strings"
	"time"
)

// Answer is what a system says; nobody may have asked it.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// Member is what a choice needs to know of one Pod.
type Member struct {
	Name string
	// Group is the component: its first Pod goes alone and is watched for a while
	// before the next goes.
	Group string
	// Rank orders kinds of members: the lowest goes first. Within a rank the highest
	// Ordinal goes first.
	Rank, Ordinal int
	// Ready tells whether the Pod serves now; Outdated whether it runs another
	// revision than the wanted one; Leaving whether it is being deleted; Failed
	// whether it cannot run as it is.
	Ready, Outdated, Leaving, Failed bool
	// Alive is whether the system itself counts on the member.
	Alive Answer
	// Before is when the process started that was replaced, as the system told it,
	// and Started when the one started that the system knows of now. A system that
	// hears from its members now and then says for a while that one is alive which is
	// not there any more. Zero where nobody knows.
	Before, Started time.Time
	// Since is when the Pod became ready; zero where nobody knows.
	Since time.Time
}

// Roll is a system whose members are replaced.
type Roll struct {
	Members []Member
	// Size is how many members there shall be.
	Size int
	// Budget is how many may be away at the same time; zero means one.
	Budget int
	// Closed are conditions of the whole system that do not hold: while there is one,
	// nobody goes who serves.
	Closed []string
	// Pause is how long the first replaced member of a group has to be good before
	// the next one goes, and all that were replaced before another group begins.
	Pause time.Duration
	Now   time.Time
}

// Choice is the Pod to replace now, or why none may be.
type Choice struct {
	// Name of the Pod; empty when none goes now.
	Name string
	// Waiting names what keeps the roll from going on; empty when the roll is
	// over or a Pod was chosen.
	Waiting string
	// Stopped names the member that cannot run, where the roll waits for that one.
	Stopped string
	// After is when to look again, where it is only time that has to pass.
	After time.Duration
}

// Next chooses:
//
//  1. No more are leaving than the budget allows.
//  2. An outdated member that does not serve goes before all others, whatever
//     the state of those: it may be unable to start until it is replaced, and a
//     controller that starts members in order makes no other before it.
//  3. Nobody else goes while as many others are away as the budget allows: missing,
//     not ready, or not alive for the system, or alive as the process only that was
//     replaced.
//  4. Nobody else goes while a condition of the system does not hold.
//  5. The lowest rank goes first, of it those that are not alive anyway, then the
//     highest ordinal.
//  6. The first of a group is watched for a while before the second goes.
func Next(r Roll) Choice {
	members, budget := InOrder(r.Members), max(r.Budget, 1)
	if !slices.ContainsFunc(members, func(m Member) bool { return m.Outdated }) {
		return Choice{}
	}
	leaving := filter(members, func(m Member) bool { return m.Leaving })
	if len(leaving) >= budget {
		return Choice{Waiting: leaving[0].Name + " to be replaced"}
	}
	going := filter(members, func(m Member) bool { return m.Outdated && !m.Leaving })
	if broken := filter(going, func(m Member) bool { return !m.Ready }); len(broken) > 0 {
		return Choice{Name: broken[0].Name}
	}
	if len(going) == 0 {
		return Choice{Waiting: leaving[0].Name + " to be replaced"}
	}
	next := going[0]
	if dead := filter(going, func(m Member) bool { return m.Rank == next.Rank && !m.good() }); len(dead) > 0 {
		next = dead[0]
	}
	if wait, waits := r.budget(members, next, budget); waits {
		return wait
	}
	if len(r.Closed) > 0 {
		return Choice{Waiting: strings.Join(r.Closed, ", and for ")}
	}
	if wait, waits := r.pause(members, next); waits {
		return wait
	}
	return Choice{Name: next.Name}
}

// budget tells whether too many others are away for a member to go.
func (r Roll) budget(members []Member, next Member, budget int) (Choice, bool) {
	away := filter(members, func(m Member) bool { return m.Name != next.Name && !m.good() })
	missing := max(r.Size-len(members), 0)
	if len(away)+missing < budget {
		return Choice{}, false
	}
	// What came up badly is said before what is on its way, and that before the rest.
	slices.SortStableFunc(away, func(a, b Member) int { return a.trouble() - b.trouble() })
	if len(away) == 0 {
		return Choice{Waiting: "missing Pods"}, true
	}
	c := Choice{Waiting: away[0].Name + away[0].Lacks()}
	if away[0].Failed && !away[0].Leaving {
		c.Stopped = away[0].Name
	}
	return c, true
}

// pause tells whether those that were replaced have to be watched still.
func (r Roll) pause(members []Member, next Member) (Choice, bool) {
	done := filter(members, func(m Member) bool { return !m.Outdated })
	if len(filter(done, func(m Member) bool { return m.Group == next.Group })) > 1 {
		return Choice{}, false
	}
	var c Choice
	for _, m := range done {
		if m.Since.IsZero() || m.Since.Sub(r.Now) > r.Pause { // a clock that is wrong by so much stops nobody
			continue
		}
		if left := m.Since.Add(r.Pause).Sub(r.Now); left > c.After {
			c = Choice{Waiting: m.Name + " to be good for " + r.Pause.String(), After: left}
		}
	}
	return c, c.After > 0
}

// good tells whether a member does its work, as far as anybody knows.
func (m Member) good() bool { return m.Lacks() == "" }

// Lacks says what a member does not do, to be read behind its name; empty when it
// does its work.
func (m Member) Lacks() string {
	switch {
	case m.Leaving:
		return " to be replaced"
	case !m.Ready:
		return " to become ready"
	case m.Alive == No:
		return " to be alive in the system"
	case !m.Before.IsZero() && !m.Started.After(m.Before):
		return " to be seen by the system since it was replaced"
	}
	return ""
}

// trouble orders members that are away by how much a person should know of it.
func (m Member) trouble() int {
	switch {
	case m.Failed:
		return 0
	case m.Leaving, !m.Ready:
		return 1
	}
	return 2
}

// InOrder returns the members in the order in which they go when all is well.
func InOrder(members []Member) []Member {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int {
		switch {
		case a.Rank != b.Rank:
			return a.Rank - b.Rank
		case a.Ordinal != b.Ordinal:
			return b.Ordinal - a.Ordinal
		}
		return strings.Compare(b.Name, a.Name)
	})
	return sorted
}

func filter(members []Member, is func(Member) bool) []Member {
	var out []Member
	for _, m := range members {
		if is(m) {
			out = append(out, m)
		}
	}
	return out
}
