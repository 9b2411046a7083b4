package simnode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownConditions are the conditions that a kubelet writes. All others on a Pod
// belong to someone else and are left alone.
var ownConditions = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	corev1.PodResizePending, corev1.PodResizeInProgress, corev1.DisruptionTarget,
}

// status renders the machine as a kubelet would report it. Times of
// transition are kept from the last rendering.
func (m *machine) status(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	s := corev1.PodStatus{
		ObservedGeneration: pod.Generation,
		Phase:              m.phase(),
		HostIP:             m.at.host,
		HostIPs:            []corev1.HostIP{{IP: m.at.host}},
		StartTime:          &metav1.Time{Time: m.seenAt},
	}
	if m.evicted != "" {
		s.Reason, s.Message = "Evicted", m.evicted
	}
	if m.volumes != nil {
		s.PodIP = m.at.pod
		s.PodIPs = []corev1.PodIP{{IP: m.at.pod}}
	}
	for _, c := range m.containers {
		rendered := m.containerStatus(pod, c)
		if c.kind == mainContainer {
			s.ContainerStatuses = append(s.ContainerStatuses, rendered)
		} else {
			s.InitContainerStatuses = append(s.InitContainerStatuses, rendered)
		}
	}
	s.Conditions = m.renderConditions(pod, s.Phase, now)
	return s
}

// phase follows the kubelet's rules.
func (m *machine) phase() corev1.PodPhase {
	if m.evicted != "" {
		return corev1.PodFailed
	}
	count := map[containerFate]int{}
	for _, c := range m.containers {
		if c.kind == mainContainer || c.fate() == failed {
			count[c.fate()]++
		}
	}
	switch {
	case count[unborn] > 0 && count[failed] == 0 || len(m.containers) == 0:
		return corev1.PodPending
	case count[alive] > 0:
		return corev1.PodRunning
	case count[failed] > 0:
		return corev1.PodFailed
	}
	return corev1.PodSucceeded
}

// containerFate is what a container's state means for the Pod's phase.
type containerFate int

const (
	unborn containerFate = iota // never ran
	alive                       // runs, or will run again
	completed
	failed
)

func (c *container) fate() containerFate {
	switch {
	case c.state == exited && c.final && c.exit.ExitCode != 0:
		return failed
	case c.state == exited && c.final:
		return completed
	case c.starts > 0:
		return alive
	}
	return unborn
}

func (m *machine) containerStatus(pod *corev1.Pod, c *container) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.name, RestartCount: c.restarts(), Ready: c.ready || c.done()}
	if spec := specOf(pod, c.name); spec != nil {
		s.Image = spec.Image
	}
	if c.starts > 0 {
		s.Image, s.ImageID, s.ContainerID = c.image, imageID(c.image), c.id(pod)
	}
	started := c.state == running && (c.ready || !hasStartupProbe(pod, c.name))
	s.Started = &started
	switch c.state {
	case running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.since)}
		s.AllocatedResources = c.allocated.Requests
		s.Resources = c.actual.DeepCopy()
	case exited:
		s.State.Terminated = c.exit
	default:
		s.State.Waiting = m.waitingState(c)
	}
	// The last process but one, unless the container waits between two.
	if c.last != nil && c.last != c.exit {
		s.LastTerminationState.Terminated = c.last
	}
	return s
}

