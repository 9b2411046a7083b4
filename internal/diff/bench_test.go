package diff_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
)

// large is a StatefulSet of the size of one of Doris: 30 variables, 12 mounts
// and volumes, probes, a preStop hook, affinity, two claim templates.
func large() *appsv1.StatefulSet {
	return set(func(s *appsv1.StatefulSet) {
		pod := &s.Spec.Template.Spec
		c := container(s)
		for i := range 30 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value"})
		}
		for i := range 12 {
			name := fmt.Sprintf("volume-%d", i)
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/opt/" + name})
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
			}})
		}
		for i := range 4 {
			c.Ports = append(c.Ports, corev1.ContainerPort{Name: fmt.Sprintf("port-%d", i), ContainerPort: int32(9000 + i)})
		}
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/api/health", Port: intstr.FromInt32(8030)}}, PeriodSeconds: 5}
		c.ReadinessProbe, c.LivenessProbe, c.StartupProbe = probe, probe, probe
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/opt/prestop.sh"}}}}
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 20, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: s.Spec.Selector},
		}}}}
		for _, name := range []string{"meta", "log"} {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
				},
			})
		}
	})
}

// BenchmarkCompare is the price of "nothing differs" for one StatefulSet: of
// finding it out, and of knowing it already.
func BenchmarkCompare(b *testing.B) {
	w := newWorld(b).apply(large(), manager)
	wanted := large()
	wanted.Spec.VolumeClaimTemplates = liveSetOf(w.live).Spec.VolumeClaimTemplates
	compare := func(b *testing.B, engine func() *diff.Engine) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			fields, err := engine().Compare(wanted, w.live, manager)
			if err != nil || len(fields) != 0 {
				b.Fatalf("fields %v, error %v", fields, err)
			}
		}
	}
	b.Run("first", func(b *testing.B) {
		compare(b, func() *diff.Engine { return diff.New(clientgoscheme.Scheme) })
	})
	b.Run("again", func(b *testing.B) {
		engine := diff.New(clientgoscheme.Scheme)
		compare(b, func() *diff.Engine { return engine })
	})
}

func liveSetOf(o client.Object) *appsv1.StatefulSet {
	s, _ := o.(*appsv1.StatefulSet)
	return s
}

// The memo may not answer for anything but the very same question.
func TestCompareAgainSeesEveryDifference(t *testing.T) {
	engine := diff.New(clientgoscheme.Scheme)
	w := newWorld(t).apply(set(), manager)
	again := func(wanted client.Object, live client.Object, manager string) int {
		t.Helper()
		fields, err := engine.Compare(wanted, live, manager)
		if err != nil {
			t.Fatal(err)
		}
		return len(fields)
	}
	for range 2 {
		if n := again(set(), w.live, manager); n != 0 {
			t.Fatalf("%d differences in the same object", n)
		}
	}
	if n := again(set(func(s *appsv1.StatefulSet) { container(s).Image = "fe:2" }), w.live, manager); n != 1 {
		t.Errorf("%d differences after the wanted object changed, want 1", n)
	}
	edited := w.live.DeepCopyObject().(*appsv1.StatefulSet)
	container(edited).Image = "fe:edited"
	if n := again(set(), edited, manager); n != 1 {
		t.Errorf("%d differences after the live object changed, want 1", n)
	}
	smaller := set(func(s *appsv1.StatefulSet) { container(s).Env = nil })
	if n := again(smaller, w.live, "somebody else"); n != 0 {
		t.Errorf("%d differences for a manager that owns nothing", n)
	}
	if n := again(smaller, w.live, manager); n != 2 {
		t.Errorf("%d differences for the manager that owns two variables, want 2", n)
	}
}
