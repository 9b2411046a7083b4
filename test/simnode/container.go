package simnode

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type containerKind int

const (
	mainContainer containerKind = iota
	initContainer
	sidecarContainer // an init container that always restarts
)

type containerState int

const (
	waiting containerState = iota
	running
	exited
)

const (
	reasonPull    = "ErrImagePull"
	reasonBackOff = "ImagePullBackOff"
	reasonCrash   = "CrashLoopBackOff"
	reasonConfig  = "CreateContainerConfigError"
)

// container is one container of a machine.
type container struct {
	name string
	kind containerKind

	state           containerState
	reason, message string // why it waits, unless simply nothing has happened yet
	image           string // of the running or last process
	starts          int32  // processes so far
	since           time.Time
	readyAt         time.Time
	runUntil        time.Time // zero: for ever
	downUntil       time.Time // no new process before
	failures        int       // crashes so far, for the back-off
	final           bool      // exited for good
	ready           bool
	exit, last      *corev1.ContainerStateTerminated

	pulling string // image whose pull fails
	retryAt time.Time

	allocated, actual corev1.ResourceRequirements
	process           Process
}

// exit is how a process ends.
type exit struct {
	code         int32
	reason, text string
}

func kindOf(spec *corev1.Container, init bool) containerKind {
	switch {
	case !init:
		return mainContainer
	case spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways:
		return sidecarContainer
	}
	return initContainer
}

// done reports whether an init container has run.
func (c *container) done() bool {
	return c.kind == initContainer && c.state == exited && c.exit.ExitCode == 0
}

// advance brings one container to where it is at t.now.
func (c *container) advance(m *machine, t *turn) {
	spec := specOf(t.pod, c.name)
	if spec == nil {
		return
	}
	if c.state == running {
		c.interrupt(m, t, spec)
	}
	if c.state != running && !c.final {
		c.start(m, t, spec)
	}
	c.observeReadiness(t, spec)
}

// interrupt ends the process if there is a reason to.
func (c *container) interrupt(m *machine, t *turn, spec *corev1.Container) {
	if rule, found := t.rules.forContainer(FaultCrashLoop, spec, c.kind); found {
		c.crash(t, exitOf(rule.ExitCode, 1, rule.Text))
		return
	}
	for _, cmd := range t.commands {
		if !cmd.evict && matches(cmd.container, c.name) {
			c.goDown(m, t, exitOf(cmd.exitCode, 0, cmd.text))
			return
		}
	}
	if c.image != spec.Image {
		t.events = append(t.events, event{
			corev1.EventTypeNormal, "Killing",
			fmt.Sprintf("Container %s definition changed, will be restarted", c.name),
		})
		c.goDown(m, t, exitOf(0, 0, ""))
		return
	}
	c.runOut(t)
}

// runOut ends a process that was to run for a time only.
func (c *container) runOut(t *turn) {
	switch {
	case c.runUntil.IsZero():
	case t.now.Before(c.runUntil):
		t.wakeAt(c.runUntil)
	default:
		c.crash(t, exitOf(0, 0, ""))
	}
}

func exitOf(code, otherwise int32, text string) exit {
	if code == 0 {
		code = otherwise
	}
	if code == 0 {
		return exit{0, "Completed", text}
	}
	return exit{code, "Error", text}
}

// goDown ends the process for a restart in place.
func (c *container) goDown(m *machine, t *turn, how exit) {
	c.exitWith(t, how)
	c.downUntil = t.now.Add(t.opts.Restart.draw(m.rand))
}

// exitWith ends the process and remembers how.
func (c *container) exitWith(t *turn, how exit) {
	c.stopProcess(t)
	c.state, c.reason, c.message = exited, "", ""
	c.exit = c.terminated(t, how)
	c.last = c.exit
	c.runUntil = time.Time{}
}

func (c *container) terminated(t *turn, how exit) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ExitCode: how.code, Reason: how.reason, Message: how.text,
		StartedAt: metav1.NewTime(c.since), FinishedAt: metav1.NewTime(t.now),
		ContainerID: c.id(t.pod),
	}
}

func (c *container) stopProcess(t *turn) {
	if c.state == running {
		t.stopped = append(t.stopped, c.process)
	}
}

