package doris

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// pod is a Pod of the set doris-be in one of the states that are told apart.
func pod(n int, state string) corev1.Pod {
	p := corev1.Pod{}
	p.Name = "doris-be-" + string(rune('0'+n))
	p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"}
	p.Status.Phase = corev1.PodRunning
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	be := corev1.ContainerStatus{Name: "be"}
	for word := range strings.FieldsSeq(state) {
		switch word {
		case "ready":
			ready.Status = corev1.ConditionTrue
		case "old":
			p.Labels[appsv1.ControllerRevisionHashLabelKey] = "old"
		case "starting":
			p.Status.Phase = corev1.PodPending
		case "leaving":
			p.DeletionTimestamp = &metav1.Time{Time: testTime}
		case "failed":
			p.Status.Phase, p.Status.Message = corev1.PodFailed, "The node was low on memory"
		case "pull":
			be.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
		case "crash":
			be.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
			be.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Message: "storage root is not a directory" + strings.Repeat("!", 1000)}
		case "ended":
			be.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 4, Message: "no room"}
		case "again":
			be.State.Running, be.Started = &corev1.ContainerStateRunning{}, new(false)
			be.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 4, Message: "no room"}
		case "started":
			be.Started = new(true)
		case "well":
			be.State.Terminated = &corev1.ContainerStateTerminated{}
		case "prepares":
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "runtime-config-init", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "the settings are not on the volume"},
			}}}
			be.State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
		case "unschedulable":
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes have enough memory",
			})
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, ready)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{be}
	return p
}

func pods(states ...string) []corev1.Pod {
	var list []corev1.Pod
	for n, state := range states {
		if state != "absent" {
			list = append(list, pod(n, state))
		}
	}
	return list
}

func backendSet(replicas int32) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{}
	set.Name, set.Generation = "doris-be", 2
	set.Annotations = map[string]string{meta.AnnotationRevision: "1"}
	set.Spec.Template.Annotations = map[string]string{meta.AnnotationTemplate: "of-ours"}
	set.Spec.Replicas = &replicas
	set.Status.ObservedGeneration, set.Status.UpdateRevision = 2, "new"
	return set
}

