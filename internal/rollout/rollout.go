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

// Next chooses among the members of a workload of the wanted size. One at a
// time: nobody goes while a member is missing, leaving or not ready, except
// that an outdated member which does not serve anyway goes first (it may be
// unable to start until it is replaced). Otherwise the highest ordinal goes.
func Next(members []Member, size int) Choice {
	sorted := append([]Member(nil), members...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Ordinal > sorted[j].Ordinal })
	outdated, broken := "", ""
	for _, m := range sorted {
		switch {
		case m.Leaving:
			return Choice{Waiting: m.Name + " to be replaced"}
		case m.Outdated && !m.Ready && broken == "":
			broken = m.Name
		case m.Outdated && outdated == "":
			outdated = m.Name
		}
	}
	if broken == "" && outdated == "" {
		return Choice{}
	}
	for _, m := range sorted {
		if !m.Outdated && !m.Ready {
			return Choice{Waiting: m.Name + " to become ready"}
		}
	}
	if len(sorted) < size {
		return Choice{Waiting: "missing Pods"}
	}
	if broken != "" {
		return Choice{Name: broken}
	}
	return Choice{Name: outdated}
}
