package doris

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
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
	since, deadline := waitingSince(pod), deadlineOf(p.dc, kind)
	if since.IsZero() || p.now.Sub(since) < deadline {
		return why, false
	}
	if why == "" {
		why = "not ready"
	}
	return fmt.Sprintf("%s for %s", why, deadline), true
}

// deadlineNext is when the next Pod of a roll will have taken longer than it may; zero
// where none will.
func (p planner) deadlineNext() time.Duration {
	next := time.Duration(0)
	for _, kind := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		if _, rolling := readLastGood(set); !rolling || specOf(p.dc, kind) == nil {
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
