package simnode

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// life steps one Pod's machine through time.
type life struct {
	t       *testing.T
	pod     *corev1.Pod
	machine *machine
	now     time.Time
	content content
	rules   rules
	opts    Options
	events  []string
	last    outcome
	reads   int
}

func newLife(t *testing.T, pod *corev1.Pod, opts Options) *life {
	t.Helper()
	l := &life{t: t, pod: pod, now: epoch, content: content{}, opts: opts.withDefaults()}
	start := &turn{pod: pod, now: l.now, opts: &l.opts}
	l.machine = newMachine(start, address{pod: "10.200.0.1", host: "10.199.0.1"}, rand.New(rand.NewPCG(1, 1)))
	return l
}

// step steps once, now, and returns the status.
func (l *life) step(commands ...command) corev1.PodStatus {
	l.t.Helper()
	turn := &turn{pod: l.pod, now: l.now, rules: l.rules, commands: commands, opts: &l.opts}
	l.machine.step(turn)
	if turn.needContent {
		l.reads++
		turn.content, turn.needContent, turn.commands = l.content, false, nil
		l.machine.step(turn)
	}
	if turn.needContent {
		l.t.Fatal("asks for content twice in one step")
	}
	for _, e := range turn.events {
		l.events = append(l.events, e.reason+": "+e.message)
	}
	for _, err := range turn.problems {
		l.events = append(l.events, "problem: "+err.Error())
	}
	l.last = turn.outcome
	return l.machine.status(l.pod, l.now)
}

// after moves the time on and steps.
func (l *life) after(d time.Duration, commands ...command) corev1.PodStatus {
	l.t.Helper()
	l.now = l.now.Add(d)
	return l.step(commands...)
}

func testPod(containers ...corev1.Container) *corev1.Pod {
	if len(containers) == 0 {
		containers = []corev1.Container{{Name: "be", Image: "apache/doris:be-2.1.8"}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "be-0", UID: "u1", Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: "sim-0", RestartPolicy: corev1.RestartPolicyAlways, Containers: containers},
	}
}

// summary is a status in one line: phase, readiness, then each container.
func summary(s corev1.PodStatus) string {
	parts := []string{string(s.Phase)}
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			parts = append(parts, "Ready")
		}
	}
	for _, c := range append(append([]corev1.ContainerStatus{}, s.InitContainerStatuses...), s.ContainerStatuses...) {
		state := "?"
		switch {
		case c.State.Running != nil:
			state = "running"
		case c.State.Waiting != nil:
			state = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			state = c.State.Terminated.Reason
		}
		if c.RestartCount > 0 {
			state += strings.Repeat("+", int(c.RestartCount))
		}
		parts = append(parts, c.Name+"="+state)
	}
	return strings.Join(parts, " ")
}

func (l *life) want(got corev1.PodStatus, want string) {
	l.t.Helper()
	if diff := cmp.Diff(want, summary(got)); diff != "" {
		l.t.Errorf("at +%s (-want +got):\n%s", l.now.Sub(epoch), diff)
	}
}

func TestPodStartsAfterItsDelay(t *testing.T) {
	l := newLife(t, testPod(), Options{Start: Fixed(3 * time.Second)})
	l.want(l.step(), "Pending be=ContainerCreating")
	if want := epoch.Add(3 * time.Second); !l.last.wake.Equal(want) {
		t.Errorf("wakes at %s, want %s", l.last.wake, want)
	}
	s := l.after(3 * time.Second)
	l.want(s, "Running Ready be=running")
	if !l.last.wake.IsZero() {
		t.Errorf("a running pod wakes at %s, want never", l.last.wake)
	}
	c := s.ContainerStatuses[0]
	if s.PodIP != "10.200.0.1" || s.HostIP != "10.199.0.1" || !*c.Started || c.ContainerID == "" ||
		!strings.HasPrefix(c.ImageID, "apache/doris@sha256:") {
		t.Errorf("status lacks addresses or identities: %+v", s)
	}
}

