package simnode

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// machine is what the simulator knows of one Pod. It is changed by step alone.
type machine struct {
	uid        types.UID
	at         address
	rand       *rand.Rand
	seenAt     time.Time
	startAt    time.Time
	containers []*container // in the order of allContainers

	volumes      Volumes         // nil until they are mounted
	told         map[string]bool // events about volumes that were made
	evicted      string          // why the kubelet failed the Pod
	resize       resize
	restartValue string // of AnnotationRestart, as it was acted on
	deleteAt     time.Time
	removed      bool

	conditions map[corev1.PodConditionType]corev1.PodCondition // as last rendered
	written    corev1.PodStatus                                // as last written
}

// event is a Kubernetes event to be made about the Pod.
type event struct {
	kind, reason, message string
}

// command is something asked of one Pod once.
type command struct {
	evict     bool
	container string // pattern; which containers restart
	exitCode  int32
	text      string
}

// turn is one step's input and, in outcome, what comes of it beyond the
// changed machine.
type turn struct {
	pod      *corev1.Pod
	now      time.Time
	rules    rules
	content  content // nil: not read yet
	commands []command
	opts     *Options

	outcome
}

type outcome struct {
	wake        time.Time // when to step again; zero: when something changes
	events      []event
	problems    []error
	started     []Process
	stopped     []Process
	needContent bool // nothing more can start before the content was read
	blocked     bool // something waits for a ConfigMap or Secret
	remove      bool // the Pod has ended and is to be removed
}

func (o *outcome) wakeAt(at time.Time) {
	if o.wake.IsZero() || at.Before(o.wake) {
		o.wake = at
	}
}

func (o *outcome) warn(reason, message string) {
	o.events = append(o.events, event{corev1.EventTypeWarning, reason, message})
}

// delay draws what an annotation of the Pod says, or else the option.
func (t *turn) delay(m *machine, annotation string, option Delay) time.Duration {
	text, asked := t.pod.Annotations[annotation]
	if !asked {
		return option.draw(m.rand)
	}
	own, err := ParseDelay(text)
	if err != nil {
		t.problems = append(t.problems, err)
		return option.draw(m.rand)
	}
	return own.draw(m.rand)
}

// newMachine starts the life of a Pod that was just bound.
func newMachine(t *turn, at address, r *rand.Rand) *machine {
	m := &machine{
		uid: t.pod.UID, at: at, rand: r, seenAt: t.now,
		told:         map[string]bool{},
		restartValue: t.pod.Annotations[AnnotationRestart],
		conditions:   map[corev1.PodConditionType]corev1.PodCondition{},
	}
	for i, spec := range allContainers(t.pod) {
		m.containers = append(m.containers, &container{
			name: spec.Name, kind: kindOf(spec, i < len(t.pod.Spec.InitContainers)),
		})
	}
	m.startAt = t.now.Add(t.delay(m, AnnotationStart, t.opts.Start))
	return m
}

// step brings the machine to where it is at t.now.
func (m *machine) step(t *turn) {
	if m.removed || t.rules.has(FaultFrozen) {
		return
	}
	if t.pod.DeletionTimestamp != nil {
		m.end(t)
		return
	}
	if m.finished() {
		return
	}
	if reason, evicted := evictionOf(t); evicted {
		m.evict(t, reason)
		return
	}
	if t.now.Before(m.startAt) {
		t.wakeAt(m.startAt)
		return
	}
	m.takeRestartAnnotation(t)
	if m.mount(t) && m.initialize(t) {
		for _, c := range m.containers {
			if c.kind == mainContainer {
				c.advance(m, t)
			}
		}
	}
	m.stepResize(t)
}

// end lets a deleted Pod finish.
func (m *machine) end(t *turn) {
	if t.rules.has(FaultDeleteHangs) {
		return
	}
	if m.deleteAt.IsZero() {
		took := t.opts.Stop.draw(m.rand)
		if grace := t.pod.DeletionGracePeriodSeconds; grace != nil {
			took = min(took, time.Duration(*grace)*time.Second)
		}
		m.deleteAt = t.now.Add(took)
	}
	if t.now.Before(m.deleteAt) {
		t.wakeAt(m.deleteAt)
		return
	}
	for _, c := range m.containers {
		if c.state == running {
			c.exitWith(t, exitOf(0, 0, ""))
		}
	}
	t.remove = true
}

// finished reports whether the Pod's phase is one that is never left.
func (m *machine) finished() bool {
	phase := m.phase()
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

func evictionOf(t *turn) (string, bool) {
	for _, c := range t.commands {
		if c.evict {
			return c.text, true
		}
	}
	rule, found := t.rules.find(FaultEvicted)
	return rule.Text, found
}

// evict fails the Pod as a kubelet does that runs out of memory.
func (m *machine) evict(t *turn, reason string) {
	if reason == "" {
		reason = "The node was low on resource: memory."
	}
	m.evicted = reason
	for _, c := range m.containers {
		if c.state == running {
			c.exitWith(t, exit{code: 137, reason: "Error"})
			c.final = true
		}
	}
	t.warn("Evicted", reason)
}

// takeRestartAnnotation turns a changed annotation into a command.
func (m *machine) takeRestartAnnotation(t *turn) {
	value := t.pod.Annotations[AnnotationRestart]
	if value == m.restartValue {
		return
	}
	m.restartValue = value
	if value == "" {
		return
	}
	code, err := parseExitCode(t.pod.Annotations[AnnotationExitCode])
	if err != nil {
		t.problems = append(t.problems, err)
	}
	t.commands = append(t.commands, command{
		container: t.pod.Annotations[AnnotationContainer], exitCode: code, text: t.pod.Annotations[AnnotationText],
	})
}

// mount sets up the volumes, or says that they wait.
func (m *machine) mount(t *turn) bool {
	if m.volumes != nil {
		return true
	}
	if t.content == nil {
		t.needContent = true
		return false
	}
	volumes, failed := t.content.mount(t.pod)
	if len(failed) == 0 {
		m.volumes = volumes
		return true
	}
	t.blocked = true
	for _, f := range failed {
		if !m.told[f.text] {
			m.told[f.text] = true
			t.warn("FailedMount", f.text)
		}
	}
	return false
}

// initialize runs the init containers in order and reports whether the others
// may run.
func (m *machine) initialize(t *turn) bool {
	for _, c := range m.containers {
		switch {
		case c.kind == mainContainer:
			return true
		case c.kind == initContainer && c.done():
		default:
			c.advance(m, t)
			if !m.mainStarted() && !c.done() && (c.kind == initContainer || c.state != running) {
				return false
			}
		}
	}
	return true
}

func (m *machine) mainStarted() bool {
	for _, c := range m.containers {
		if c.kind == mainContainer && c.starts > 0 {
			return true
		}
	}
	return false
}

func (m *machine) container(name string) *container {
	for _, c := range m.containers {
		if c.name == name {
			return c
		}
	}
	return nil
}

// runs says how long the containers of this Pod run; for ever if not found.
func (t *turn) runs() bool {
	if _, asked := t.pod.Annotations[AnnotationRun]; asked {
		return true
	}
	owner := metav1.GetControllerOf(t.pod)
	return owner != nil && owner.Kind == "Job"
}
