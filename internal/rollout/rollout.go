// Package rollout chooses which Pod goes next when the members of a workload
// have to be replaced. It is arithmetic: facts in, choice out.
package rollout

import "sort"

// Member is what a choice needs to know of one Pod.
type Member struct {
	Name    string
	Ordinal int
	// Ready tells whether the Pod serves now; Outdated whether it runs another
	// revision than the wanted one; Leaving whether it is being deleted.
	Ready, Outdated, Leaving bool
}

// Choice is the Pod to replace now, or why none may be.
type Choice struct {
	// Name of the Pod; empty when none goes now.
	Name string
	// Waiting names what keeps the roll from going on; empty when the roll is
	// over or a Pod was chosen.
	Waiting string
}

// Next chooses among the members of a workload of the wanted size, one at a
// time:
//
//  1. Nobody goes while somebody is leaving.
//  2. An outdated member that does not serve goes before all others, whatever
//     the state of those: it may be unable to start until it is replaced, and a
//     controller that starts members in order makes no other before it.
//  3. Nobody else goes while a member is missing or not ready.
//  4. The highest ordinal goes first.
func Next(members []Member, size int) Choice {
	sorted := append([]Member(nil), members...)
	sort.Slice(sorted, func(i, j int) bool {
		if sorted[i].Ordinal != sorted[j].Ordinal {
			return sorted[i].Ordinal > sorted[j].Ordinal
		}
		return sorted[i].Name > sorted[j].Name
	})
	leaving := first(sorted, func(m Member) bool { return m.Leaving })
	broken := first(sorted, func(m Member) bool { return m.Outdated && !m.Ready })
	outdated := first(sorted, func(m Member) bool { return m.Outdated })
	unready := first(sorted, func(m Member) bool { return !m.Outdated && !m.Ready })
	switch {
	case outdated == "":
		return Choice{}
	case leaving != "":
		return Choice{Waiting: leaving + " to be replaced"}
	case broken != "":
		return Choice{Name: broken}
	case unready != "":
		return Choice{Waiting: unready + " to become ready"}
	case len(sorted) < size:
		return Choice{Waiting: "missing Pods"}
	}
	return Choice{Name: outdated}
}

// first returns the name of the first member that is so; empty when none is.
func first(members []Member, is func(Member) bool) string {
	for _, m := range members {
		if is(m) {
			return m.Name
		}
	}
	return ""
}
