package doris

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// Followers elect the master, so they leave in another way than observers do: only
// after a person has agreed to which ones go, one after the other, each while all
// that stay answer. None goes as master: its Pod is replaced first, as often as it
// takes until one that stays is master.

// mostMoves bounds how often the Pod of a leaving frontend is replaced to have another
// one as master. Who is elected is not ours to say.
const mostMoves = 5

// votes tells whether a frontend counts for the majority that elects the master.
func votes(f *client.Frontend) bool { return f.Role != "OBSERVER" }

// voter tells whether a member is a follower, as the database says or said last.
func (p planner) voter(l leaver) bool {
	if db := p.world.Database; db != nil && db.Known {
		return l.frontend != nil && votes(l.frontend)
	}
	now := p.dc.Status.FeStatus
	return l.frontend == nil && now != nil && slices.Contains(now.FollowerInstances, l.name)
}

// followersOf are the Pods of the frontends that vote.
func (p planner) followersOf(set *appsv1.StatefulSet, before *dorisv1.ComponentStatus) []string {
	if db := p.world.Database; db == nil || !db.Known {
		if before == nil {
			return nil
		}
		return before.FollowerInstances
	}
	var out []string
	for n := range int(*set.Spec.Replicas) {
		if l := p.leaverOf(dorisv1.ComponentFE, set, n); l.frontend != nil && votes(l.frontend) {
			out = append(out, l.name)
		}
	}
	return out
}

// masterOf is the Pod of the frontend that is the master.
func (p planner) masterOf(set *appsv1.StatefulSet, before *dorisv1.ComponentStatus) string {
	if db := p.world.Database; db == nil || !db.Known {
		if before == nil {
			return ""
		}
		return before.MasterInstance
	}
	for n := range int(*set.Spec.Replicas) {
		if l := p.leaverOf(dorisv1.ComponentFE, set, n); l.frontend != nil && l.frontend.IsMaster {
			return l.name
		}
	}
	return ""
}

// voters are those of the members that vote.
func (p planner) voters(kind dorisv1.ComponentType, list []leaver) []leaver {
	if kind != dorisv1.ComponentFE {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(l leaver) bool { return !p.voter(l) })
}

// awaitsConsent tells whether nothing becomes of a smaller number of members before a
// person agrees: some of them vote, or are to be dropped with what they hold.
func (p planner) awaitsConsent(kind dorisv1.ComponentType, set *appsv1.StatefulSet) bool {
	if kind != dorisv1.ComponentFE {
		return p.holdsData(kind) && p.scaleInPolicy(kind) == dorisv1.ScaleInDrop
	}
	for n := int(wantedOf(p.dc, kind)); n < int(*set.Spec.Replicas); n++ {
		if p.voter(p.leaverOf(kind, set, n)) {
			return true
		}
	}
	return false
}

// rollUnlessSettling replaces Pods, unless a follower goes by this plan.
func (p planner) rollUnlessSettling() error {
	if p.leave.settling {
		return nil
	}
	return p.roll()
}

// unsafeFrontends tells why frontends cannot be taken out as things are.
func (p planner) unsafeFrontends(s *scaling) string {
	master := p.master()
	switch {
	case master == nil:
		return "no frontend is master"
	case len(s.voters) == 0:
		return ""
	}
	going := map[string]bool{}
	for _, l := range s.leavers {
		going[l.address()] = true
	}
	all, left := 0, 0
	for i := range p.world.Database.Frontends {
		f := &p.world.Database.Frontends[i]
		leaves := going[frontendAddress(f)]
		if !leaves && !f.Alive {
			return frontendAddress(f) + ", which stays, does not answer the master"
		}
		if votes(f) {
			all++
			left += btoi(!leaves)
		}
	}
	if least := int(electionNumberOf(p.dc.Spec.FeSpec)); left < least {
		return fmt.Sprintf("%d followers would be left, and electionNumber asks for %d", left, least)
	}
	if going[frontendAddress(master)] && all < 3 {
		return frontendAddress(master) + " is the master, and the other follower cannot elect without it: have 3 followers first (electionNumber and replicas), or restart it until the other one is master"
	}
	return p.unsettled(s)
}

// master is the frontend that is master; nil where none is.
func (p planner) master() *client.Frontend {
	for i := range p.world.Database.Frontends {
		if f := &p.world.Database.Frontends[i]; f.IsMaster {
			return f
		}
	}
	return nil
}