func TestProbedPodIsReadyLater(t *testing.T) {
	pod := testPod(corev1.Container{Name: "be", Image: "x", ReadinessProbe: &corev1.Probe{}, StartupProbe: &corev1.Probe{}})
	l := newLife(t, pod, Options{Start: Fixed(time.Second), Ready: Fixed(2 * time.Second)})
	s := l.after(time.Second)
	l.want(s, "Running be=running")
	if *s.ContainerStatuses[0].Started {
		t.Error("started before the startup probe passed")
	}
	l.want(l.after(time.Second), "Running be=running")
	l.want(l.after(time.Second), "Running Ready be=running")
}

func TestInitContainersRunInOrderAndSidecarsStay(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := testPod()
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "sysctl", Image: "a"}, {Name: "log", Image: "b", RestartPolicy: &always}, {Name: "wait", Image: "c"},
	}
	l := newLife(t, pod, Options{})
	l.rules = rules{{Fault: FaultImagePull, Image: "c"}}
	l.want(l.after(time.Second), "Pending sysctl=Completed log=running wait=ErrImagePull be=PodInitializing")
	l.rules = nil
	l.want(l.step(), "Running Ready sysctl=Completed log=running wait=Completed be=running")
}

func TestImagePullFailsUntilTheImageIsThere(t *testing.T) {
	l := newLife(t, testPod(), Options{})
	l.rules = rules{{Fault: FaultImagePull, Image: "apache/doris:*"}}
	l.want(l.after(time.Second), "Pending be=ErrImagePull")
	l.want(l.after(500*time.Millisecond), "Pending be=ErrImagePull")
	l.want(l.after(500*time.Millisecond), "Pending be=ImagePullBackOff")
	l.want(l.after(time.Minute), "Pending be=ImagePullBackOff")
	l.pod.Spec.Containers[0].Image = "other:1"
	l.want(l.step(), "Running Ready be=running")
	want := []string{
		`Failed: Failed to pull image "apache/doris:be-2.1.8": failed to pull and unpack image "apache/doris:be-2.1.8": not found`,
		`BackOff: Back-off pulling image "apache/doris:be-2.1.8"`,
	}
	if diff := cmp.Diff(want, l.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestCrashLoopBacksOffAndEnds(t *testing.T) {
	l := newLife(t, testPod(), Options{Backoff: Backoff{First: time.Second, Max: 3 * time.Second}})
	l.rules = rules{{Fault: FaultCrashLoop, ExitCode: 3, Text: "no space left"}}
	s := l.after(time.Second)
	l.want(s, "Running be=CrashLoopBackOff+")
	last := s.ContainerStatuses[0].LastTerminationState.Terminated
	if last.ExitCode != 3 || last.Message != "no space left" || last.Reason != "Error" {
		t.Errorf("last termination is %+v", last)
	}
	l.want(l.after(time.Second), "Running be=CrashLoopBackOff++")
	l.want(l.after(time.Second), "Running be=CrashLoopBackOff++")
	l.want(l.after(time.Second), "Running be=CrashLoopBackOff+++")
	if wait := l.last.wake.Sub(l.now); wait != 3*time.Second {
		t.Errorf("third wait is %s, want the maximum of 3s", wait)
	}
	l.rules = nil
	l.want(l.step(), "Running be=CrashLoopBackOff+++")
	l.want(l.after(3*time.Second), "Running Ready be=running++++")
}

func TestRunningContainerRestarts(t *testing.T) {
	for _, tc := range []struct {
		name    string
		disturb func(l *life) corev1.PodStatus
		exit    int32
	}{
		{
			name: "command with an exit code",
			disturb: func(l *life) corev1.PodStatus {
				return l.after(0, command{container: "be", exitCode: 137})
			},
			exit: 137,
		},
		{
			name: "annotation with a new value",
			disturb: func(l *life) corev1.PodStatus {
				l.pod.Annotations[AnnotationRestart], l.pod.Annotations[AnnotationExitCode] = "now", "9"
				return l.step()
			},
			exit: 9,
		},
		{
			name: "image patched in place",
			disturb: func(l *life) corev1.PodStatus {
				l.pod.Spec.Containers[0].Image = "apache/doris:be-3.0.0"
				return l.step()
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLife(t, testPod(), Options{Restart: Fixed(2 * time.Second)})
			before := l.after(time.Second).ContainerStatuses[0]
			down := tc.disturb(l)
			if down.ContainerStatuses[0].Ready || down.ContainerStatuses[0].State.Terminated == nil {
				t.Errorf("container is not down: %s", summary(down))
			}
			s := l.after(2 * time.Second)
			l.want(s, "Running Ready be=running+")
			after := s.ContainerStatuses[0]
			if last := after.LastTerminationState.Terminated; last == nil || last.ExitCode != tc.exit || last.ContainerID != before.ContainerID {
				t.Errorf("last termination is %+v, want exit code %d of the first process", last, tc.exit)
			}
			if after.ContainerID == before.ContainerID {
				t.Error("restarted container keeps its ID")
			}
			imageChanged := l.pod.Spec.Containers[0].Image != before.Image
			if (after.ImageID != before.ImageID) != imageChanged {
				t.Errorf("image ID went from %s to %s", before.ImageID, after.ImageID)
			}
			l.want(l.after(time.Minute), "Running Ready be=running+")
		})
	}
}

func TestInitContainersDoNotRunAgainWhenTheirImageIsPatched(t *testing.T) {
	pod := testPod()
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "doris:1"}}
	l := newLife(t, pod, Options{Restart: Fixed(0)})
	l.after(time.Second)
	pod.Spec.InitContainers[0].Image, pod.Spec.Containers[0].Image = "doris:2", "doris:2"
	s := l.step()
	l.want(s, "Running Ready init=Completed be=running+")
	if s.InitContainerStatuses[0].Image != "doris:1" {
		t.Errorf("init container ran again with %s", s.InitContainerStatuses[0].Image)
	}
}

