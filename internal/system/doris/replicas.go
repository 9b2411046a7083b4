package doris

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// replicas is how many Pods the set shall have now. There are fewer only when the
// members that go are out of the database: one that just goes takes its tablets, or
// its vote, with it. What somebody else asked for stays.
func (p planner) replicas(c Component) int32 {
	set := p.world.StatefulSets[c.StatefulSet.Name]
	if set == nil || set.Spec.Replicas == nil {
		return c.Replicas
	}
	has := *set.Spec.Replicas
	if p.keepsNumber(c, set) {
		return has
	}
	p.agree(c, set)
	if has <= c.FullReplicas && c.Type != dorisv1.ComponentBroker {
		p.scaleIn(c.Type, set, c.FullReplicas)
	}
	if has <= c.FullReplicas {
		return max(c.Replicas, has)
	}
	if p.scaledByOthers(c, set) {
		p.noteOthers(set)
		return p.refuseShrink(c, set, plan.CauseDrift, fmt.Sprintf("somebody else scaled StatefulSet %[1]s to %[2]d, and the spec says %[3]d. Members leave by the spec alone; %[2]d stay: set spec.%[4]sSpec.replicas to %[2]d first, also if they are to leave by a smaller number after that", set.Name, has, c.FullReplicas, c.Type))
	}
	if c.Type == dorisv1.ComponentFE && c.FullReplicas < electionNumberOf(p.dc.Spec.FeSpec) {
		return p.refuseShrink(c, set, plan.CauseUser, fmt.Sprintf("scaling in from %d to %d would take away frontends that elect the master: %d do (electionNumber). %d stay. Lower electionNumber as well, and followers are taken out once a person agrees", has, c.FullReplicas, electionNumberOf(p.dc.Spec.FeSpec), has))
	}
	if c.Type == dorisv1.ComponentBroker {
		return c.FullReplicas // it holds nothing, and clients name the ones they use
	}
	return p.scaleIn(c.Type, set, c.FullReplicas)
}

// scaledByOthers tells whether the number is that of somebody else, which the spec
// never asked for.
func (p planner) scaledByOthers(c Component, set *appsv1.StatefulSet) bool {
	return !agreed(set) && (othersNumber(set) || p.causeByOwner(set)(replicasPath) == plan.CauseDrift || p.scaledElsewhere(c, set))
}

// othersNumber tells whether it was noted that somebody else set the number that a set has.
func othersNumber(set *appsv1.StatefulSet) bool {
	return set.Annotations[meta.AnnotationOthersReplicas] == strconv.Itoa(int(*set.Spec.Replicas))
}

// noteOthers notes that somebody else set the number, before anything is written that
// names it: by its owners alone nobody could tell any more.
func (p planner) noteOthers(set *appsv1.StatefulSet) {
	if othersNumber(set) {
		return
	}
	has := strconv.Itoa(int(*set.Spec.Replicas))
	p.write(note{on: set, key: meta.AnnotationOthersReplicas, is: has, cause: plan.CauseUser, reason: "somebody else scaled to " + has + " Pods", message: recordedHere})
}

// agree notes on a set that the spec asked for the number that somebody else had set.
// Nothing is to be written then that would make the number ours, and a smaller one that
// is asked for later would be refused as that of somebody else for good.
func (p planner) agree(c Component, set *appsv1.StatefulSet) {
	elsewhere := p.scaledElsewhere(c, set) || stampOf(set) != "" && !scaledByUs(set) && !p.autoscales(c.Type)
	switch noted := set.Annotations[meta.AnnotationAgreedReplicas]; {
	case !elsewhere && noted != "":
		p.write(note{on: set, key: meta.AnnotationAgreedReplicas, cause: plan.CauseUser, reason: "the number of Pods is the operator's own again", message: recordedHere})
	case elsewhere && *set.Spec.Replicas == c.FullReplicas && !agreed(set):
		has := strconv.Itoa(int(*set.Spec.Replicas))
		p.write(note{on: set, key: meta.AnnotationAgreedReplicas, is: has, cause: plan.CauseUser, reason: "the spec asks for the " + has + " Pods that somebody else scaled to", message: recordedHere})
	case noLongerTheirs(c, set):
		p.write(note{on: set, key: meta.AnnotationOthersReplicas, cause: plan.CauseUser, reason: "the number of Pods is what the spec asks for", message: recordedHere})
	}
}

// noLongerTheirs tells whether it is noted that somebody else set the number, and that is over.
func noLongerTheirs(c Component, set *appsv1.StatefulSet) bool {
	return set.Annotations[meta.AnnotationOthersReplicas] != "" && (agreed(set) || *set.Spec.Replicas <= c.FullReplicas || !othersNumber(set))
}

// agreed tells whether the spec asked for the number of Pods that a set has.
func agreed(set *appsv1.StatefulSet) bool {
	return set.Spec.Replicas != nil && set.Annotations[meta.AnnotationAgreedReplicas] == strconv.Itoa(int(*set.Spec.Replicas))
}

// refuseShrink keeps the number of Pods that a set has.
func (p planner) refuseShrink(c Component, set *appsv1.StatefulSet, cause plan.Cause, message string) int32 {
	has := *set.Spec.Replicas
	p.build.Find(plan.Finding{Severity: plan.Unsupported, Field: "spec." + string(c.Type) + "Spec.replicas", Reason: reasonCannotShrink, Message: message})
	p.build.Note(plan.Change{
		Object: plan.RefOf(c.StatefulSet), Path: replicasPath,
		From: strconv.Itoa(int(has)), To: strconv.Itoa(int(c.FullReplicas)),
		Cause: cause, Effect: plan.EffectDataLoss, Verdict: plan.VerdictRefuse, Reason: meta.ReasonNotSupportedYet,
		Message: "members leave through the database, not by a smaller number",
	})
	p.leave.waits = append(p.leave.waits, plan.Wait{On: plan.RefOf(set), Reason: reasonCannotShrink, Message: message, Person: true})
	return has
}
