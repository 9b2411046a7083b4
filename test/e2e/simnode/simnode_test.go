// Package simnode holds the tests of the simulated nodes that need a control plane.
package simnode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/simnode"
)

func TestMain(m *testing.M) { clustertest.Main(m, cluster.Options{Nodes: cluster.None}) }

// scene is a namespace of the shared cluster with simulated nodes.
type scene struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
	sim       *simnode.Simulator
	audit     *audit.Log
}

var simulated struct {
	once  sync.Once
	sim   *simnode.Simulator
	trace trace
	err   error
}

// trace is what the hooks were called with.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (tr *trace) add(what string, p simnode.Process) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, fmt.Sprintf("%s/%s %s %s#%d", p.Namespace, p.Pod, what, p.Container, p.RestartCount))
}

func (tr *trace) of(namespace string) []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var own []string
	for _, line := range tr.lines {
		if rest, ok := strings.CutPrefix(line, namespace+"/"); ok {
			own = append(own, rest)
		}
	}
	return own
}

// stage gives a test its namespace. All tests share one simulator, which ends
// with the test binary.
func stage(t *testing.T) scene {
	t.Helper()
	c := clustertest.Shared(t)
	simulated.once.Do(func() {
		simulated.sim, simulated.err = simnode.Start(context.Background(), c.RESTConfig(), simnode.Options{
			Start: simnode.Fixed(20 * time.Millisecond), Restart: simnode.Fixed(0),
			Backoff: simnode.Backoff{First: 50 * time.Millisecond, Max: 200 * time.Millisecond},
			OnStart: func(p simnode.Process) { simulated.trace.add("start", p) },
			OnStop:  func(p simnode.Process) { simulated.trace.add("stop", p) },
			Log:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		})
	})
	if simulated.err != nil {
		t.Fatal(simulated.err)
	}
	return scene{t, clustertest.Client(t), clustertest.Namespace(t), simulated.sim, c.Audit()}
}

// await polls until the Pod is as wanted.
func (s scene) await(name string, what string, want func(*corev1.Pod) bool) *corev1.Pod {
	s.Helper()
	var last *corev1.Pod
	err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		pod, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		last = pod
		return want(pod), nil
	})
	if err != nil {
		status := "never seen"
		if last != nil {
			text, _ := json.Marshal(last.Status)
			status = string(text)
		}
		s.Fatalf("pod %s is never %s: %v; last status %s", name, what, err, status)
	}
	return last
}

func (s scene) awaitSummary(name, want string) *corev1.Pod {
	s.Helper()
	return s.await(name, want, func(pod *corev1.Pod) bool { return summary(pod.Status) == want })
}

func (s scene) create(pod *corev1.Pod) {
	s.Helper()
	if _, err := s.client.CoreV1().Pods(s.namespace).Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s scene) annotate(name string, annotations map[string]any) {
	s.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		s.Fatal(err)
	}
	_, err = s.client.CoreV1().Pods(s.namespace).Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// requests counts the simulator's writes in this namespace.
func (s scene) requests(since audit.Mark) audit.Counts {
	s.Helper()
	entries, err := s.audit.Since(since)
	if err != nil {
		s.Fatal(err)
	}
	// The test's own client has the test binary's name, which starts alike.
	entries = slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.UserAgent != simnode.UserAgent })
	return audit.Count(entries, audit.Filter{Namespaces: []string{s.namespace}})
}

func statefulSet(replicas int32) *appsv1.StatefulSet {
	labels := map[string]string{"app": "be"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "be"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "be", Image: "apache/doris:be-2.1.8", ReadinessProbe: &corev1.Probe{
						ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
					},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	}
}

func (s scene) awaitReplicas(name string, ready int32) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		set, err := s.client.AppsV1().StatefulSets(s.namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && set.Status.ReadyReplicas == ready && set.Status.Replicas == ready, err
	})
	if err != nil {
		s.Fatalf("stateful set never has %d ready replicas: %v", ready, err)
	}
}

