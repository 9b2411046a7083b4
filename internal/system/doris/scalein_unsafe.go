package doris

import (
	"fmt"
	"strings"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// unsafe tells why members cannot be taken out as things are.
func (p planner) unsafe(s *scaling) string {
	for _, l := range s.leavers {
		if why := p.unsafeMember(s, l); why != "" {
			return why
		}
	}
	switch {
	case s.kind == dorisv1.ComponentFE:
		return p.unsafeFrontends(s)
	case s.policy == dorisv1.ScaleInDrop:
		return ""
	}
	return p.unsafeTablets(s)
}

// unsafeMember tells why one member cannot be taken out.
func (p planner) unsafeMember(s *scaling, l leaver) string {
	if l.unclear {
		return "the database has two members that may be " + l.name
	}
	if l.recorded || s.kind == dorisv1.ComponentFE {
		return ""
	}
	strangers := p.strangers()
	switch {
	case l.gone() && l.pod != nil && len(strangers) > 0:
		return fmt.Sprintf("the database does not know %s, unless it is one of %s", l.name, strings.Join(strangers, ", "))
	case l.row != nil && l.row.Decommissioned && !s.named(l):
		return l.name + " is being decommissioned by somebody else: wait until it is gone, or cancel that"
	}
	return ""
}

// named tells whether there is a record of a member, if for another policy.
func (s *scaling) named(l leaver) bool {
	r, has := s.records[l.name]
	return has && r.Member == l.address()
}

// unsafeTablets tells why the tablets of backends cannot be moved to those that stay.
func (p planner) unsafeTablets(s *scaling) string {
	if s.want == 0 && (s.kind == dorisv1.ComponentBE || p.dc.Spec.BeSpec == nil) {
		return "no backend would be left to move the tablets to"
	}
	for _, l := range s.stayers {
		switch {
		case l.row == nil:
			return l.name + ", which stays, is not registered in the database"
		case !l.row.Alive:
			return l.name + ", which stays, does not answer the master"
		case l.row.Decommissioned && !s.named(l):
			return l.name + ", which stays, is being decommissioned by somebody else"
		}
	}
	h := p.world.Database.Health
	if n := count(h.Unrecoverable); n > 0 {
		return fmt.Sprintf("%d tablets have no healthy copy left and could not be moved; repair or drop them first", n)
	}
	if n := count(h.ReplicaMissing) + count(h.VersionMissing); n > 0 {
		return fmt.Sprintf("%d tablets lack a healthy copy; they are repaired first", n)
	}
	return ""
}

func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
