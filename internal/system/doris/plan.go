package doris

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/rollout"
)

// Plan decides what to do. It reads from top to bottom like the life of a
// cluster: shared objects, frontends, the gate, backends, Pods to be replaced.
func (s *System) Plan(dc *dorisv1.DorisCluster, w World, _ time.Time) (plan.Plan, error) {
	p := planner{dc: dc, world: w, build: plan.NewBuilder(s.engine, FieldManager)}
	objects, findings := Desired(dc, p.inputs())
	p.build.Find(findings...)
	if refused(findings) {
		return p.build.Plan()
	}
	for _, secret := range objects.Secrets {
		p.want(secret, live(w.OwnSecrets, secret.Name), "account of the operator and the entrypoints")
	}
	for _, record := range objects.ConfigMaps {
		p.want(record, live(w.OwnMaps, record.Name), "record that the frontends have served")
	}
	for _, c := range objects.Components {
		p.gate(c)
		for _, m := range objects.MissingFor(c.Type) {
			p.build.Wait(plan.Wait{On: m.On, Reason: meta.ReasonMissingReference, Message: m.Message})
		}
		p.component(c)
	}
	p.removed()
	for _, c := range []dorisv1.ComponentType{dorisv1.ComponentBE, dorisv1.ComponentFE} {
		p.roll(c)
	}
	return p.build.Plan()
}

// planner is the state of one planning.
type planner struct {
	dc    *dorisv1.DorisCluster
	world World
	build *plan.Builder
}

func (p planner) inputs() Inputs {
	return Inputs{
		Revision: LatestRevision, ConfigMaps: p.world.ConfigMaps, Secrets: p.world.Secrets,
		Bootstrapped: p.bootstrapped(),
	}
}

// bootstrapped tells whether the frontends have served: the record says so, or
// one of them serves now, or the set was made by somebody else before us.
func (p planner) bootstrapped() bool {
	if p.world.OwnMaps[BootstrapConfigMapName(p.dc.Name)] != nil || servingFrontends(p.world) > 0 {
		return true
	}
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentFE)]
	return set != nil && !pinned(set)
}

// pinned tells whether a set was rendered by us. One that was not is taken
// over as it is: every difference of its template is the operator's doing.
func pinned(set *appsv1.StatefulSet) bool {
	return set.Annotations[meta.AnnotationRevision] != ""
}

func (p planner) want(rendered, live client.Object, reason string) {
	p.build.Want(plan.Want{Rendered: rendered, Live: live, Reason: reason, Cause: p.cause(live)})
}

// cause attributes a difference. A set that we did not render differs because
// we render differently.
func (p planner) cause(live client.Object) func(string) plan.Cause {
	set, ok := live.(*appsv1.StatefulSet)
	return func(string) plan.Cause {
		if ok && set != nil && !pinned(set) {
			return plan.CauseRevision
		}
		return plan.CauseUser
	}
}

// gate makes backends wait until a frontend serves, unless frontends are
// elsewhere or the backends exist already.
func (p planner) gate(c Component) {
	if c.Type == dorisv1.ComponentFE || p.dc.Spec.FeSpec == nil {
		return
	}
	if external, _ := externalFrontends(specOf(p.dc, c.Type)); len(external) > 0 {
		return
	}
	if p.world.StatefulSets[c.StatefulSet.Name] != nil || servingFrontends(p.world) > 0 {
		return
	}
	name := StatefulSetName(p.dc.Name, dorisv1.ComponentFE)
	p.build.Wait(plan.Wait{
		On:      plan.Ref{Kind: "StatefulSet", Namespace: p.dc.Namespace, Name: name},
		Reason:  meta.ReasonWaitingForComponent,
		Message: "backends are made when a frontend serves",
	})
}

func (p planner) component(c Component) {
	for _, service := range c.Services {
		what := "names of the Pods of " + string(c.Type)
		if service.Name == AccessServiceName(p.dc.Name, c.Type) {
			what = "access to " + string(c.Type)
		}
		p.want(service, live(p.world.Services, service.Name), what)
	}
	set := c.StatefulSet.DeepCopy()
	set.Spec.Replicas = ptr.To(p.replicas(c))
	p.want(set, live(p.world.StatefulSets, set.Name), strconv.Itoa(int(*set.Spec.Replicas))+" Pods of "+string(c.Type))
	p.followers(c, set)
}

// followers lists the Pods that will be replaced because the template of their
// set is about to change.
func (p planner) followers(c Component, set *appsv1.StatefulSet) {
	built, err := p.build.Plan()
	if err != nil {
		return // the caller returns it
	}
	verdict := restartVerdict(built, plan.RefOf(set))
	if verdict == "" {
		return
	}
	pods := p.world.Pods[string(c.Type)]
	for i := len(pods) - 1; i >= 0; i-- {
		p.build.Note(plan.Change{
			Object: plan.Ref{Kind: "Pod", Namespace: p.dc.Namespace, Name: pods[i].Name},
			Cause:  plan.CauseUser, Effect: plan.EffectRestartPod, Verdict: verdict,
			Reason: "Outdated", Message: "replaced when its turn comes, one Pod at a time, each when all others are ready",
		})
	}
}

