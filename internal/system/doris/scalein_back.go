package doris

import (
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// staying lets members stay that were on their way out: only what our record names
// is undone.
func (p planner) staying(s *scaling) {
	for _, l := range s.stayers {
		record, was := s.records[l.name]
		switch {
		case !was:
			continue
		case !l.gone() && l.address() != record.Member:
			delete(s.records, l.name) // it is somebody else by now
			continue
		case l.row != nil && l.row.Decommissioned:
			p.comesBack(s, l, changeMember{change: client.CancelDecommission, member: record.node()}, "wanted again: its tablets stay")
			continue
		case !l.gone() || record.Member == "":
			delete(s.records, l.name)
			continue
		case s.kind == dorisv1.ComponentFE:
			p.frontendComesBack(s, l)
			continue
		case l.pod == nil || !ready(l.pod):
			p.waits(s, meta.ReasonProgressing, l.name+" is made a member again when it is ready")
			continue
		}
		p.comesBack(s, l, changeMember{change: client.AddBackend, member: record.node()}, "wanted again: it is made a member again")
	}
}

func (p planner) comesBack(s *scaling, l leaver, o changeMember, message string) {
	if refused := p.ask(l, o, message); refused != "" {
		p.waits(s, meta.ReasonScaleInRefused, l.name+" cannot stay: "+refused)
		return
	}
	p.waits(s, meta.ReasonProgressing, l.name+": "+message)
}

// departed sees to members whose Pods are gone: what remains in the database of them
// by our own doing is taken away, and then they are forgotten.
func (p planner) departed(s *scaling) {
	for _, name := range sortedKeys(s.records) {
		n := ordinalOf(name)
		if n < int(s.has) {
			continue
		}
		l := p.leaverOf(s.kind, s.set, n)
		if l.pod != nil {
			continue // it is going, and its record with it
		}
		if l.row != nil && l.address() == l.record.Member && drained(l.row) {
			p.ask(l, changeMember{change: client.ForceDropBackend, member: l.record.node(), drained: true}, "its Pod is gone, and it holds no tablet")
			continue
		}
		if s.kind == dorisv1.ComponentFE && p.joinedAnew(s, l) {
			continue
		}
		delete(s.records, name)
	}
}

// joinedAnew tells whether a frontend whose Pod is gone is still to be taken out: it may
// have been started again, and have joined anew, right before its Pod went. It is not
// forgotten before the database was asked after that.
func (p planner) joinedAnew(s *scaling, l leaver) bool {
	switch f := l.frontend; {
	case f == nil && p.world.Database.Pods == p.frontendPods():
		return false
	case f == nil:
		p.waits(s, meta.ReasonMembersLeaving, "the database to be asked whether "+l.name+" joined again before its Pod went")
	case l.address() != l.record.Member, f.IsMaster:
		return false // somebody else by now, or not ours to move any more: it is named
	case f.Alive:
		p.waits(s, meta.ReasonMembersLeaving, l.name+" joined again before its Pod went, and is taken out when it answers no more")
	case votes(f):
		p.leave.settling = true
		p.ask(l, changeMember{change: client.DropFollower, member: l.record.node(), followers: int(electionNumberOf(p.dc.Spec.FeSpec))}, "joined again before its Pod went, which is gone")
	default:
		p.ask(l, changeMember{change: client.DropObserver, member: l.record.node()}, "joined again before its Pod went, which is gone")
	}
	return true
}
