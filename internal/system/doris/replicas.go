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
	if has <= c.FullReplicas && c.Type != dorisv1.ComponentBroker {
		p.scaleIn(c.Type, set, c.FullReplicas)
	}
	if has <= c.FullReplicas {
		return max(c.Replicas, has)
	}
	if p.causeByOwner(set)(replicasPath) == plan.CauseDrift || p.scaledElsewhere(c, set) {
		return p.refuseShrink(c, set, plan.CauseDrift, fmt.Sprintf("somebody else scaled StatefulSet %s to %d, and the spec says %d. Members leave by the spec alone; %d stay", set.Name, has, c.FullReplicas, has))
	}
	if c.Type == dorisv1.ComponentFE && c.FullReplicas < electionNumberOf(p.dc.Spec.FeSpec) {
		return p.refuseShrink(c, set, plan.CauseUser, fmt.Sprintf("scaling in from %d to %d would take away frontends that elect the master: %d do (electionNumber). %d stay. Lower electionNumber as well, and followers are taken out once a person agrees", has, c.FullReplicas, electionNumberOf(p.dc.Spec.FeSpec), has))
	}
	if c.Type == dorisv1.ComponentBroker {
		return c.FullReplicas // it holds nothing, and clients name the ones they use
	}
	return p.scaleIn(c.Type, set, c.FullReplicas)
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
