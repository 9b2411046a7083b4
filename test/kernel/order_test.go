package kernel_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/test/toy"
)

func ordered(namespace string, replicas int32, env ...corev1.EnvVar) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ordered"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: selector(), ServiceName: "x",
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i", Env: env}}},
			},
		},
	}
}

func variable(name string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: "v"} }

// What the simulated world and the comparison say of order and of duplicates
// is what an API server does.
func TestOrderOfEntries(t *testing.T) {
	a, b, c := variable("A"), variable("B"), variable("C")
	for _, tc := range []struct {
		name   string
		live   []corev1.EnvVar
		ours   bool // applied by us; else made by an old client
		wanted []corev1.EnvVar
	}{
		{name: "another order", live: []corev1.EnvVar{a, b, c}, ours: true, wanted: []corev1.EnvVar{c, a, b}},
		{name: "another order of what somebody else made", live: []corev1.EnvVar{a, b, c}, wanted: []corev1.EnvVar{b, a}},
		{name: "twice in what somebody else made", live: []corev1.EnvVar{a, b, {Name: "A", Value: "other"}}, wanted: []corev1.EnvVar{a, b}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			engine := diff.New(types())
			apply := func(o client.Object) *appsv1.StatefulSet {
				intent, err := engine.Intent(o)
				s.ok(err)
				s.ok(s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(intent), client.FieldOwner(toy.Manager), client.ForceOwnership))
				live := &appsv1.StatefulSet{}
				s.ok(s.Get(t.Context(), client.ObjectKeyFromObject(o), live))
				return live
			}
			first := ordered(s.namespace, 0, tc.live...)
			if tc.ours {
				first = apply(first)
			} else {
				s.ok(s.Create(t.Context(), first, client.FieldOwner("old-operator")))
			}
			wanted := ordered(s.namespace, 0, tc.wanted...)
			wanted.Labels = map[string]string{"new": "label"}
			fields, err := engine.Compare(wanted, first, toy.Manager)
			s.ok(err)
			var held []diff.Field
			for _, f := range fields {
				if f.Path != "metadata.labels" {
					held = append(held, f)
				}
			}
			if len(held) == 0 || !held[0].Order {
				t.Fatalf("the order is not foretold: %+v", fields)
			}
			kept, err := engine.Keep(wanted, first, toy.Manager, held)
			s.ok(err)
			if got := apply(kept); got.Generation != first.Generation || got.Labels["new"] != "label" {
				t.Errorf("what was held moved: generation %d, then %d; labels %v; env %v", first.Generation, got.Generation, got.Labels, got.Spec.Template.Spec.Containers[0].Env)
			}
			if got := apply(wanted); got.Generation == first.Generation {
				t.Error("an apply does not change the order after all")
			}
		})
	}
}
