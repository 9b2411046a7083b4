package simnode

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// disturbances are what can happen to a Pod between two steps.
var disturbances = []struct {
	name string
	do   func(t *rapid.T, l *drawnLife)
}{
	{"time passes", func(t *rapid.T, l *drawnLife) {
		l.now = l.now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
	}},
	{"a fault begins", func(t *rapid.T, l *drawnLife) {
		faults := []Fault{FaultImagePull, FaultCrashLoop, FaultNeverReady, FaultResizeRefused, FaultResizeDeferred, FaultFrozen}
		l.rules = append(l.rules, Rule{Fault: rapid.SampledFrom(faults).Draw(t, "fault"), Container: rapid.SampledFrom([]string{"", "init", "be"}).Draw(t, "container")})
	}},
	{"faults end", func(_ *rapid.T, l *drawnLife) { l.rules = nil }},
	{"the secret comes or goes", func(_ *rapid.T, l *drawnLife) {
		if len(l.content) > 0 {
			l.content = content{}
			return
		}
		l.content = secretThere()
	}},
	{"the image is patched", func(t *rapid.T, l *drawnLife) {
		l.pod.Spec.Containers[0].Image = rapid.SampledFrom([]string{"a:1", "a:2"}).Draw(t, "image")
	}},
	{"memory is resized", func(t *rapid.T, l *drawnLife) {
		size := rapid.SampledFrom([]string{"1Gi", "2Gi", "3Gi"}).Draw(t, "size")
		l.pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
	}},
	{"a restart is asked for", func(_ *rapid.T, l *drawnLife) { l.commands = append(l.commands, command{exitCode: 1}) }},
	{"the simulator restarts", func(_ *rapid.T, l *drawnLife) { l.adoptAnew() }},
}

func secretThere() content { return content{{secretKind, "cred"}: {"password": []byte("p")}} }

// drawnLife is a Pod's life under drawn disturbances.
type drawnLife struct {
	pod      *corev1.Pod
	machine  *machine
	now      time.Time
	rules    rules
	content  content
	commands []command
	opts     Options
	wake     time.Time
}

func newDrawnLife(probed bool) *drawnLife {
	l := &drawnLife{now: epoch, content: secretThere(), opts: Options{
		Start: Uniform(0, 2*time.Second), Ready: Uniform(0, time.Second), Resize: Uniform(0, time.Second),
	}.withDefaults()}
	l.pod = testPod(corev1.Container{
		Name: "be", Image: "a:1",
		EnvFrom:   []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("cred")}}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
	})
	l.pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "a:1"}}
	if probed {
		l.pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
	}
	l.machine = l.fresh()
	return l
}

func (l *drawnLife) fresh() *machine {
	start := &turn{pod: l.pod, now: l.now, opts: &l.opts}
	return newMachine(start, address{pod: "10.200.0.1", host: "10.199.0.1"}, rand.New(rand.NewPCG(1, 1)))
}

// adoptAnew forgets the machine and takes the Pod over from its status.
func (l *drawnLife) adoptAnew() {
	l.machine = l.fresh()
	l.machine.adopt(l.pod, l.now)
}

// step does as a worker does, and checks what holds at any time.
func (l *drawnLife) step(t *rapid.T) {
	turn := &turn{pod: l.pod, now: l.now, rules: l.rules, commands: l.commands, opts: &l.opts}
	l.commands = nil
	l.machine.step(turn)
	if turn.needContent {
		turn.content, turn.needContent, turn.commands = l.content, false, nil
		l.machine.step(turn)
	}
	if turn.needContent {
		t.Fatal("asks for content twice in one step")
	}
	l.wake = turn.wake
	if !turn.wake.IsZero() && !turn.wake.After(l.now) {
		t.Fatalf("wakes at %s, which is now or before: it would spin", turn.wake)
	}
	before, after := l.pod.Status, l.machine.status(l.pod, l.now)
	if l.now.Before(l.machine.startAt) {
		return // nothing is written before the start
	}
	checkRestarts(t, before, after)
	again := l.machine.status(l.pod, l.now.Add(time.Hour))
	if !statusEqual(after, again) {
		t.Fatal("rendering alone changes the status")
	}
	l.pod.Status = after
}

func statusEqual(a, b corev1.PodStatus) bool { return summary(a) == summary(b) && a.PodIP == b.PodIP }

// checkRestarts holds that a restart count only grows, and that a process is
// known by its ID: another process, another ID.
func checkRestarts(t *rapid.T, before, after corev1.PodStatus) {
	if len(before.ContainerStatuses) == 0 {
		return
	}
	b, a := before.ContainerStatuses[0], after.ContainerStatuses[0]
	if a.RestartCount < b.RestartCount {
		t.Fatalf("restart count went from %d to %d", b.RestartCount, a.RestartCount)
	}
	if a.RestartCount > b.RestartCount && a.ContainerID == b.ContainerID {
		t.Fatalf("restarted with the same container ID %s", a.ContainerID)
	}
	if a.Ready && a.State.Running == nil {
		t.Fatalf("ready without running: %s", summary(after))
	}
}

func TestPodSettlesOnceFaultsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newDrawnLife(rapid.Bool().Draw(t, "probed"))
		for range rapid.IntRange(0, 30).Draw(t, "disturbances") {
			d := rapid.SampledFrom(disturbances).Draw(t, "disturbance")
			t.Log(d.name)
			d.do(t, l)
			l.step(t)
		}
		l.rules, l.content = nil, secretThere()
		l.step(t)
		for range 10 {
			if l.wake.IsZero() {
				break
			}
			l.now = l.wake
			l.step(t)
		}
		if !l.wake.IsZero() || !ready(l.pod.Status) {
			t.Fatalf("never settles: %s, wakes at %s", summary(l.pod.Status), l.wake)
		}
		c := l.pod.Status.ContainerStatuses[0]
		if spec := l.pod.Spec.Containers[0]; c.Image != spec.Image || c.Resources.Limits.Memory().Cmp(*spec.Resources.Limits.Memory()) != 0 {
			t.Fatalf("settles with image %s and %s, wanted %s and %s", c.Image, c.Resources.Limits.Memory(), spec.Image, spec.Resources.Limits.Memory())
		}
	})
}

func ready(s corev1.PodStatus) bool {
	return condition(s, corev1.PodReady).Status == corev1.ConditionTrue
}

func TestDrawsDependOnSeedNameAndLifeAlone(t *testing.T) {
	draw := func(seed uint64, name string, life uint64) time.Duration {
		s := &Simulator{opts: Options{Seed: seed}}
		return Uniform(0, time.Hour).draw(s.random(name, life))
	}
	first := draw(1, "ns/a", 1)
	if draw(1, "ns/a", 1) != first {
		t.Error("the same draw differs")
	}
	for _, other := range []time.Duration{draw(2, "ns/a", 1), draw(1, "ns/b", 1), draw(1, "ns/a", 2)} {
		if other == first {
			t.Error("another seed, name or life draws the same")
		}
	}
}