func TestPhases(t *testing.T) {
	t.Parallel()
	const (
		initializing = dorisv1.PhaseInitializing
		available    = dorisv1.PhaseAvailable
		upgrading    = dorisv1.PhaseUpgrading
		scaling      = dorisv1.PhaseScaling
		reconciling  = dorisv1.PhaseReconciling
		failed       = dorisv1.PhaseHaveMemberFailed
	)
	tests := map[string]struct {
		before dorisv1.ComponentPhase
		noSet  bool
		pods   []corev1.Pod
		wanted int32
		want   dorisv1.ComponentPhase
	}{
		"there is no set yet":                             {noSet: true, wanted: 3, want: initializing},
		"the set is gone":                                 {before: available, noSet: true, wanted: 3, want: initializing},
		"no Pod is there yet":                             {wanted: 3, want: initializing},
		"some are ready for the first time":               {before: initializing, pods: pods("ready", "starting"), wanted: 3, want: initializing},
		"all are ready":                                   {before: initializing, pods: pods("ready", "ready", "ready"), wanted: 3, want: available},
		"none is wanted":                                  {before: initializing, wanted: 0, want: available},
		"one cannot pull its image":                       {before: available, pods: pods("ready", "ready", "pull"), wanted: 3, want: failed},
		"one crashes from the start":                      {before: initializing, pods: pods("crash"), wanted: 1, want: failed},
		"one was evicted by its node":                     {before: available, pods: pods("ready", "failed"), wanted: 2, want: failed},
		"one is well again":                               {before: failed, pods: pods("ready", "ready", "ready"), wanted: 3, want: available},
		"some are outdated":                               {before: available, pods: pods("ready old", "ready old", "ready old"), wanted: 3, want: upgrading},
		"one was replaced and is on its way":              {before: upgrading, pods: pods("ready", "ready", "starting"), wanted: 3, want: upgrading},
		"the last was replaced and is not there yet":      {before: upgrading, pods: pods("absent", "ready", "ready"), wanted: 3, want: upgrading},
		"there are to be more":                            {before: available, pods: pods("ready", "ready", "ready"), wanted: 5, want: reconciling},
		"there are more than wanted":                      {before: available, pods: pods("ready", "ready", "ready"), wanted: 2, want: scaling},
		"one is not ready any more":                       {before: available, pods: pods("ready", "ready", "unready"), wanted: 3, want: reconciling},
		"the first start of an outdated Pod is no update": {before: initializing, pods: pods("ready old", "starting"), wanted: 2, want: initializing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			set := backendSet(tc.wanted)
			m := membersOf(set, tc.pods, "doris-be", int(tc.wanted), false)
			if got := phaseOf(tc.before, m, !tc.noSet); got != tc.want {
				t.Errorf("phase %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMembersDoNotChangeWhenAPodMerelyAppears(t *testing.T) {
	t.Parallel()
	set := backendSet(3)
	absent := membersOf(set, pods("ready", "ready"), "doris-be", 3, false)
	appeared := membersOf(set, pods("ready", "ready", "starting"), "doris-be", 3, false)
	if diff := cmp.Diff(absent, appeared, cmp.AllowUnexported(members{})); diff != "" {
		t.Errorf("the appearance of a Pod shows (-absent +there):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"doris-be-2"}, appeared.creating); diff != "" {
		t.Errorf("creating (-want +got):\n%s", diff)
	}
	leaving := membersOf(set, pods("ready", "ready", "ready leaving"), "doris-be", 3, false)
	if diff := cmp.Diff(absent, leaving, cmp.AllowUnexported(members{})); diff != "" {
		t.Errorf("a Pod that leaves and one that is missing differ (-absent +leaving):\n%s", diff)
	}
}

// TestWhatEndedBeforeIsNoTrouble holds that nothing is said of a process that ended well, or
// has started again since.
func TestWhatEndedBeforeIsNoTrouble(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"starting well", "again started", "again started ready", "starting"} {
		if m := membersOf(backendSet(2), pods("ready", state), "doris-be", 2, false); m.trouble != "" {
			t.Errorf("%s: trouble is %q", state, m.trouble)
		}
	}
}

func TestTroubleIsTold(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		state string
		want  string
		most  int
	}{
		"the last words of a crash, bounded": {"crash", "doris-be-1: be: CrashLoopBackOff (exit code 3: storage root is not a directory!!", 300},
		"a process that has just ended":      {"ended", "doris-be-1: be: it ended (exit code 4: no room)", 100},
		"one that is tried again":            {"again", "doris-be-1: be: it ended (exit code 4: no room)", 100},
		"one whose preparation fails":        {"starting prepares", "doris-be-1: runtime-config-init: it ended (exit code 1: the settings are not on the volume)", 100},
		"an image that cannot be pulled":     {"pull", "doris-be-1: be: ImagePullBackOff", 100},
		"a Pod that fits on no node":         {"starting unschedulable", "doris-be-1: cannot be scheduled: 0/3 nodes have enough memory", 100},
		"a Pod that its node evicted":        {"failed", "doris-be-1: failed: The node was low on memory", 100},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := membersOf(backendSet(2), pods("ready", tc.state), "doris-be", 2, false)
			if !strings.HasPrefix(m.trouble, tc.want) || len(m.trouble) > tc.most {
				t.Errorf("trouble is %q (%d bytes), want %q…", m.trouble, len(m.trouble), tc.want)
			}
			c := componentCondition(dorisv1.ComponentCondition{}, "doris-be", m, true, testTime)
			if c.Message != m.trouble || c.Reason == "" {
				t.Errorf("the old condition says %q, %q", c.Reason, c.Message)
			}
		})
	}
}

func TestTransitionTimeMovesWithThePhaseOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, smallCluster)
	at := func() map[string]time.Time {
		out := map[string]time.Time{}
		for _, c := range []*dorisv1.ComponentStatus{w.dc.Status.FeStatus, w.dc.Status.BeStatus} {
			out[c.ComponentCondition.SubResourceName] = c.ComponentCondition.LastTransitionTime.UTC()
		}
		return out
	}
	later := func(d time.Duration) { w.now = testTime.Add(d) }
	w.settle()
	start := map[string]time.Time{"doris-fe": testTime, "doris-be": testTime}
	if diff := cmp.Diff(start, at()); diff != "" {
		t.Fatalf("at first (-want +got):\n%s", diff)
	}
	later(time.Hour)
	before := w.dc.DeepCopy()
	w.settle()
	if diff := cmp.Diff(before, w.dc); diff != "" {
		t.Errorf("the status of an unchanged cluster changed (-before +after):\n%s", diff)
	}
	later(2 * time.Hour)
	w.broken["doris-be-0"] = true
	w.settle()
	if diff := cmp.Diff(map[string]time.Time{"doris-fe": testTime, "doris-be": testTime.Add(2 * time.Hour)}, at()); diff != "" {
		t.Errorf("when a backend fails (-want +got):\n%s", diff)
	}
	later(3 * time.Hour)
	w.settle()
	if diff := cmp.Diff(map[string]time.Time{"doris-fe": testTime, "doris-be": testTime.Add(2 * time.Hour)}, at()); diff != "" {
		t.Errorf("while it goes on failing (-want +got):\n%s", diff)
	}
}

