package doris

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// members is what the live Pods of one component say.
type members struct {
	wanted                    int
	running, creating, failed []string
	outdated                  []string
	// unseen tells that the StatefulSet controller has not seen the newest
	// template yet, so that nobody knows which Pods are outdated.
	unseen bool
	// trouble is why the first failed or missing member does not run.
	trouble string
}

// complete tells whether every member runs on the wanted revision.
func (m members) complete() bool {
	return !m.unseen && len(m.running) == m.wanted && len(m.outdated) == 0 && len(m.failed) == 0 && len(m.creating) == 0
}

// membersOf judges the Pods of a component from live data alone. A Pod that is
// expected and not there yet counts as being created, so that the moment in
// which it appears changes nothing.
func membersOf(set *appsv1.StatefulSet, pods []corev1.Pod, name string, wanted int, edited bool) members {
	m := members{wanted: wanted}
	seen := map[string]bool{}
	for i := range pods {
		p := &pods[i]
		seen[p.Name] = true
		why, failed := failure(p)
		switch {
		case ready(p):
			m.running = append(m.running, p.Name)
		case failed:
			m.failed = append(m.failed, p.Name)
		default:
			m.creating = append(m.creating, p.Name)
		}
		if why != "" && m.trouble == "" {
			m.trouble = p.Name + ": " + why
		}
		if outdated(set, p, edited) {
			m.outdated = append(m.outdated, p.Name)
		}
	}
	if set != nil {
		m.unseen = unseen(set)
		for n := range wanted {
			if pod := fmt.Sprintf("%s-%d", name, n); !seen[pod] {
				m.creating = append(m.creating, pod)
			}
		}
	}
	for _, list := range [][]string{m.running, m.creating, m.failed, m.outdated} {
		slices.SortFunc(list, func(a, b string) int { return ordinalOf(a) - ordinalOf(b) })
	}
	return m
}

func ready(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	return conditionOf(p, corev1.PodReady).Status == corev1.ConditionTrue
}

// behind tells whether a Pod was made from another template than the one its set
// has now. Before the controller has seen the newest template nothing is known,
// and the answer is no.
func behind(set *appsv1.StatefulSet, p *corev1.Pod) bool {
	if set == nil || set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == "" {
		return false
	}
	return p.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision
}

// outdated tells whether a Pod is to be replaced. One that is behind the template
// of its set is, unless the template changed by no doing of ours: in a set that
// was taken over and whose template we never rendered, and in one that somebody
// else edited. There a Pod is outdated when what we rendered changed, when a
// person let the rest of a found roll go on, or asked for a restart.
func outdated(set *appsv1.StatefulSet, p *corev1.Pod, edited bool) bool {
	if retried(set, p) {
		return true
	}
	if !behind(set, p) || kept(set, p) {
		return false
	}
	if stampOf(set) == "" {
		if p.Annotations[meta.AnnotationTemplate] != "" {
			return true // made from a template of ours that was put back
		}
		recorded, _ := readAccepted(set)
		return set.Annotations[meta.AnnotationRoll] == set.Status.UpdateRevision || restartAsked(set, p, recorded.Restart)
	}
	if !edited {
		return true
	}
	template := set.Spec.Template.Annotations
	return p.Annotations[meta.AnnotationTemplate] != template[meta.AnnotationTemplate] || p.Annotations[restartKubectl] != template[restartKubectl]
}

// restartAsked tells whether `kubectl rollout restart` was used on a set since it
// was taken over, and the Pod is from before.
func restartAsked(set *appsv1.StatefulSet, p *corev1.Pod, done restart) bool {
	asked := set.Spec.Template.Annotations[restartKubectl]
	return asked != "" && asked != done.Kubectl && p.Annotations[restartKubectl] != asked
}

// failure tells whether a Pod cannot run, and why it does not.
func failure(p *corev1.Pod) (why string, failed bool) {
	if p.DeletionTimestamp != nil {
		return "", false // it is going, however it ends
	}
	if p.Status.Phase == corev1.PodFailed {
		return "failed: " + p.Status.Message, true
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if w := c.State.Waiting; w != nil && failing[w.Reason] {
				return c.Name + ": " + w.Reason + lastWords(c), true
			}
		}
	}
	if nodeLost(p) {
		return "nobody hears from its node " + p.Spec.NodeName, false
	}
	return cmp.Or(unscheduled(p), tries(p)), false
}

// tries says of a Pod whose container has ended with a failure, and is about to be started
// again or was just now, what it ended with: Kubernetes calls it failing only in between.
func tries(p *corev1.Pod) string {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if ptr.Deref(c.Started, false) || c.Ready {
				continue
			}
			ended := c
			if t := c.State.Terminated; t != nil {
				ended.LastTerminationState.Terminated = t
			}
			if t := ended.LastTerminationState.Terminated; t != nil && t.ExitCode != 0 {
				return c.Name + ": it ended" + lastWords(ended)
			}
		}
	}
	return ""
}

var failing = map[string]bool{
	"CrashLoopBackOff": true, "ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true,
	"ErrImageNeverPull": true, "CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true,
}

// lastWords is what the container said when it last ended.
func lastWords(c corev1.ContainerStatus) string {
	t := c.LastTerminationState.Terminated
	switch {
	case t == nil:
		return ""
	case t.Message != "":
		return fmt.Sprintf(" (exit code %d: %.200s)", t.ExitCode, t.Message)
	}
	return fmt.Sprintf(" (exit code %d)", t.ExitCode)
}

func unscheduled(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return "cannot be scheduled: " + c.Message
		}
	}
	return ""
}

// servingFrontends counts the frontends that answer. A ready frontend has a
// master: its readiness is what its own health call says.
func servingFrontends(w World) int {
	n := 0
	for i := range w.Pods[string(dorisv1.ComponentFE)] {
		if ready(&w.Pods[string(dorisv1.ComponentFE)][i]) {
			n++
		}
	}
	return n
}
