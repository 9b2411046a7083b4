package kernel_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/toy"
)

// writer is a Writer that reads nothing from a cache, as an operator of its own.
func (s *stage) writer() (*apply.Writer, *operator) {
	s.Helper()
	config := rest.CopyConfig(s.config)
	config.UserAgent = "toy-writer-" + s.namespace
	c, err := client.New(config, client.Options{Scheme: types()})
	s.ok(err)
	return apply.NewWriter(c, c, diff.New(types()), time.Now), &operator{stage: s, agent: config.UserAgent}
}

// runningPod is a Pod that serves, as far as the API server knows.
func (s *stage) runningPod(name string) *corev1.Pod {
	s.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: app},
		Spec:       corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: ptr.To[int64](0)},
	}
	s.eventually("a Pod to be admitted", func() error { return s.Create(s.Context(), p.DeepCopy()) }) // once there is a service account
	s.ok(s.Get(s.Context(), client.ObjectKeyFromObject(p), p))
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.ok(s.Status().Update(s.Context(), p))
	return p
}

func TestEvict(t *testing.T) {
	s := newStage(t)
	w, _ := s.writer()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "budget"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector(), MinAvailable: new(intstr.FromInt32(1))},
	}
	s.ok(s.Create(t.Context(), budget))
	p := s.runningPod("p")
	s.eventually("the budget to count its Pods", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); err != nil {
			return err
		}
		if budget.Status.CurrentHealthy != 1 || budget.Status.ObservedGeneration != budget.Generation {
			return errors.New("not yet")
		}
		return nil
	})
	err := w.Evict(t.Context(), plan.Evict{Pod: p})
	var blocked *apply.BlockedError
	if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "Pod/p") || !strings.Contains(err.Error(), "budget") {
		t.Fatalf("evicting against a budget: %v", err)
	}
	s.ok(s.Delete(t.Context(), budget))

	stale := p.DeepCopy()
	p.Annotations = map[string]string{"changed": "meanwhile"}
	s.ok(s.Update(t.Context(), p))
	s.eventually("a conflict for a Pod that changed meanwhile", func() error { // once the budget is forgotten
		if err := w.Evict(t.Context(), plan.Evict{Pod: stale}); !apierrors.IsConflict(err) {
			return err
		}
		return nil
	})
	s.ok(w.Evict(t.Context(), plan.Evict{Pod: p}))
	s.gone(p)
	s.ok(w.Evict(t.Context(), plan.Evict{Pod: stale})) // it is gone, as was wanted
	if err := w.Evict(t.Context(), plan.Evict{Pod: &corev1.Service{}}); err == nil {
		t.Error("a Service was evicted")
	}
}

func TestDeleteOnlyWhatWasObserved(t *testing.T) {
	s := newStage(t)
	w, _ := s.writer()
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c"}}
	s.ok(s.Create(t.Context(), first))
	s.ok(s.Delete(t.Context(), first.DeepCopy()))
	second := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c"}}
	s.ok(s.Create(t.Context(), second))
	if err := w.Delete(t.Context(), plan.Delete{Object: first}); !apierrors.IsConflict(err) {
		t.Errorf("deleting what was made again meanwhile: %v, want a conflict", err)
	}
	s.ok(w.Delete(t.Context(), plan.Delete{Object: second}))
	s.gone(second)
	s.ok(w.Delete(t.Context(), plan.Delete{Object: second}))
}

func TestStatusThatMeansTheSameIsNotWritten(t *testing.T) {
	s := newStage(t)
	w, op := s.writer()
	before := s.make("toy", toy.Spec{})
	before.Status.ObservedGeneration = 1
	s.ok(s.Status().Update(t.Context(), before))
	mark := s.mark()
	now, ok := before.DeepCopyObject().(*toy.Toy)
	if !ok {
		t.Fatal("no Toy")
	}
	now.Status.Ready = []string{} // says nothing else than nil
	if wrote, err := w.Status(t.Context(), before, now); wrote || err != nil {
		t.Errorf("wrote %v, error %v", wrote, err)
	}
	op.expectRequests(mark, map[string]int{})
	now.Status.Ready = []string{"p"}
	if wrote, err := w.Status(t.Context(), before, now); !wrote || err != nil {
		t.Errorf("wrote %v, error %v", wrote, err)
	}
	if got := s.get("toy").Status.Ready; len(got) != 1 {
		t.Errorf("status = %v", got)
	}
	s.ok(s.Delete(t.Context(), now))
	s.gone(now)
	now.Status.Ready = nil
	if _, err := w.Status(t.Context(), before, now); err != nil {
		t.Errorf("status of what is gone: %v", err)
	}
}

func TestApplyTakesOverNothing(t *testing.T) {
	s := newStage(t)
	w, op := s.writer()
	owner := s.make("toy", toy.Spec{})
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: toy.GroupVersion.String(), Kind: toy.Kind, Name: owner.Name, UID: owner.UID},
	}}, Data: map[string]string{"k": "v"}}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c"}}
	s.ok(s.Create(t.Context(), foreign))
	step := plan.Apply{Object: wanted, Manager: toy.Manager}
	var stranger *apply.ForeignObjectError
	if did, err := w.Apply(t.Context(), owner, step); did || !errors.As(err, &stranger) || !apply.Permanent(err) {
		t.Fatalf("Apply over a foreign object: %v, %v", did, err)
	}
	s.ok(s.Delete(t.Context(), foreign))
	mark := s.mark()
	if did, err := w.Apply(t.Context(), owner, step); !did || err != nil {
		t.Fatalf("Apply: %v, %v", did, err)
	}
	op.expectRequests(mark, map[string]int{"get configmaps": 1, "patch configmaps": 1})
	// One that is ours and lost its label, so that the cache does not show it, is taken back.
	step.Object = wanted.DeepCopy()
	step.Object.SetLabels(map[string]string{"l": "v"})
	if did, err := w.Apply(t.Context(), owner, step); !did || err != nil {
		t.Errorf("Apply of what is ours: %v, %v", did, err)
	}
	invalid := plan.Apply{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c"}, Data: map[string]string{"no good key!": ""}}, Manager: toy.Manager, Live: "1"}
	if _, err := w.Apply(t.Context(), owner, invalid); !apply.Permanent(err) {
		t.Errorf("Apply of what is invalid: %v, want an error for good", err)
	}
}