func TestStatefulSetWithClaimsLivesAndGrows(t *testing.T) {
	s := stage(t)
	sets, claims := s.client.AppsV1().StatefulSets(s.namespace), s.client.CoreV1().PersistentVolumeClaims(s.namespace)
	if _, err := sets.Create(t.Context(), statefulSet(3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitReplicas("be", 3)

	t.Run("a deleted pod comes back with another address and UID", func(t *testing.T) {
		before := s.await("be-0", "there", func(*corev1.Pod) bool { return true })
		if err := s.client.CoreV1().Pods(s.namespace).Delete(t.Context(), "be-0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.await("be-0", "replaced", func(p *corev1.Pod) bool {
			return p.UID != before.UID && p.Status.PodIP != before.Status.PodIP && strings.HasPrefix(summary(p.Status), "Running Ready")
		})
	})
	t.Run("an evicted pod comes back", func(t *testing.T) {
		before := s.await("be-1", "there", func(*corev1.Pod) bool { return true })
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "be-1", Namespace: s.namespace}}
		if err := s.client.PolicyV1().Evictions(s.namespace).Evict(t.Context(), eviction); err != nil {
			t.Fatal(err)
		}
		s.await("be-1", "replaced", func(p *corev1.Pod) bool {
			return p.UID != before.UID && strings.HasPrefix(summary(p.Status), "Running Ready")
		})
	})
	t.Run("a claim grows", func(t *testing.T) {
		grow := []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		if _, err := claims.Patch(t.Context(), "data-be-0", types.MergePatchType, grow, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.awaitClaim("data-be-0", "2Gi", "")
	})
	t.Run("a claim's growth fails on request", func(t *testing.T) {
		grow := []byte(`{"metadata":{"annotations":{"simnode.fairlead.dev/fault":"growth-fails"}},"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
		if _, err := claims.Patch(t.Context(), "data-be-1", types.MergePatchType, grow, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.awaitClaim("data-be-1", "1Gi", corev1.PersistentVolumeClaimControllerResizeError)
		mend := []byte(`{"metadata":{"annotations":{"simnode.fairlead.dev/fault":null}}}`)
		if _, err := claims.Patch(t.Context(), "data-be-1", types.MergePatchType, mend, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.awaitClaim("data-be-1", "3Gi", "")
	})
	t.Run("scaled to none, the pods end", func(t *testing.T) {
		patch := []byte(`{"spec":{"replicas":0}}`)
		if _, err := sets.Patch(t.Context(), "be", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.awaitReplicas("be", 0)
	})
	t.Run("a deleted claim takes its volume along", func(t *testing.T) {
		claim, err := claims.Get(t.Context(), "data-be-2", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := claims.Delete(t.Context(), claim.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := s.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		if err != nil {
			t.Errorf("volume stays: %v", err)
		}
	})
}

func (s scene) awaitClaim(name, capacity string, kind corev1.PersistentVolumeClaimConditionType) {
	s.Helper()
	var last *corev1.PersistentVolumeClaim
	err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = s.client.CoreV1().PersistentVolumeClaims(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		has := slices.ContainsFunc(last.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == kind })
		return last.Status.Capacity.Storage().Cmp(resource.MustParse(capacity)) == 0 &&
			has == (kind != "") && len(last.Status.Conditions) < 2, nil
	})
	if err != nil {
		s.Fatalf("claim %s never has %s and condition %q: %v; status %+v", name, capacity, kind, err, last.Status)
	}
}

func TestPodCostsOneStatusWrite(t *testing.T) {
	s := stage(t)
	mark, err := s.audit.Mark()
	if err != nil {
		t.Fatal(err)
	}
	s.create(testPod())
	s.awaitSummary("be-0", "Running Ready be=running")
	if err := s.client.CoreV1().Pods(s.namespace).Delete(t.Context(), "be-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, "be-0", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"patch pods/status": 1, "delete pods": 1}
	got := map[string]int{}
	for key, n := range s.requests(mark) {
		got[key.Verb+" "+key.Resource] += n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests of the simulator (-want +got):\n%s", diff)
	}
}

func TestContentIsRememberedAsMounted(t *testing.T) {
	s := stage(t)
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	conf := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf"}, Data: map[string]string{"be.conf": "a=1"}}
	if _, err := maps.Create(t.Context(), conf, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := testPod(corev1.Container{Name: "be", Image: "x", VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/etc/doris"}}})
	pod.Spec.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}},
	}}}
	s.create(pod)
	s.awaitSummary("be-0", "Running Ready be=running")
	conf.Data["be.conf"] = "a=2"
	if _, err := maps.Update(t.Context(), conf, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[string]string{"conf": {"be.conf": "a=1"}}, s.sim.Mounted(s.namespace, "be-0")); diff != "" {
		t.Errorf("mounted (-want +got):\n%s", diff)
	}
	s.sim.RestartContainer(s.namespace, "be-0", "be", 1, "killed")
	s.awaitSummary("be-0", "Running Ready be=running+")
	p, found := s.sim.Process(s.namespace, "be-0", "be")
	if !found || p.Files["/etc/doris/be.conf"] != "a=2" {
		t.Errorf("restarted process read %+v", p.Files)
	}
	want := []string{"be-0 start be#0", "be-0 stop be#0", "be-0 start be#1"}
	if diff := cmp.Diff(want, simulated.trace.of(s.namespace)); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

func TestMissingSecretIsWaitedFor(t *testing.T) {
	s := stage(t)
	pod := testPod()
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cred"}}}}
	s.create(pod)
	s.await("be-0", "creating", func(p *corev1.Pod) bool { return len(p.Status.ContainerStatuses) == 1 })
	s.awaitSummary("be-0", "Pending be=ContainerCreating")
	s.awaitEvent("FailedMount", `secret "cred" not found`)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cred"}}
	if _, err := s.client.CoreV1().Secrets(s.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitSummary("be-0", "Running Ready be=running")
}

func (s scene) awaitEvent(reason, text string) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := s.client.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.Reason == reason && strings.Contains(e.Message, text) && e.Source.Component == "kubelet"
		}), nil
	})
	if err != nil {
		s.Errorf("no event %s with %q: %v", reason, text, err)
	}
}

func TestFaultsByAnnotation(t *testing.T) {
	s := stage(t)
	s.create(testPod())
	s.awaitSummary("be-0", "Running Ready be=running")
	s.annotate("be-0", map[string]any{simnode.AnnotationFault: "never-ready"})
	s.awaitSummary("be-0", "Running be=running")
	s.annotate("be-0", map[string]any{simnode.AnnotationFault: "crash-loop", simnode.AnnotationText: "boom", simnode.AnnotationExitCode: "3"})
	pod := s.await("be-0", "crashing", func(p *corev1.Pod) bool {
		w := p.Status.ContainerStatuses[0].State.Waiting
		return w != nil && w.Reason == "CrashLoopBackOff" && p.Status.ContainerStatuses[0].RestartCount > 2
	})
	if last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; last.ExitCode != 3 || last.Message != "boom" {
		t.Errorf("last termination is %+v", last)
	}
	s.annotate("be-0", map[string]any{simnode.AnnotationFault: nil})
	pod = s.await("be-0", "ready again", func(p *corev1.Pod) bool { return strings.HasPrefix(summary(p.Status), "Running Ready") })
	restarts := pod.Status.ContainerStatuses[0].RestartCount
	s.annotate("be-0", map[string]any{simnode.AnnotationRestart: "1"})
	s.await("be-0", "restarted", func(p *corev1.Pod) bool {
		return p.Status.ContainerStatuses[0].RestartCount == restarts+1 && strings.HasPrefix(summary(p.Status), "Running Ready")
	})
}

func TestInjectedImageFailure(t *testing.T) {
	s := stage(t)
	remove := s.sim.Inject(simnode.Rule{Fault: simnode.FaultImagePull, Namespace: s.namespace, Image: "apache/doris:be-*"})
	defer remove()
	s.create(testPod())
	s.awaitSummary("be-0", "Pending be=ImagePullBackOff")
	remove()
	s.awaitSummary("be-0", "Running Ready be=running")
}

func TestImagePatchedInPlace(t *testing.T) {
	s := stage(t)
	s.create(testPod())
	before := s.awaitSummary("be-0", "Running Ready be=running")
	patch := []byte(`{"spec":{"containers":[{"name":"be","image":"apache/doris:be-3.0.0"}]}}`)
	if _, err := s.client.CoreV1().Pods(s.namespace).Patch(t.Context(), "be-0", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	after := s.awaitSummary("be-0", "Running Ready be=running+")
	if after.UID != before.UID || after.Status.ContainerStatuses[0].ImageID == before.Status.ContainerStatuses[0].ImageID {
		t.Errorf("UID %s → %s, image ID %s", before.UID, after.UID, after.Status.ContainerStatuses[0].ImageID)
	}
}

func TestResizeInPlace(t *testing.T) {
	s := stage(t)
	memory := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size), corev1.ResourceCPU: resource.MustParse("1")}
	}
	s.create(testPod(corev1.Container{Name: "be", Image: "x", Resources: corev1.ResourceRequirements{Requests: memory("1Gi"), Limits: memory("1Gi")}}))
	s.awaitSummary("be-0", "Running Ready be=running")
	resizeTo := func(size string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"be","resources":{"requests":{"memory":%q},"limits":{"memory":%q}}}]}}`, size, size)
		_, err := s.client.CoreV1().Pods(s.namespace).Patch(t.Context(), "be-0", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(size string) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			c := p.Status.ContainerStatuses[0]
			return c.Resources.Limits.Memory().String() == size && c.RestartCount == 0 &&
				condition(p.Status, corev1.PodResizePending).Type == "" && p.Status.ObservedGeneration == p.Generation
		}
	}
	resizeTo("2Gi")
	s.await("be-0", "resized", has("2Gi"))
	for _, fault := range []struct {
		fault  simnode.Fault
		reason string
	}{{simnode.FaultResizeRefused, corev1.PodReasonInfeasible}, {simnode.FaultResizeDeferred, corev1.PodReasonDeferred}} {
		s.annotate("be-0", map[string]any{simnode.AnnotationFault: string(fault.fault)})
		resizeTo("3Gi")
		s.await("be-0", fault.reason, func(p *corev1.Pod) bool {
			return condition(p.Status, corev1.PodResizePending).Reason == fault.reason &&
				p.Status.ContainerStatuses[0].Resources.Limits.Memory().String() == "2Gi"
		})
	}
	s.annotate("be-0", map[string]any{simnode.AnnotationFault: nil})
	s.await("be-0", "resized", has("3Gi"))
}

func TestForeignConditionsAreKept(t *testing.T) {
	s := stage(t)
	pod := testPod()
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	s.create(pod)
	s.awaitSummary("be-0", "Running be=running")
	patch := []byte(`{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`)
	_, err := s.client.CoreV1().Pods(s.namespace).Patch(t.Context(), "be-0", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	got := s.awaitSummary("be-0", "Running Ready be=running")
	if condition(got.Status, "example.com/gate").Status != corev1.ConditionTrue || condition(got.Status, corev1.PodScheduled).Status != corev1.ConditionTrue {
		t.Errorf("conditions of others are lost: %+v", got.Status.Conditions)
	}
}

func TestThousandPods(t *testing.T) {
	s := stage(t)
	const sets, each = 20, 50
	started := time.Now()
	for i := range sets {
		set := statefulSet(each)
		set.Name = fmt.Sprintf("be-%d", i)
		set.Spec.Selector.MatchLabels = map[string]string{"app": set.Name}
		set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
		set.Spec.VolumeClaimTemplates = nil
		set.Spec.Template.Spec.Containers[0].VolumeMounts = nil
		if _, err := s.client.AppsV1().StatefulSets(s.namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range sets {
		s.awaitReplicas(fmt.Sprintf("be-%d", i), each)
	}
	t.Logf("%d pods ready after %s", sets*each, time.Since(started).Round(time.Millisecond))
	pods, err := s.client.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	for _, pod := range pods.Items {
		if other, taken := addresses[pod.Status.PodIP]; taken {
			t.Errorf("%s and %s share address %s", pod.Name, other, pod.Status.PodIP)
		}
		addresses[pod.Status.PodIP] = pod.Name
	}
}

func testPod(containers ...corev1.Container) *corev1.Pod {
	if len(containers) == 0 {
		containers = []corev1.Container{{Name: "be", Image: "apache/doris:be-2.1.8"}}
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "be-0"}, Spec: corev1.PodSpec{Containers: containers}}
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

func condition(s corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func TestFaultsOfANode(t *testing.T) {
	s := stage(t)
	annotateNode := func(annotations map[string]any) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.client.CoreV1().Nodes().Patch(t.Context(), "sim-0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	onNode := func(name, image string) *corev1.Pod {
		pod := testPod(corev1.Container{Name: "be", Image: image})
		pod.Name, pod.Spec.NodeSelector = name, map[string]string{corev1.LabelHostname: "sim-0"}
		return pod
	}
	annotateNode(map[string]any{simnode.AnnotationFailImages: "broken:*"})
	defer annotateNode(map[string]any{simnode.AnnotationFailImages: nil, simnode.AnnotationFault: nil})
	s.create(onNode("good", "fine:1"))
	s.create(onNode("bad", "broken:1"))
	s.awaitSummary("bad", "Pending be=ImagePullBackOff")
	s.awaitSummary("good", "Running Ready be=running")

	annotateNode(map[string]any{simnode.AnnotationFailImages: nil, simnode.AnnotationFault: string(simnode.FaultFrozen)})
	// Nodes and Pods come by different watches: the node's is here when a new
	// Pod is held back.
	late := ""
	for i := 0; late == ""; i++ {
		name := fmt.Sprintf("late-%d", i)
		s.create(onNode(name, "fine:1"))
		if !s.startsWithin(name, time.Second) {
			late = name
		}
	}
	if err := s.client.CoreV1().Pods(s.namespace).Delete(t.Context(), "good", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s.startsWithin(late, time.Second) {
		t.Error("a pod starts on a frozen node")
	}
	s.await("good", "terminating", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	annotateNode(map[string]any{simnode.AnnotationFault: nil})
	s.awaitSummary(late, "Running Ready be=running")
	s.awaitSummary("bad", "Running Ready be=running")
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, "good", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Errorf("pod is not removed after the node came back: %v", err)
	}
}

// startsWithin tells whether a Pod gets a status from its node in that time.
func (s scene) startsWithin(name string, d time.Duration) bool {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, d, true, func(ctx context.Context) (bool, error) {
		pod, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(pod.Status.ContainerStatuses) > 0, err
	})
	return err == nil
}

func TestRestartedSimulatorTakesOver(t *testing.T) {
	s := stage(t)
	s.create(testPod())
	s.awaitSummary("be-0", "Running Ready be=running")
	s.sim.RestartContainer(s.namespace, "be-0", "be", 1, "killed")
	before := s.awaitSummary("be-0", "Running Ready be=running+")
	s.sim.Stop()
	simulated.once = sync.Once{}
	mark, err := s.audit.Mark()
	if err != nil {
		t.Fatal(err)
	}
	s.sim = stage(t).sim
	pod := testPod()
	pod.Name = "be-1"
	s.create(pod)
	next := s.awaitSummary("be-1", "Running Ready be=running")
	if next.Status.PodIP == before.Status.PodIP {
		t.Errorf("both pods have address %s", next.Status.PodIP)
	}
	after := s.awaitSummary("be-0", "Running Ready be=running+")
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("status of the pod that was there (-before +after):\n%s", diff)
	}
	if n := s.requests(mark).Total(audit.Writes()...); n != 1 {
		t.Errorf("%d writes, want the one for the new pod:\n%s", n, s.requests(mark))
	}
	s.sim.RestartContainer(s.namespace, "be-0", "be", 1, "killed again")
	s.awaitSummary("be-0", "Running Ready be=running++")
}