// restartVerdict tells what becomes of the Pods of a set by the changes of its
// template: wait for their turn, hold, or nothing (empty).
func restartVerdict(p plan.Plan, set plan.Ref) plan.Verdict {
	for _, c := range p.Changes {
		if c.Object != set || c.Effect != plan.EffectRestartPod {
			continue
		}
		if c.Verdict == plan.VerdictApply {
			return plan.VerdictWait
		}
		return c.Verdict
	}
	return ""
}

// replicas is how many Pods the set shall have now. Fewer than it has are
// refused: a member that just goes takes its tablets, or its vote, with it.
func (p planner) replicas(c Component) int32 {
	set := p.world.StatefulSets[c.StatefulSet.Name]
	if set == nil || set.Spec.Replicas == nil {
		return c.Replicas
	}
	if *set.Spec.Replicas <= c.FullReplicas {
		return max(c.Replicas, *set.Spec.Replicas)
	}
	has := *set.Spec.Replicas
	field := "spec." + string(c.Type) + "Spec.replicas"
	p.build.Find(plan.Finding{
		Severity: plan.Unsupported, Field: field, Reason: meta.ReasonNotSupportedYet,
		Message: fmt.Sprintf("scaling in from %d to %d needs the members to be taken out of the database first, which this version does not do; %d stay", has, c.FullReplicas, has),
	})
	p.build.Note(plan.Change{
		Object: plan.RefOf(c.StatefulSet), Path: "spec.replicas",
		From: strconv.Itoa(int(has)), To: strconv.Itoa(int(c.FullReplicas)),
		Cause: plan.CauseUser, Effect: plan.EffectDataLoss, Verdict: plan.VerdictRefuse, Reason: meta.ReasonNotSupportedYet,
		Message: "members leave through the database, not by a smaller number",
	})
	return has
}

// removed names components that are gone from the spec and still run.
func (p planner) removed() {
	for _, c := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, c)]
		if set == nil || specOf(p.dc, c) != nil {
			continue
		}
		p.build.Find(plan.Finding{
			Severity: plan.Unsupported, Field: "spec." + string(c) + "Spec", Reason: meta.ReasonNotSupportedYet,
			Message: "the component is gone from the spec and its Pods still run: removing it needs its members to be taken out of the database first, which this version does not do. Put the field back, or delete StatefulSet " + set.Name + " by hand",
		})
	}
}

// roll replaces Pods made from an older template, one at a time in the whole
// cluster: the next component waits until this one is whole again.
func (p planner) roll(c dorisv1.ComponentType) {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, c)]
	if set == nil || p.build.Blocked() || specOf(p.dc, c) == nil || !pinned(set) {
		return
	}
	if set.Status.ObservedGeneration != set.Generation {
		p.progressing(set, "the StatefulSet controller has not seen the newest template of "+string(c))
		return
	}
	pods := p.world.Pods[string(c)]
	choice := rollout.Next(rollMembers(set, pods), int(ptr.Deref(set.Spec.Replicas, 1)))
	if choice.Waiting != "" {
		p.progressing(set, "replacing Pods of "+string(c)+": waiting for "+choice.Waiting)
		return
	}
	if choice.Name == "" {
		if p.rollAhead(c) && !p.whole(c, set) {
			p.progressing(set, "replacing Pods: waiting for every Pod of "+string(c)+" to be ready")
		}
		return
	}
	for i := range pods {
		if pods[i].Name != choice.Name {
			continue
		}
		pod := pods[i].DeepCopy()
		p.build.Step(plan.Change{
			Object: plan.RefOf(pod), From: pod.Labels[appsv1.ControllerRevisionHashLabelKey], To: set.Status.UpdateRevision,
			Cause: plan.CauseUser, Effect: plan.EffectRestartPod, Verdict: plan.VerdictApply,
			Reason: "Outdated", Message: "the Pod template changed",
		}, plan.Evict{Pod: pod, Reason: "the Pod template changed"})
		p.progressing(set, "replacing Pods of "+string(c)+": "+choice.Name)
	}
}

func (p planner) progressing(set *appsv1.StatefulSet, message string) {
	p.build.Wait(plan.Wait{On: plan.RefOf(set), Reason: meta.ReasonProgressing, Message: message})
}

// rollAhead tells whether another component still has Pods to replace.
func (p planner) rollAhead(c dorisv1.ComponentType) bool {
	for _, other := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, other)]
		if other == c || set == nil {
			continue
		}
		for i := range p.world.Pods[string(other)] {
			if outdated(set, &p.world.Pods[string(other)][i]) {
				return true
			}
		}
	}
	return false
}

// whole tells whether every Pod of a set is there and ready.
func (p planner) whole(c dorisv1.ComponentType, set *appsv1.StatefulSet) bool {
	n := int32(0)
	for i := range p.world.Pods[string(c)] {
		if ready(&p.world.Pods[string(c)][i]) {
			n++
		}
	}
	return n >= ptr.Deref(set.Spec.Replicas, 1)
}

func refused(findings []plan.Finding) bool {
	for _, f := range findings {
		if f.Severity == plan.Refusal {
			return true
		}
	}
	return false
}

// live returns the observed object of a name as an interface that is nil when
// there is none.
func live[T client.Object](observed map[string]T, name string) client.Object {
	if o, ok := observed[name]; ok {
		return o
	}
	return nil
}
