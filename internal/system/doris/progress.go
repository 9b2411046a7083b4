package doris

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// progressDeadline is how long a replaced Pod may take to become ready where the spec
// does not say it.
const progressDeadline = 10 * time.Minute

// onFailure is what becomes of a roll that stops.
func onFailure(dc *dorisv1.DorisCluster) dorisv1.OnFailure {
	return ptr.Deref(dc.Spec.Rollout, dorisv1.Rollout{}).OnFailure
}

// rollsBack tells whether the Pods go that were made from a change that failed.
func (p planner) rollsBack() bool { return onFailure(p.dc) == dorisv1.OnFailureRollback }

// stands says how a roll stands that has stopped.
func (f failedChange) stands() string {
	if f.Rollback {
		return "rolled back"
	}
	return "stopped"
}

// deadlineOf is how long a replaced Pod of a component may take to become ready.
func deadlineOf(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType) time.Duration {
	if r := dc.Spec.Rollout; r != nil && r.ProgressDeadlineSeconds != nil {
		return time.Duration(*r.ProgressDeadlineSeconds) * time.Second
	}
	const twice = 2 * time.Second
	return max(progressDeadline, time.Duration(specOf(dc, kind).StartTimeout)*twice)
}

// rollProgress forbids a deadline that no Pod can keep.
func rollProgress(dc *dorisv1.DorisCluster) []plan.Finding {
	var f faults
	if r := dc.Spec.Rollout; r != nil && r.ProgressDeadlineSeconds != nil && *r.ProgressDeadlineSeconds < shortestDeadline {
		f.refusef("spec.rollout.progressDeadlineSeconds", "%d seconds are too short for a process to start: use at least %d", *r.ProgressDeadlineSeconds, shortestDeadline)
	}
	return f
}

// shortestDeadline is the shortest deadline that can be asked for, in seconds.
const shortestDeadline = 10

// waitingSince is when a Pod that is not ready began to be waited for: when its node
// took it, or when it was found that there is no room for it. It is zero while nobody
// has said anything of it, and where only its node is not heard from.
func waitingSince(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp != nil || ready(pod) || nodeLost(pod) {
		return time.Time{}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled} {
		if c := conditionOf(pod, kind); c.Status == corev1.ConditionFalse {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// fails tells whether a Pod cannot run, or takes longer to become ready than it may.
func (p planner) fails(kind dorisv1.ComponentType, pod *corev1.Pod) (why string, failed bool) {
	if why, failed = failure(pod); failed {
		return why, true
	}
	if late := p.late(kind, pod); late != "" {
		return late, true
	}
	return why, false
}

// late says what is the matter with a Pod that takes longer to become ready than it may;
// empty while it does not.
func (p planner) late(kind dorisv1.ComponentType, pod *corev1.Pod) string {
	since, deadline := waitingSince(pod), deadlineOf(p.dc, kind)
	if since.IsZero() || p.now.Sub(since) < deadline {
		return ""
	}
	why, _ := failure(pod)
	return fmt.Sprintf("%s for %s", cmp.Or(why, "not ready"), deadline)
}

// neverUp tells whether no Pod of a set is up, and nothing ran before it to go back to.
func (p planner) neverUp(kind dorisv1.ComponentType, set *appsv1.StatefulSet) bool {
	_, rolling := readLastGood(set)
	_, stopped := p.stopped(kind)
	return !rolling && !stopped && set != nil && !slices.ContainsFunc(p.world.Pods[string(kind)], func(pod corev1.Pod) bool { return ready(&pod) })
}

// firstRollout tells of Pods that do not come up where no Pod of their set ever did, so
// that there is nothing to put back. One may fail to start until others are there: only
// its deadline counts.
func (p planner) firstRollout() {
	for _, kind := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		if specOf(p.dc, kind) == nil || !p.neverUp(kind, set) {
			continue
		}
		for i := range p.world.Pods[string(kind)] {
			pod := &p.world.Pods[string(kind)][i]
			if late := p.late(kind, pod); late != "" && current(set, pod) {
				p.build.Wait(plan.Wait{
					On: plan.RefOf(set), Reason: meta.ReasonMemberFailed, Person: true,
					Message: fmt.Sprintf("%s does not come up (%s), nor does another Pod of its StatefulSet, so that there is nothing to go back to. Mend the spec or what it names", pod.Name, late),
				})
				break
			}
		}
	}
}

// deadlineNext is when the next Pod of a roll, or of a set of which none is up, will have
// taken longer than it may; zero where none will.
func (p planner) deadlineNext() time.Duration {
	next := time.Duration(0)
	for _, kind := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		if _, rolling := readLastGood(set); specOf(p.dc, kind) == nil || !rolling && !p.neverUp(kind, set) {
			continue
		}
		for i := range p.world.Pods[string(kind)] {
			pod := &p.world.Pods[string(kind)][i]
			since := waitingSince(pod)
			if left := deadlineOf(p.dc, kind) - p.now.Sub(since); !since.IsZero() && left > 0 && current(set, pod) && (next == 0 || left < next) {
				next = left
			}
		}
	}
	return next
}