// TestAnApplyUndoesNoScalingInBetween is of an apply that carries the number of
// replicas as it was observed, since leaving it out would make it 1: scaling that
// lands in between must not be undone.
func TestAnApplyUndoesNoScalingInBetween(t *testing.T) {
	s := newStage(t)
	w, _ := s.writer()
	owner := s.make("toy", toy.Spec{})
	labels := map[string]string{"set": "s"}
	wanted := func(image string, replicas int32) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "s", Labels: map[string]string{"toy.fairlead.dev/name": owner.Name}, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: toy.GroupVersion.String(), Kind: toy.Kind, Name: owner.Name, UID: owner.UID},
			}},
			Spec: appsv1.StatefulSetSpec{
				Replicas: new(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{NodeSelector: map[string]string{"no": "node"}, Containers: []corev1.Container{{Name: "c", Image: image}}},
				},
			},
		}
	}
	_, err := w.Apply(t.Context(), owner, plan.Apply{Object: wanted("none:1", 2), Manager: toy.Manager})
	s.ok(err)
	now := &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: s.namespace, Name: "s"}
	s.ok(s.Get(t.Context(), key, now))
	observed := now.ResourceVersion
	s.ok(s.SubResource("scale").Update(t.Context(), now, client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}})))
	stale := plan.Apply{Object: wanted("none:2", 2), Manager: toy.Manager, Live: observed, Exact: true}
	if _, err := w.Apply(t.Context(), owner, stale); !apierrors.IsConflict(err) {
		t.Errorf("an apply on what was observed before the scaling: %v, want a conflict", err)
	}
	s.eventually("the same on what is there now", func() error { // the controller writes the status meanwhile
		s.ok(s.Get(t.Context(), key, now))
		_, err := w.Apply(t.Context(), owner, plan.Apply{Object: wanted("none:2", *now.Spec.Replicas), Manager: toy.Manager, Live: now.ResourceVersion, Exact: true})
		return err
	})
	s.ok(s.Get(t.Context(), key, now))
	if *now.Spec.Replicas != 5 || now.Spec.Template.Spec.Containers[0].Image != "none:2" {
		t.Errorf("%d replicas of %s", *now.Spec.Replicas, now.Spec.Template.Spec.Containers[0].Image)
	}
}

// An apply to an object that is gone by now would make it anew, for an owner that may
// be going itself.
func TestApplyMakesNothingAnewThatIsGone(t *testing.T) {
	s := newStage(t)
	w, _ := s.writer()
	owner := s.make("t", toy.Spec{})
	wanted := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "gone", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: toy.GroupVersion.String(), Kind: toy.Kind, Name: owner.Name, UID: owner.UID},
			}},
			Data: map[string]string{"k": value},
		}
	}
	_, err := w.Apply(t.Context(), owner, plan.Apply{Object: wanted("1"), Manager: toy.Manager})
	s.ok(err)
	was := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: s.namespace, Name: "gone"}
	s.ok(s.Get(t.Context(), key, was))
	step := plan.Apply{Object: wanted("2"), Manager: toy.Manager, Live: was.ResourceVersion, UID: was.UID}
	s.ok(s.Delete(t.Context(), was))
	if _, err := w.Apply(t.Context(), owner, step); !apierrors.IsConflict(err) {
		t.Errorf("an apply to what is gone: %v, want a conflict", err)
	}
	if err := s.Get(t.Context(), key, was); !apierrors.IsNotFound(err) {
		t.Errorf("it is there again: %v", err)
	}
	s.ok(s.Create(t.Context(), wanted("somebody's")))
	if _, err := w.Apply(t.Context(), owner, step); !apierrors.IsConflict(err) {
		t.Errorf("an apply to another object of that name: %v, want a conflict", err)
	}
}

func TestAlive(t *testing.T) {
	s := newStage(t)
	w, _ := s.writer()
	owner := s.make("t", toy.Spec{})
	owner.Finalizers = []string{"fairlead.dev/test"}
	s.eventually("a finalizer to be put on", func() error {
		now := &toy.Toy{}
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(owner), now); err != nil {
			return err
		}
		now.Finalizers = owner.Finalizers
		return s.Update(t.Context(), now)
	})
	says := func(what string, want bool) {
		t.Helper()
		if alive, err := w.Alive(t.Context(), owner); err != nil || alive != want {
			t.Errorf("%s: alive is %t, %v; want %t", what, alive, err, want)
		}
	}
	says("there", true)
	other := copied(owner)
	other.UID = "another"
	if alive, err := w.Alive(t.Context(), other); err != nil || alive {
		t.Errorf("another of that name: alive is %t, %v", alive, err)
	}
	s.ok(s.Delete(t.Context(), copied(owner)))
	says("going", false)
	s.eventually("the finalizer to be taken off", func() error {
		now := copied(owner)
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(owner), now); err != nil {
			return err
		}
		now.Finalizers = nil
		return s.Update(t.Context(), now)
	})
	says("gone", false)
}

func copied(t *toy.Toy) *toy.Toy {
	c := *t
	t.DeepCopyInto(&c.ObjectMeta)
	return &c
}
