package simnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// resize is where a change of resources in place has got to. Kubernetes 1.33
// and later show it as two conditions.
type resize struct {
	pendingReason  string // of PodResizePending; empty: no such condition
	pendingMessage string
	inProgress     bool // PodResizeInProgress
	until          time.Time
}

// stepResize compares the resources of running containers with the spec and
// refuses, defers or carries out the difference.
func (m *machine) stepResize(t *turn) {
	changed := m.resized(t.pod)
	if len(changed) == 0 {
		m.resize = resize{}
		return
	}
	if rule, found := t.rules.find(FaultResizeRefused); found {
		m.putOff(t, corev1.PodReasonInfeasible, rule.Text)
		return
	}
	if rule, found := t.rules.find(FaultResizeDeferred); found {
		m.putOff(t, corev1.PodReasonDeferred, rule.Text)
		return
	}
	if !m.resize.inProgress {
		m.resize = resize{inProgress: true, until: t.now.Add(t.opts.Resize.draw(m.rand))}
	}
	for _, c := range changed {
		c.allocated = specOf(t.pod, c.name).Resources
	}
	if t.now.Before(m.resize.until) {
		t.wakeAt(m.resize.until)
		return
	}
	for _, c := range changed {
		c.actuate(m, t)
	}
	m.resize = resize{}
}

// resized lists the running containers whose resources differ from the spec.
func (m *machine) resized(pod *corev1.Pod) []*container {
	var changed []*container
	for _, c := range m.containers {
		spec := specOf(pod, c.name)
		if c.state == running && spec != nil && !equality.Semantic.DeepEqual(c.actual, spec.Resources) {
			changed = append(changed, c)
		}
	}
	return changed
}

func (m *machine) putOff(t *turn, reason, text string) {
	message, eventReason := text, "ResizeDeferred"
	if reason == corev1.PodReasonInfeasible {
		eventReason = "ResizeInfeasible"
	}
	if message == "" && reason == corev1.PodReasonInfeasible {
		message = "Node didn't have enough capacity: memory"
	}
	if message == "" {
		message = "Node didn't have enough resource: memory"
	}
	if m.resize.pendingReason != reason {
		t.warn(eventReason, fmt.Sprintf("Pod resize %s: %s", reason, message))
	}
	m.resize.pendingReason, m.resize.pendingMessage = reason, message
}

// actuate gives a container its new resources, by a restart where its resize
// policy wants one.
func (c *container) actuate(m *machine, t *turn) {
	spec := specOf(t.pod, c.name)
	restart := restartForResize(spec, c.actual)
	c.actual = spec.Resources
	if !restart {
		return
	}
	c.goDown(m, t, exitOf(0, 0, ""))
	c.advance(m, t)
}

func restartForResize(spec *corev1.Container, old corev1.ResourceRequirements) bool {
	for _, policy := range spec.ResizePolicy {
		if policy.RestartPolicy != corev1.RestartContainer {
			continue
		}
		name := policy.ResourceName
		if !equality.Semantic.DeepEqual(old.Requests[name], spec.Resources.Requests[name]) ||
			!equality.Semantic.DeepEqual(old.Limits[name], spec.Resources.Limits[name]) {
			return true
		}
	}
	return false
}