// crash ends the process and waits before the next, unless the Pod's restart
// policy makes this end final.
func (c *container) crash(t *turn, how exit) {
	c.exitWith(t, how)
	policy := t.pod.Spec.RestartPolicy
	c.final = c.kind != sidecarContainer &&
		(policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && how.code == 0)
	if c.final {
		return
	}
	c.failures++
	if c.failures == 1 {
		// The first restart has no wait. It ended the same way, within the same write.
		c.starts++
		c.last = c.terminated(t, how)
	}
	wait := t.opts.Backoff.wait(c.failures)
	name := fmt.Sprintf("%s_%s(%s)", t.pod.Name, t.pod.Namespace, t.pod.UID)
	c.state, c.reason, c.exit = waiting, reasonCrash, nil
	c.message = fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", wait, c.name, name)
	c.downUntil = t.now.Add(wait)
	t.wakeAt(c.downUntil)
	t.warn("BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.name, name))
}

// start begins a process if nothing is in its way.
func (c *container) start(m *machine, t *turn, spec *corev1.Container) {
	if t.now.Before(c.downUntil) {
		t.wakeAt(c.downUntil)
		return
	}
	if rule, found := t.rules.forContainer(FaultImagePull, spec, c.kind); found {
		c.pullFails(t, spec.Image, rule.Text)
		return
	}
	if t.content == nil {
		t.needContent = true
		return
	}
	env, err := t.content.environment(t.pod, spec, m.at)
	if err != nil {
		t.blocked = true
		if c.reason != reasonConfig || c.message != err.Error() {
			t.warn("Failed", "Error: "+err.Error())
		}
		c.wait(reasonConfig, err.Error())
		return
	}
	if c.starts > 0 {
		m.refresh(t)
	}
	c.run(m, t, spec, env)
}

// refresh brings the volumes up to date for a container that starts again:
// the kubelet has synchronised them since. What is gone stays as it was.
func (m *machine) refresh(t *turn) {
	now, _ := t.content.mount(t.pod)
	maps.Copy(m.volumes, now)
}

func (c *container) run(m *machine, t *turn, spec *corev1.Container, env map[string]string) {
	c.starts++
	c.state, c.reason, c.message, c.exit, c.pulling = running, "", "", nil, ""
	c.image, c.since = spec.Image, t.now
	c.allocated, c.actual = spec.Resources, spec.Resources
	c.process = Process{
		Namespace: t.pod.Namespace, Pod: t.pod.Name, UID: t.pod.UID, Node: t.pod.Spec.NodeName, IP: m.at.pod,
		Container: c.name, Image: c.image, RestartCount: c.restarts(),
		Env: env, Volumes: volumesOf(spec, m.volumes), Files: filesOf(spec, m.volumes, env),
	}
	t.started = append(t.started, c.process)
	if rule, found := t.rules.forContainer(FaultCrashLoop, spec, c.kind); found {
		c.crash(t, exitOf(rule.ExitCode, 1, rule.Text))
		return
	}
	if c.kind == initContainer {
		c.exitWith(t, exitOf(0, 0, ""))
		c.last = nil
		return
	}
	c.readyAt = t.now
	if _, asked := t.pod.Annotations[AnnotationReady]; asked || spec.ReadinessProbe != nil || spec.StartupProbe != nil {
		c.readyAt = t.now.Add(t.delay(m, AnnotationReady, t.opts.Ready))
	}
	if c.kind == mainContainer && t.runs() {
		c.runUntil = t.now.Add(t.delay(m, AnnotationRun, t.opts.Run))
		c.runOut(t)
	}
}

func (c *container) wait(reason, message string) {
	if c.state == exited {
		c.exit = nil
	}
	c.state, c.reason, c.message = waiting, reason, message
}

// pullFails shows the two states of a pull that fails.
func (c *container) pullFails(t *turn, image, text string) {
	if text == "" {
		text = fmt.Sprintf("failed to pull and unpack image %q: not found", image)
	}
	switch {
	case c.pulling != image:
		c.pulling, c.retryAt = image, t.now.Add(t.opts.Backoff.First)
		c.wait(reasonPull, text)
		t.wakeAt(c.retryAt)
		t.warn("Failed", fmt.Sprintf("Failed to pull image %q: %s", image, text))
	case c.reason == reasonPull && t.now.Before(c.retryAt):
		t.wakeAt(c.retryAt)
	case c.reason == reasonPull:
		c.wait(reasonBackOff, fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", image, text))
		t.events = append(t.events, event{corev1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", image)})
	}
}

func (c *container) observeReadiness(t *turn, spec *corev1.Container) {
	_, never := t.rules.forContainer(FaultNeverReady, spec, c.kind)
	c.ready = c.state == running && !never && !t.now.Before(c.readyAt)
	if c.state == running && t.now.Before(c.readyAt) {
		t.wakeAt(c.readyAt)
	}
}

func (c *container) restarts() int32 { return max(0, c.starts-1) }

// id is the identity of the container's current or last process.
func (c *container) id(pod *corev1.Pod) string {
	return fmt.Sprintf("containerd://%x", sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, c.name, c.starts)))
}

// imageID is the identity of an image: as long as the name is the same, so is
// the image.
func imageID(image string) string {
	name := image
	if at := strings.LastIndex(name, "@"); at >= 0 {
		name = name[:at]
	}
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	return fmt.Sprintf("%s@sha256:%x", name, sha256.Sum256([]byte(image)))
}

func specOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, c := range allContainers(pod) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