func TestOldStatusOfASettledCluster(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	stamp := metav1.NewTime(testTime).Rfc3339Copy()
	want := &dorisv1.ComponentStatus{
		AccessService: "doris-be-service", RunningInstances: []string{"doris-be-0", "doris-be-1", "doris-be-2"},
		ComponentCondition: dorisv1.ComponentCondition{SubResourceName: "doris-be", Phase: dorisv1.PhaseAvailable, LastTransitionTime: stamp},
	}
	if diff := cmp.Diff(want, w.dc.Status.BeStatus); diff != "" {
		t.Errorf("beStatus (-want +got):\n%s", diff)
	}
	for _, c := range w.dc.Status.Conditions {
		if wantTrue := c.Type == meta.ConditionReady || c.Type == meta.ConditionAvailable; (c.Status == metav1.ConditionTrue) != wantTrue {
			t.Errorf("condition %s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
}

func TestAvailabilityGoesBothWays(t *testing.T) {
	t.Parallel()
	w := settled(t, smallCluster)
	for _, tc := range []struct{ pod, want string }{
		{"doris-fe-0", "no frontend serves (doris-fe-0: fe: ImagePullBackOff)"},
		{"doris-be-0", "no backend serves (doris-be-0: be: ImagePullBackOff)"},
	} {
		w.broken[tc.pod] = true
		w.settle()
		if got := condition(w.dc, meta.ConditionAvailable); got != "False NotServing: "+tc.want {
			t.Errorf("without %s Available is %q", tc.pod, got)
		}
		if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "False") {
			t.Errorf("without %s Ready is %q", tc.pod, got)
		}
		delete(w.broken, tc.pod)
		w.settle()
		if got := condition(w.dc, meta.ConditionAvailable); !strings.HasPrefix(got, "True") {
			t.Errorf("with %s again Available is %q", tc.pod, got)
		}
	}
}

// TestNothingIsAsked holds that a spec without any component does not pass for a
// database that serves.
func TestNothingIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "apiVersion: doris.selectdb.com/v1\nkind: DorisCluster\nmetadata: {name: doris}\nspec: {}\n")
	w.settle()
	for _, kind := range []string{meta.ConditionAvailable, meta.ConditionReady} {
		if got := condition(w.dc, kind); !strings.HasPrefix(got, "False NotServing: the spec asks for no component") {
			t.Errorf("%s is %q", kind, got)
		}
	}
}

// TestRefusedSpecDoesNotPassForServing holds that an edit which is refused is not
// believed when it is told whether the database serves.
func TestRefusedSpecDoesNotPassForServing(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec = nil })
	w.settle()
	if got := condition(w.dc, meta.ConditionAvailable); !strings.HasPrefix(got, "True") {
		t.Errorf("while all serve as before, Available is %q", got)
	}
	for _, name := range []string{"doris-fe-0", "doris-fe-1", "doris-fe-2"} {
		w.broken[name] = true
	}
	w.settle()
	if got := condition(w.dc, meta.ConditionAvailable); !strings.HasPrefix(got, "False NotServing: no frontend serves") {
		t.Errorf("without frontends Available is %q", got)
	}
}

func TestWhatTheExistingOperatorWroteIsKept(t *testing.T) {
	t.Parallel()
	w := settled(t, smallCluster)
	w.dc.Status.FeStatus.CoreConfigMapHashValue = "abc"
	w.settle()
	if got := w.dc.Status.FeStatus.CoreConfigMapHashValue; got != "abc" {
		t.Errorf("coreConfigMapHashValue is %q", got)
	}
}
