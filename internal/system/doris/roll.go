package doris

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/rollout"
)

// roll replaces Pods made from an older template, one at a time in the whole
// cluster: backends before frontends, the highest ordinal first, and each only
// while every other Pod of either component is there and ready. A Pod that is
// outdated and does not serve goes before all others, since it may never serve
// until it is replaced.
func (p planner) roll() error {
	built, err := p.build.Plan()
	if err != nil || p.build.Blocked() || podsChange(built) {
		return err
	}
	r := rolling{pods: map[string]*corev1.Pod{}, sets: map[string]*appsv1.StatefulSet{}}
	for _, c := range rendered { // in the order of starting; the last goes first
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, c)]
		if set == nil || specOf(p.dc, c) == nil {
			continue
		}
		if pinned(set) && unseen(set) {
			p.progressing(set, "the StatefulSet controller has not seen the newest template of "+string(c))
			return nil
		}
		r.add(set, p.world.Pods[string(c)], pinned(set), edited(built, set))
		p.holdLosses(c, set, &r)
	}
	for i := range r.members {
		m := &r.members[i]
		m.Outdated = (m.Outdated || p.mustGo[m.Name]) && !p.leave.pods[m.Name]
	}
	p.replaceNext(r)
	return nil
}

// holdLosses keeps Pods whose data goes with them where they are behind for another
// reason than a change of the template that was accepted as such: a restart that
// somebody asked for in the set, say.
func (p planner) holdLosses(kind dorisv1.ComponentType, set *appsv1.StatefulSet, r *rolling) {
	recorded, known := readAccepted(set)
	stamp := set.Spec.Template.Annotations[meta.AnnotationTemplate]
	if !known || p.restartEffect(workload{kind: kind, live: set, recorded: recorded}) != plan.EffectDataLoss {
		return
	}
	var kept []int
	for i, m := range r.members {
		if m.Outdated && r.sets[m.Name] == set && r.pods[m.Name].Annotations[meta.AnnotationTemplate] == stamp {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 || set.Annotations[meta.AnnotationRoll] == set.Status.UpdateRevision {
		return
	}
	if p.build.Hold(plan.Consents(set), []plan.Change{{
		Object: plan.RefOf(typed(set)), Path: "spec.template", To: set.Status.UpdateRevision,
		Cause: plan.CauseUser, Effect: plan.EffectDataLoss, Reason: meta.ReasonUnsafeChange,
		Message: "somebody asked in the StatefulSet for its Pods to be replaced; their data is on emptyDir volumes and is gone then",
	}}) {
		return
	}
	for _, i := range kept {
		r.members[i].Outdated = false
	}
}

// typed is a set with its kind, which the cache leaves out.
func typed(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	out := &appsv1.StatefulSet{ObjectMeta: set.ObjectMeta}
	out.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	return out
}

// podsChange tells whether a set is made or grows by this plan, or its template
// changes: then there will be other Pods than those that are seen now, and the
// next plan chooses among them.
func podsChange(p plan.Plan) bool {
	for _, c := range p.Changes {
		if c.Object.Kind != "StatefulSet" || c.Verdict != plan.VerdictApply {
			continue
		}
		if c.Path == "" || c.Path == replicasPath || plan.InTemplate(c.Path) {
			return true
		}
	}
	return false
}

// rolling is the cluster as the choice of the next Pod sees it.
type rolling struct {
	members []rollout.Member
	size    int
	pods    map[string]*corev1.Pod
	sets    map[string]*appsv1.StatefulSet // of each Pod
}

// add adds a component that goes before those added so far.
func (r *rolling) add(set *appsv1.StatefulSet, pods []corev1.Pod, replaceable, edited bool) {
	lost := map[string]bool{}
	for i := range pods {
		lost[pods[i].Name] = nodeLost(&pods[i])
	}
	for _, m := range rollMembers(set, pods, edited) {
		m.Outdated = m.Outdated && replaceable && !lost[m.Name] // nobody could stop it, and all others wait for it
		m.Ordinal = len(r.members)
		r.members = append(r.members, m)
	}
	for i := range pods {
		r.pods[pods[i].Name], r.sets[pods[i].Name] = &pods[i], set
	}
	r.size += int(ptr.Deref(set.Spec.Replicas, 1))
}

// outdated lists the Pods that are to be replaced, the next first.
func (r *rolling) outdated() []string {
	var names []string
	for _, m := range slices.Backward(r.members) {
		if m.Outdated {
			names = append(names, m.Name)
		}
	}
	return names
}

func (p planner) replaceNext(r rolling) {
	outdated := r.outdated()
	if len(outdated) == 0 {
		p.standstill()
		return
	}
	choice := rollout.Next(r.members, r.size)
	set := r.sets[outdated[0]]
	why := plan.Change{Cause: plan.CauseUser, Verdict: plan.VerdictWait}
	if choice.Name != "" {
		set = r.sets[choice.Name]
		pod := r.pods[choice.Name].DeepCopy()
		reason := "the Pod template changed"
		if p.mustGo[choice.Name] {
			reason = "a setting is gone from the configuration, and only a start brings its default back"
		}
		p.build.Step(plan.Change{
			Object: plan.RefOf(pod), From: pod.Labels[appsv1.ControllerRevisionHashLabelKey], To: set.Status.UpdateRevision,
			Cause: why.Cause, Effect: plan.EffectRestartPod, Verdict: plan.VerdictApply,
			Reason: "Outdated", Message: reason,
		}, plan.Evict{Pod: pod, Reason: reason})
	}
	for _, name := range outdated {
		if name != choice.Name {
			p.build.Note(waitsItsTurn(r.pods[name], why))
		}
	}
	if choice.Name != "" {
		p.progressing(set, "replacing Pods: "+choice.Name)
		return
	}
	p.standstill()
	if why := r.stuck(); why != "" {
		p.build.Wait(plan.Wait{
			On: plan.RefOf(set), Reason: meta.ReasonMemberFailed,
			Message: "replacing Pods: stopped, since " + why + ". Mend the spec or what it names; the Pod is replaced then",
		})
		return
	}
	p.progressing(set, "replacing Pods: waiting for "+choice.Waiting)
}

// stuck tells which Pod cannot run, and why, so that the roll does not go on.
func (r *rolling) stuck() string {
	for _, m := range slices.Backward(r.members) {
		if m.Ready || m.Outdated {
			continue
		}
		if why, failed := failure(r.pods[m.Name]); failed {
			return m.Name + " does not come up (" + why + ")"
		}
	}
	return ""
}

func (p planner) progressing(set *appsv1.StatefulSet, message string) {
	p.build.Wait(plan.Wait{On: plan.RefOf(set), Reason: meta.ReasonProgressing, Message: message})
}

// unseen tells whether the StatefulSet controller has yet to see the newest
// template of a set, so that nobody knows which Pods are outdated. Those of a
// set that it has never seen are not.
func unseen(set *appsv1.StatefulSet) bool {
	return set.Status.ObservedGeneration != 0 && set.Status.ObservedGeneration != set.Generation
}