func TestNeverReady(t *testing.T) {
	l := newLife(t, testPod(), Options{})
	l.want(l.after(time.Second), "Running Ready be=running")
	l.rules = rules{{Fault: FaultNeverReady}}
	s := l.after(time.Second)
	l.want(s, "Running be=running")
	if got := condition(s, corev1.PodReady); got.LastTransitionTime.Time != l.now || got.Reason != "ContainersNotReady" {
		t.Errorf("Ready is %+v", got)
	}
	l.rules = nil
	l.want(l.after(time.Second), "Running Ready be=running")
}

func condition(s corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func TestMissingContentIsWaitedFor(t *testing.T) {
	volume := func() *corev1.Pod {
		pod := testPod(corev1.Container{Name: "be", Image: "x", VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/etc/doris"}}})
		pod.Spec.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cred"}}}}
		return pod
	}
	env := func() *corev1.Pod {
		return testPod(corev1.Container{Name: "be", Image: "x", Env: []corev1.EnvVar{{Name: "P", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "cred"}, Key: "password"},
		}}}})
	}
	for _, tc := range []struct {
		name           string
		pod            *corev1.Pod
		waits, event   string
		partial        content
		waitsOnPartial string
	}{
		{
			name: "volume of a missing secret", pod: volume(), waits: "Pending be=ContainerCreating",
			event: `FailedMount: MountVolume.SetUp failed for volume "conf" : secret "cred" not found`,
		},
		{
			name: "variable of a missing secret", pod: env(), waits: "Pending be=CreateContainerConfigError",
			event: `Failed: Error: secret "cred" not found`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLife(t, tc.pod, Options{})
			l.want(l.after(time.Second), tc.waits)
			if !l.last.blocked {
				t.Error("is not known to wait for content")
			}
			l.want(l.after(time.Minute), tc.waits)
			if diff := cmp.Diff([]string{tc.event}, l.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			l.content = content{{secretKind, "cred"}: {"password": []byte("p")}}
			l.want(l.step(), "Running Ready be=running")
			if l.last.blocked {
				t.Error("still waits for content")
			}
		})
	}
}