func (m *machine) waitingState(c *container) *corev1.ContainerStateWaiting {
	if c.reason != "" {
		return &corev1.ContainerStateWaiting{Reason: c.reason, Message: c.message}
	}
	if m.volumes != nil && c.kind == mainContainer && m.initialized() {
		return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	if len(m.containers) > 0 && m.containers[0].kind != mainContainer {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

func hasStartupProbe(pod *corev1.Pod, name string) bool {
	spec := specOf(pod, name)
	return spec != nil && spec.StartupProbe != nil
}

func (m *machine) initialized() bool {
	return len(m.uninitialized()) == 0
}

// uninitialized lists the init containers that hold the others up.
func (m *machine) uninitialized() []string {
	var names []string
	if m.mainStarted() {
		return nil
	}
	for _, c := range m.containers {
		if c.kind == initContainer && !c.done() || c.kind == sidecarContainer && c.state != running {
			names = append(names, c.name)
		}
	}
	return names
}

func (m *machine) unready() []string {
	var names []string
	for _, c := range m.containers {
		if c.kind == mainContainer && !c.ready {
			names = append(names, c.name)
		}
	}
	return names
}

func (m *machine) renderConditions(pod *corev1.Pod, phase corev1.PodPhase, now time.Time) []corev1.PodCondition {
	found := []corev1.PodCondition{
		truth(corev1.PodReadyToStartContainers, m.volumes != nil && m.evicted == ""),
		m.initializedCondition(),
		m.readyCondition(corev1.ContainersReady, phase),
		m.readyCondition(corev1.PodReady, phase),
	}
	if ready := &found[3]; ready.Status == corev1.ConditionTrue {
		m.applyGates(pod, ready)
	}
	if m.resize.pendingReason != "" {
		found = append(found, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: m.resize.pendingReason, Message: m.resize.pendingMessage,
		})
	}
	if m.resize.inProgress {
		found = append(found, truth(corev1.PodResizeInProgress, true))
	}
	if m.evicted != "" {
		found = append(found, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonTerminationByKubelet, Message: m.evicted,
		})
	}
	m.stamp(found, pod.Generation, now)
	return found
}

// stamp keeps the time of transition where the status is as before, and
// remembers what was rendered.
func (m *machine) stamp(found []corev1.PodCondition, generation int64, now time.Time) {
	rendered := map[corev1.PodConditionType]corev1.PodCondition{}
	for i := range found {
		c := &found[i]
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now)
		if before, had := m.conditions[c.Type]; had && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		rendered[c.Type] = *c
	}
	m.conditions = rendered
}

func truth(kind corev1.PodConditionType, is bool) corev1.PodCondition {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	return corev1.PodCondition{Type: kind, Status: status}
}

func (m *machine) initializedCondition() corev1.PodCondition {
	names := m.uninitialized()
	c := truth(corev1.PodInitialized, len(names) == 0)
	if len(names) > 0 {
		c.Reason = "ContainersNotInitialized"
		c.Message = fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(names, " "))
	}
	return c
}

func (m *machine) readyCondition(kind corev1.PodConditionType, phase corev1.PodPhase) corev1.PodCondition {
	names := m.unready()
	c := truth(kind, len(names) == 0)
	switch {
	case phase == corev1.PodSucceeded:
		c.Reason = "PodCompleted"
	case phase == corev1.PodFailed:
		c.Status, c.Reason = corev1.ConditionFalse, "PodFailed"
	case len(names) > 0:
		c.Reason = "ContainersNotReady"
		c.Message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(names, " "))
	}
	return c
}

// applyGates takes readiness back while a readiness gate is not True.
func (m *machine) applyGates(pod *corev1.Pod, ready *corev1.PodCondition) {
	var messages []string
	for _, gate := range pod.Spec.ReadinessGates {
		i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate.ConditionType })
		switch {
		case i < 0:
			messages = append(messages, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case pod.Status.Conditions[i].Status != corev1.ConditionTrue:
			messages = append(messages, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v",
				gate.ConditionType, pod.Status.Conditions[i].Status))
		}
	}
	if len(messages) > 0 {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(messages, ", ")
	}
}

// isOwn tells the kubelet's conditions from those of others. The eviction API
// writes one of the same type as the kubelet.
func isOwn(c corev1.PodCondition) bool {
	if c.Type == corev1.DisruptionTarget {
		return c.Reason == corev1.PodReasonTerminationByKubelet
	}
	return slices.Contains(ownConditions, c.Type)
}

// foreignConditions are those that others wrote.
func foreignConditions(pod *corev1.Pod) []corev1.PodCondition {
	var others []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		if !isOwn(c) {
			others = append(others, c)
		}
	}
	return others
}
