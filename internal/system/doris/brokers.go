package doris

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// Brokers hold nothing, and whoever loads names the ones he uses. So their Pods just
// go, and what the database still knows of them is taken away after that: a broker by
// the name of a Pod that is not there can be nobody else. One that is known by an
// address alone cannot be told from others and is left.

// asksBrokers tells whether the database is asked for its brokers.
func (p planner) asksBrokers() bool {
	return p.dc.Spec.BrokerSpec != nil || p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentBroker)] != nil
}

// brokersBeyond are the brokers of the database by the names of Pods from an ordinal
// on.
func (p planner) brokersBeyond(ordinal int) []client.Broker {
	db := p.world.Database
	if db == nil || !db.Known {
		return nil
	}
	var out []client.Broker
	set := StatefulSetName(p.dc.Name, dorisv1.ComponentBroker)
	for _, b := range db.Brokers {
		pod, _, _ := strings.Cut(b.Host, ".")
		n := ordinalOf(pod)
		if n >= ordinal && pod == fmt.Sprintf("%s-%d", set, n) && strings.Contains(b.Host, ".") && p.nameOf(dorisv1.ComponentBroker, pod, nil).is(b.Host) {
			out = append(out, b)
		}
	}
	return out
}

// brokersGone takes brokers out of the database whose Pods are gone for good.
func (p planner) brokersGone() {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentBroker)]
	if set == nil || set.Spec.Replicas == nil || !pinned(set) || specOf(p.dc, dorisv1.ComponentBroker) == nil || p.leave.settling {
		return
	}
	for _, b := range p.brokersBeyond(int(*set.Spec.Replicas)) {
		if !p.ours(b.Host) { // its Pod is gone
			p.dropBroker(b, "its Pod is gone for good")
		}
	}
}

// brokersOut takes all brokers out of the database before their set goes, and tells
// whether the database knows none.
func (p planner) brokersOut(set *appsv1.StatefulSet) bool {
	if db := p.world.Database; db == nil || !db.Known {
		reason, message := reasonNotAsked, "the operator asks the database which brokers it knows, and takes them out of it first"
		if db != nil {
			reason, message = db.Reason, "the database does not answer: "+db.Message
		}
		p.noteRemoval(set, reason, message)
		return false
	}
	left := p.brokersBeyond(0)
	for _, b := range left {
		if refused := p.dropBroker(b, "brokers are gone from the spec"); refused != "" {
			p.noteRemoval(set, meta.ReasonScaleInRefused, "the database refuses: "+refused)
		}
	}
	if len(left) > 0 {
		p.noteRemoval(set, meta.ReasonMembersLeaving, "brokers are being taken out of the database")
	}
	return len(left) == 0
}

// noteRemoval says what the removal of the set of brokers waits for.
func (p planner) noteRemoval(set *appsv1.StatefulSet, reason, message string) {
	p.build.Note(plan.Change{
		Object: plan.RefOf(set), To: "deleted", Cause: plan.CauseUser, Effect: plan.EffectNone,
		Verdict: plan.VerdictWait, Reason: reason, Message: message,
	})
	p.leave.waits = append(p.leave.waits, plan.Wait{
		On: plan.RefOf(set), Reason: reason, Message: "StatefulSet " + set.Name + " goes last: " + message, Person: reason == meta.ReasonScaleInRefused,
	})
}

func (p planner) dropBroker(b client.Broker, why string) (refused string) {
	pod, _, _ := strings.Cut(b.Host, ".")
	return p.ask(leaver{name: pod}, changeMember{change: client.DropBroker(b.Name), member: b.Node()}, why)
}

// brokersLeft names brokers that the database knows and that have no Pod.
func (p planner) brokersLeft() []string {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentBroker)]
	if set == nil || set.Spec.Replicas == nil || specOf(p.dc, dorisv1.ComponentBroker) == nil {
		return nil
	}
	var out []string
	for _, b := range p.brokersBeyond(int(*set.Spec.Replicas)) {
		if p.ours(b.Host) {
			continue
		}
		text := "broker " + b.Node().String() + " is registered and its Pod is gone; the operator takes it out"
		if no := p.world.Database.Refused[b.Node().String()]; no != "" {
			text = "broker " + b.Node().String() + " is registered, its Pod is gone, and it cannot be taken out: " + no
		}
		out = append(out, text)
	}
	return out
}

// brokerNeeded tells whether a broker is still to be taken out.
func (o changeMember) brokerNeeded(now membersAnswer) bool {
	for _, b := range now.brokers {
		if b.Node() == o.member && client.DropBroker(b.Name) == o.change {
			return true
		}
	}
	return false
}