func TestContentIsThatOfTheLastStart(t *testing.T) {
	pod := testPod(corev1.Container{
		Name: "be", Image: "x",
		EnvFrom:      []corev1.EnvFromSource{{Prefix: "X_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/etc/be.conf", SubPath: "be.conf"}},
	})
	pod.Spec.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}},
	}}}
	l := newLife(t, pod, Options{Restart: Fixed(0)})
	l.content = content{{configMapKind, "conf"}: {"be.conf": []byte("a=1")}}
	l.after(time.Second)
	want := Process{
		Namespace: "ns", Pod: "be-0", UID: "u1", Node: "sim-0", IP: "10.200.0.1", Container: "be", Image: "x",
		Env:     map[string]string{"X_be.conf": "a=1"},
		Volumes: Volumes{"conf": {"be.conf": "a=1"}},
		Files:   map[string]string{"/etc/be.conf": "a=1"},
	}
	if diff := cmp.Diff([]Process{want}, l.last.started); diff != "" {
		t.Errorf("first start (-want +got):\n%s", diff)
	}
	l.content = content{{configMapKind, "conf"}: {"be.conf": []byte("a=2")}}
	l.after(time.Hour)
	if got := l.machine.volumes["conf"]["be.conf"]; got != "a=1" {
		t.Errorf("a running container's content became %q", got)
	}
	l.after(0, command{})
	if got := l.machine.container("be").process; got.Files["/etc/be.conf"] != "a=2" || got.Env["X_be.conf"] != "a=2" || got.RestartCount != 1 {
		t.Errorf("restarted with %+v", got)
	}
	if l.reads != 2 {
		t.Errorf("content was read %d times for two starts", l.reads)
	}
}

func TestResize(t *testing.T) {
	limits := func(memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	pod := func(policy corev1.ResourceResizeRestartPolicy) *corev1.Pod {
		return testPod(corev1.Container{
			Name: "be", Image: "x", Resources: limits("1Gi"),
			ResizePolicy: []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: policy}},
		})
	}
	for _, tc := range []struct {
		name    string
		policy  corev1.ResourceResizeRestartPolicy
		rules   rules
		took    time.Duration
		want    string
		memory  string
		pending string
		doing   bool
	}{
		{name: "accepted at once without a restart", policy: corev1.NotRequired, want: "Running Ready be=running", memory: "2Gi"},
		{name: "accepted and in progress", policy: corev1.NotRequired, took: time.Hour, want: "Running Ready be=running", memory: "1Gi", doing: true},
		{name: "policy asks for a restart", policy: corev1.RestartContainer, want: "Running Ready be=running+", memory: "2Gi"},
		{
			name: "refused", policy: corev1.NotRequired, rules: rules{{Fault: FaultResizeRefused}},
			want: "Running Ready be=running", memory: "1Gi", pending: corev1.PodReasonInfeasible,
		},
		{
			name: "deferred", policy: corev1.NotRequired, rules: rules{{Fault: FaultResizeDeferred}},
			want: "Running Ready be=running", memory: "1Gi", pending: corev1.PodReasonDeferred,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLife(t, pod(tc.policy), Options{Resize: Fixed(tc.took), Restart: Fixed(0)})
			l.after(time.Second)
			l.rules = tc.rules
			l.pod.Spec.Containers[0].Resources = limits("2Gi")
			s := l.after(time.Second)
			l.want(s, tc.want)
			if got := s.ContainerStatuses[0].Resources.Limits.Memory().String(); got != tc.memory {
				t.Errorf("memory in status is %s, want %s", got, tc.memory)
			}
			if got := condition(s, corev1.PodResizePending).Reason; got != tc.pending {
				t.Errorf("pending for %q, want %q", got, tc.pending)
			}
			if got := condition(s, corev1.PodResizeInProgress).Status == corev1.ConditionTrue; got != tc.doing {
				t.Errorf("in progress is %t, want %t", got, tc.doing)
			}
			l.rules = nil
			end := l.after(2 * time.Hour)
			if got := end.ContainerStatuses[0].Resources.Limits.Memory().String(); got != "2Gi" {
				t.Errorf("memory in the end is %s, want 2Gi", got)
			}
			if p, d := condition(end, corev1.PodResizePending), condition(end, corev1.PodResizeInProgress); p.Type != "" || d.Type != "" {
				t.Errorf("conditions stay: %+v %+v", p, d)
			}
		})
	}
}

