package doris

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// removed takes away components that are gone from the spec, the last one that was
// started first: their members leave the database, then the set goes and then its
// Services. Claims stay. The frontends are never removed: they hold what the
// cluster knows.
func (p planner) removed() {
	for _, c := range slices.Backward(rendered) {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, c)]
		switch {
		case specOf(p.dc, c) != nil:
		case set == nil:
			p.removeServices(c)
		case c == dorisv1.ComponentFE:
			p.build.Find(plan.Finding{
				Severity: plan.Refusal, Field: fieldOf(c), Reason: meta.ReasonUnsafeChange,
				Message: "the frontends hold the metadata of the cluster, and StatefulSet " + set.Name + " runs them: put the field back, or delete the DorisCluster",
			})
		case !pinned(set):
			p.build.Find(plan.Finding{
				Severity: plan.Unsupported, Field: fieldOf(c), Reason: reasonCannotShrink,
				Message: "StatefulSet " + set.Name + " of another operator is not in the spec and is left alone: put the field back, or delete it by hand",
			})
		default:
			p.remove(c, set)
		}
	}
	p.idleBudgets()
}

// remove takes the set of a component away when its members are out.
func (p planner) remove(c dorisv1.ComponentType, set *appsv1.StatefulSet) {
	if c == dorisv1.ComponentBroker && set.DeletionTimestamp == nil && !p.brokersOut(set) {
		return
	}
	if c != dorisv1.ComponentBroker && set.Spec.Replicas != nil && *set.Spec.Replicas > 0 && p.scaleIn(c, set, 0) > 0 {
		return
	}
	if set.DeletionTimestamp != nil {
		p.leave.waits = append(p.leave.waits, plan.Wait{On: plan.RefOf(set), Reason: meta.ReasonProgressing, Message: "StatefulSet " + set.Name + " is being deleted"})
		return
	}
	p.delete(set, pluralOf(c)+" are gone from the spec, and from the database; their claims stay")
}

func (p planner) removeServices(c dorisv1.ComponentType) {
	for _, name := range []string{InternalServiceName(p.dc.Name, c), AccessServiceName(p.dc.Name, c)} {
		service := p.world.Services[name]
		if service == nil || service.DeletionTimestamp != nil || c == dorisv1.ComponentFE || !p.isOurs(service) {
			continue
		}
		p.delete(service, pluralOf(c)+" are gone")
	}
}

// isOurs tells whether a Service belongs to this very cluster.
func (p planner) isOurs(service *corev1.Service) bool {
	for _, owner := range service.OwnerReferences {
		if owner.UID == p.dc.UID {
			return true
		}
	}
	return false
}

func (p planner) delete(o client.Object, why string) {
	p.build.Step(plan.Change{
		Object: plan.RefOf(o), To: "deleted", Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
		Reason: "Removed", Message: why,
	}, plan.Delete{Object: o, Reason: why})
}