// unsettled tells which Pod of the cluster is not there and ready, or was not yet when
// the database was asked.
func (p planner) unsettled(s *scaling) string {
	for _, kind := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		if set == nil || set.Spec.Replicas == nil {
			continue
		}
		there := map[string]bool{}
		pods := p.world.Pods[string(kind)]
		for i := range pods {
			there[pods[i].Name] = ready(&pods[i]) && !readySince(&pods[i]).After(p.world.Database.At)
		}
		for n := range int(*set.Spec.Replicas) {
			name := fmt.Sprintf("%s-%d", set.Name, n)
			dropped := kind == s.kind && slices.ContainsFunc(s.leavers, func(l leaver) bool { return l.name == name && l.gone() })
			if !there[name] && !dropped {
				return name + " is not ready"
			}
		}
	}
	return ""
}

// sayFollowers is what a person is told before followers leave.
func (p planner) sayFollowers(s *scaling) string {
	var left []string
	for n := range int(s.want) {
		if l := p.leaverOf(s.kind, s.set, n); p.voter(l) {
			left = append(left, l.name)
		}
	}
	return fmt.Sprintf("%s elect the master and would leave for good, one after the other; %s would be left (%s), of which %d have to answer for the cluster to work",
		podNames(s.voters), many(len(left), "follower"), strings.Join(left, ", "), len(left)/2+1)
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// takeOutFollower plans the next thing for one follower that goes: message tells why
// nothing can be said now, refused what the database answered a moment ago.
func (p planner) takeOutFollower(s *scaling, l leaver) (message, refused string) {
	if why := p.unsafeFrontends(s); why != "" {
		return l.name + " waits, since " + why, ""
	}
	master := p.master()
	for _, other := range s.leavers {
		if other.frontend != nil && other.frontend == master {
			return p.moveMaster(s, other, l)
		}
	}
	for _, other := range s.leavers { // observers first, then the highest ordinal
		if other.frontend != nil && (!votes(other.frontend) || other.ordinal > l.ordinal) {
			return l.name + " waits until " + other.name + " is out", ""
		}
	}
	p.leave.settling = true
	return "", p.ask(l, changeMember{
		change: client.DropFollower, member: l.record.node(), followers: int(electionNumberOf(p.dc.Spec.FeSpec)),
	}, "taken out of the database; the frontends that stay all answer")
}

// moveMaster lets the Pod of a leaving master be replaced, so that another frontend is
// elected. It is recorded before, so that each Pod goes once.
func (p planner) moveMaster(s *scaling, master, l leaver) (message, refused string) {
	message = fmt.Sprintf("%s waits until another frontend than %s is master", l.name, master.name)
	record := s.records[master.name]
	switch {
	case l.name != master.name, master.pod == nil:
		return message, ""
	case record.MovedFrom != string(master.pod.UID) && record.Moves >= mostMoves:
		return message, fmt.Sprintf("%s is master again after its Pod was replaced %d times, and nothing else moves the master: restart it when it suits", master.name, record.Moves)
	case record.MovedFrom != string(master.pod.UID):
		record.MovedFrom, record.Moves = string(master.pod.UID), record.Moves+1
		s.records[master.name] = record
		return message, ""
	}
	p.leave.settling = true
	p.replaceLeaving(master, master.name+" leaves and is master: its Pod is replaced, so that another frontend becomes master")
	return message, ""
}

// keepsQuorum holds that a follower can go now: it is not master, and those that are
// left are enough, and a majority of them answers.
func (o changeMember) keepsQuorum(now membersAnswer, gone *client.Frontend) (bool, error) {
	left, alive := 0, 0
	for i := range now.frontends {
		f := &now.frontends[i]
		if votes(f) && frontendAddress(f) != frontendAddress(gone) {
			left++
			alive += btoi(f.Alive)
		}
	}
	switch {
	case gone.IsMaster:
		return false, fmt.Errorf("%s is the master now", frontendAddress(gone))
	case !votes(gone):
		return false, fmt.Errorf("%s is no follower but an %s", frontendAddress(gone), strings.ToLower(cmp.Or(gone.Role, "unknown")))
	case left < o.followers:
		return false, fmt.Errorf("%d followers would be left, and electionNumber asks for %d", left, o.followers)
	case alive <= left/2:
		return false, fmt.Errorf("of the %d followers that would be left only %d answer, and that is no majority", left, alive)
	}
	return true, nil
}
