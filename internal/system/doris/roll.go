package doris

import (
	"strings"

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
	r := newRolling(built)
	for _, c := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, c)]
		if set == nil || specOf(p.dc, c) == nil {
			continue
		}
		if pinned(set) && unseen(set) {
			p.progressing(set, "the StatefulSet controller has not seen the newest template of "+string(c))
			return nil
		}
		r.add(c, set, p.world.Pods[string(c)], edited(built, set))
		p.holdLosses(c, set, &r)
	}
	p.judgeMembers(&r)
	if !p.resizeNext(&r) {
		p.replaceNext(r)
	}
	return nil
}

// judgeMembers fills in which members are to go, and which do not come up.
func (p planner) judgeMembers(r *rolling) {
	for i := range r.members {
		m := &r.members[i]
		m.Outdated = (m.Outdated || p.mustGo[m.Name]) && !p.leave.pods[m.Name]
		_, m.Failed = p.fails(r.kinds[m.Name], r.pods[m.Name])
	}
}

// holdLosses keeps Pods whose data goes with them where they are behind for another
// reason than a change of the template that was accepted as such: a restart that
// somebody asked for in the set, say.
func (p planner) holdLosses(kind dorisv1.ComponentType, set *appsv1.StatefulSet, r *rolling) {
	recorded, known := readAccepted(set)
	stamp := stampOf(set)
	if !known || p.restartEffect(workload{kind: kind, live: set, recorded: recorded}) != plan.EffectDataLoss {
		return
	}
	var kept []int
	for i, m := range r.members {
		if m.Outdated && r.sets[m.Name] == set && madeFrom(r.pods[m.Name], stamp) {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 || set.Annotations[meta.AnnotationRoll] == set.Status.UpdateRevision {
		return
	}
	if p.build.Hold(plan.Consents(set), []plan.Change{{
		Object: plan.RefOf(set), Path: "spec.template", To: set.Status.UpdateRevision,
		Cause: plan.CauseUser, Effect: plan.EffectDataLoss, Reason: meta.ReasonUnsafeChange,
		Message: "somebody asked in the StatefulSet for its Pods to be replaced; their data is on emptyDir volumes and is gone then",
	}}) {
		return
	}
	for _, i := range kept {
		r.members[i].Outdated = false
	}
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
	kinds   map[string]dorisv1.ComponentType
	// all are the sets of the cluster, and busy those that this plan writes already:
	// what was observed of them is not the newest then.
	all  []*appsv1.StatefulSet
	busy map[string]bool
}

func newRolling(built plan.Plan) rolling {
	r := rolling{pods: map[string]*corev1.Pod{}, sets: map[string]*appsv1.StatefulSet{}, kinds: map[string]dorisv1.ComponentType{}, busy: map[string]bool{}}
	for _, step := range built.Steps {
		if on := step.Target(); on.Kind == "StatefulSet" {
			r.busy[on.Name] = true
		}
	}
	return r
}

// rankOf is when the Pods of a component go: what holds no data first, then backends,
// then frontends, as Doris is upgraded.
var rankOf = map[dorisv1.ComponentType]int{
	dorisv1.ComponentBroker: 0, dorisv1.ComponentCN: 1, dorisv1.ComponentBE: 2, dorisv1.ComponentFE: rankFollower,
}

// The ranks of frontends: the master goes last, so that it changes once.
const (
	rankObserver = 3
	rankFollower = 4
	rankMaster   = 5
)

// add adds a component.
func (r *rolling) add(kind dorisv1.ComponentType, set *appsv1.StatefulSet, pods []corev1.Pod, edited bool) {
	for i := range pods {
		pod := &pods[i]
		r.members = append(r.members, rollout.Member{
			Name: pod.Name, Group: string(kind), Rank: rankOf[kind], Ordinal: ordinalOf(pod.Name), Since: readySince(pod),
			Ready: ready(pod), Leaving: pod.DeletionTimestamp != nil,
			// One on a lost node nobody could stop, and all others wait for it.
			Outdated: pinned(set) && !nodeLost(pod) && outdated(set, pod, edited),
		})
		r.pods[pod.Name], r.sets[pod.Name], r.kinds[pod.Name] = pod, set, kind
	}
	r.size += int(ptr.Deref(set.Spec.Replicas, 1))
	r.all = append(r.all, set)
}

// outdated lists the Pods that are to be replaced, the next first.
func (r *rolling) outdated() []string {
	var names []string
	for _, m := range rollout.InOrder(r.members) {
		if m.Outdated {
			names = append(names, m.Name)
		}
	}
	return names
}

func (p planner) replaceNext(r rolling) {
	p.heed(&r)
	p.endNoted(r)
	outdated := r.outdated()
	if len(outdated) == 0 {
		p.rollOver(r)
		return
	}
	closed := p.closedGates(r)
	if first := p.holdBalance(r); first != "" {
		closed = append(closed, first)
	}
	choice := rollout.Next(rollout.Roll{Members: r.members, Size: r.size, Closed: closed, Pause: p.tuning.RollPause, Now: p.now})
	kept := p.keptByBudget(r.pods[choice.Name])
	going := choice.Name
	if kept != "" {
		going = ""
	}
	p.giveBack(r, going)
	if going != "" {
		if first := p.beforeItGoes(r, going); first != "" {
			going, choice = "", rollout.Choice{Waiting: first}
		}
	}
	if going != "" {
		p.evict(r, going)
	}
	for _, name := range outdated {
		if name != going {
			p.build.Note(waitsItsTurn(r.pods[name], plan.Change{Cause: causeOfRoll(r.sets[name]), Verdict: plan.VerdictWait}))
		}
	}
	if going != "" {
		p.progressing(r.sets[going], "replacing Pods: "+going+p.byReadiness())
		return
	}
	p.standstill()
	if kept != "" {
		p.build.Wait(plan.Wait{
			On: plan.RefOf(r.sets[choice.Name]), Reason: meta.ReasonDisruptionBudget,
			Message: "replacing Pods: waiting for " + choice.Name + " to be let go by " + kept,
		})
		return
	}
	p.rollWaits(r, r.sets[outdated[0]], choice)
}

// beforeItGoes does what comes before a Pod goes. It tells what is still to come.
func (p planner) beforeItGoes(r rolling, name string) (first string) {
	if first = p.saveMetadata(r, name); first == "" {
		first = p.noteHistory(r, name)
	}
	if first == "" {
		first = p.prepare(r, name)
	}
	return first
}

// evict lets a Pod go.
func (p planner) evict(r rolling, name string) {
	pod := r.pods[name].DeepCopy()
	reason := "the Pod template changed"
	if p.mustGo[name] {
		reason = lostDefault
	}
	p.build.Step(plan.Change{
		Object: plan.RefOf(pod), From: pod.Labels[appsv1.ControllerRevisionHashLabelKey], To: r.sets[name].Status.UpdateRevision,
		Cause: causeOfRoll(r.sets[name]), Effect: plan.EffectRestartPod, Verdict: plan.VerdictApply,
		Reason: "Outdated", Message: reason,
	}, plan.Evict{Pod: pod, Reason: reason})
}

// rollWaits says why no Pod goes now.
func (p planner) rollWaits(r rolling, set *appsv1.StatefulSet, choice rollout.Choice) {
	wait := plan.Wait{On: plan.RefOf(set), Reason: meta.ReasonProgressing, Message: "replacing Pods: waiting for " + choice.Waiting, Recheck: choice.After}
	if reason, message := p.silent(r); reason != "" && message == choice.Waiting {
		wait.Reason = reason
	}
	if p.undumped(set) != "" && strings.HasPrefix(choice.Waiting, dumpWaits) {
		wait.Reason = meta.ReasonMetadataNotDumped
	}
	if pod := r.pods[choice.Stopped]; pod != nil {
		why, _ := p.fails(r.kinds[choice.Stopped], pod)
		wait.Reason = meta.ReasonMemberFailed
		wait.Message = "replacing Pods: stopped, since " + choice.Stopped + " does not come up (" + why + "). Mend the spec or what it names; the Pod is replaced then"
	}
	p.build.Wait(wait)
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