func TestDeletion(t *testing.T) {
	deleted := func(pod *corev1.Pod, grace int64) {
		now := metav1.NewTime(epoch)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
	}
	for _, tc := range []struct {
		name   string
		stop   Delay
		rules  rules
		grace  int64
		passed time.Duration
		want   bool
	}{
		{name: "ends at once", grace: 30, want: true},
		{name: "takes its time", stop: Fixed(5 * time.Second), grace: 30, passed: 4 * time.Second},
		{name: "has taken its time", stop: Fixed(5 * time.Second), grace: 30, passed: 5 * time.Second, want: true},
		{name: "is cut short by the grace period", stop: Fixed(time.Hour), grace: 30, passed: 30 * time.Second, want: true},
		{name: "hangs", grace: 30, rules: rules{{Fault: FaultDeleteHangs}}, passed: time.Hour},
		{name: "its node is frozen", grace: 30, rules: rules{{Fault: FaultFrozen}}, passed: time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLife(t, testPod(), Options{Stop: tc.stop})
			l.after(time.Second)
			deleted(l.pod, tc.grace)
			l.rules = tc.rules
			l.step()
			if tc.passed > 0 {
				l.after(tc.passed)
			}
			if l.last.remove != tc.want {
				t.Errorf("removed is %t, want %t", l.last.remove, tc.want)
			}
			if tc.want && len(l.last.stopped) != 1 {
				t.Errorf("%d processes stopped, want 1", len(l.last.stopped))
			}
		})
	}
}

func TestEvictionFailsThePodForGood(t *testing.T) {
	l := newLife(t, testPod(), Options{})
	l.after(time.Second)
	s := l.after(0, command{evict: true})
	l.want(s, "Failed be=Error")
	if s.Reason != "Evicted" || condition(s, corev1.DisruptionTarget).Reason != corev1.PodReasonTerminationByKubelet {
		t.Errorf("status says %q, %+v", s.Reason, condition(s, corev1.DisruptionTarget))
	}
	l.want(l.after(time.Hour), "Failed be=Error")
}

func TestPodOfAJobEnds(t *testing.T) {
	isTrue := true
	for _, tc := range []struct {
		name  string
		rules rules
		want  string
	}{
		{name: "well", want: "Succeeded be=Completed"},
		{name: "badly", rules: rules{{Fault: FaultCrashLoop}}, want: "Failed be=Error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := testPod()
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Controller: &isTrue}}
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			l := newLife(t, pod, Options{Run: Fixed(2 * time.Second)})
			l.rules = tc.rules
			l.after(time.Second)
			l.want(l.after(2*time.Second), tc.want)
			l.want(l.after(time.Hour), tc.want)
		})
	}
}

func TestReadinessGateHoldsReadinessBack(t *testing.T) {
	pod := testPod()
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	l := newLife(t, pod, Options{})
	l.want(l.after(time.Second), "Running be=running")
	pod.Status.Conditions = []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}}
	l.want(l.step(), "Running Ready be=running")
}

func TestAdoptedPodDoesNotMove(t *testing.T) {
	l := newLife(t, testPod(), Options{Restart: Fixed(0)})
	l.after(time.Second)
	before := l.after(0, command{exitCode: 2})
	l.pod.Status = before
	again := newLife(t, l.pod, Options{})
	again.machine.adopt(l.pod, again.now)
	after := again.after(time.Hour)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("status (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before, again.machine.written); diff != "" {
		t.Errorf("known as written (-before +after):\n%s", diff)
	}
}
