package simnode

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// adopt takes over a Pod that an earlier run of the simulator brought up, so
// that nothing restarts with it. What its processes had read is not known any
// more.
func (m *machine) adopt(pod *corev1.Pod, now time.Time) {
	m.written = ownStatus(pod)
	for _, c := range m.written.Conditions {
		m.conditions[c.Type] = c
	}
	if pod.Status.StartTime != nil {
		m.seenAt = pod.Status.StartTime.Time
	}
	if pod.Status.PodIP == "" {
		return // it was waiting; its start is drawn anew
	}
	m.at.pod = pod.Status.PodIP
	m.startAt, m.volumes = now, Volumes{}
	if pod.Status.Reason == "Evicted" {
		m.evicted = pod.Status.Message
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, s := range statuses {
		if c := m.container(s.Name); c != nil {
			c.adopt(pod, s)
		}
	}
}

func (c *container) adopt(pod *corev1.Pod, s corev1.ContainerStatus) {
	if s.ContainerID == "" {
		return
	}
	c.starts, c.image = s.RestartCount+1, s.Image
	c.last = s.LastTerminationState.Terminated
	switch {
	case s.State.Running != nil:
		c.state, c.since = running, s.State.Running.StartedAt.Time
		c.readyAt = c.since
		if spec := specOf(pod, c.name); spec != nil {
			c.allocated, c.actual = spec.Resources, spec.Resources
		}
		if s.Resources != nil {
			c.actual = *s.Resources
		}
		c.process = Process{
			Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Node: pod.Spec.NodeName, IP: pod.Status.PodIP,
			Container: c.name, Image: c.image, RestartCount: s.RestartCount,
		}
	case s.State.Terminated != nil:
		c.state, c.exit = exited, s.State.Terminated
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		c.final = c.kind == mainContainer && finished
	case s.State.Waiting != nil && s.State.Waiting.Reason == reasonCrash:
		c.reason, c.message, c.failures = reasonCrash, s.State.Waiting.Message, int(s.RestartCount)
	}
}

// ownStatus is the part of a Pod's status that a kubelet writes.
func ownStatus(pod *corev1.Pod) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	s.QOSClass = ""
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PodCondition) bool {
		return !isOwn(c)
	})
	return s
}
