package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/test/sim"
)

const manager = "fairlead-test"

// world is one live object of a Store whose ownership is real.
type world struct {
	t     testing.TB
	store *sim.Store
	live  client.Object
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{t: t, store: sim.NewStore(clientgoscheme.Scheme)}
}

func (w *world) apply(o client.Object, as string) *world {
	w.t.Helper()
	intent, err := diff.New(clientgoscheme.Scheme).Intent(o)
	if err != nil {
		w.t.Fatal(err)
	}
	live, _, err := w.store.Apply(intent, as)
	if err != nil {
		w.t.Fatal(err)
	}
	w.live = live
	return w
}

// edit changes the live object as kubectl edit does.
func (w *world) edit(change func(client.Object)) *world {
	w.t.Helper()
	change(w.live)
	live, err := w.store.Update(w.live, "kubectl-edit")
	if err != nil {
		w.t.Fatal(err)
	}
	w.live = live
	return w
}

func compare(t testing.TB, wanted, live client.Object) []diff.Field {
	t.Helper()
	got, err := diff.New(clientgoscheme.Scheme).Compare(wanted, live, manager)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func service(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fe", Labels: map[string]string{"app.kubernetes.io/name": "fe"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "fe"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 8030}, {Name: "query", Port: 9030, TargetPort: intstr.FromString("query")}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func set(change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fe"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), ServiceName: "fe-internal",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "fe"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "fe"}},
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{{Name: "first", Image: "i:1"}, {Name: "second", Image: "i:1"}},
					Containers: []corev1.Container{{
						Name: "fe", Image: "fe:1", Command: []string{"run", "-v"},
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8030}},
						Env:   []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}},
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.5"), corev1.ResourceMemory: resource.MustParse("1024Mi")},
						},
						VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/conf"}},
					}},
					Volumes: []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				},
			},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func container(s *appsv1.StatefulSet) *corev1.Container { return &s.Spec.Template.Spec.Containers[0] }

func liveSet(t testing.TB, o client.Object) *appsv1.StatefulSet {
	t.Helper()
	s, ok := o.(*appsv1.StatefulSet)
	if !ok {
		t.Fatalf("%T is no StatefulSet", o)
	}
	return s
}

const inFE = `spec.template.spec.containers[name="fe"]`

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		name  string
		live  func(*world)
		want  client.Object
		found []diff.Field
	}{
		{
			name: "nothing differs, defaults of the server are not ours",
			live: func(w *world) { w.apply(set(), manager) }, want: set(),
		},
		{
			name: "quantities in another notation are the same",
			live: func(w *world) { w.apply(set(), manager) },
			want: set(func(s *appsv1.StatefulSet) {
				container(s).Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")}
			}),
		},
		{
			name: "protocol left to its default is the same port",
			live: func(w *world) { w.apply(service(), manager) },
			want: service(func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolTCP }),
		},
		{
			name:  "field modified within a list entry found by its key and default",
			live:  func(w *world) { w.apply(service(), manager) },
			want:  service(func(s *corev1.Service) { s.Spec.Ports[1].NodePort = 30930 }),
			found: []diff.Field{{Path: `spec.ports[port=9030,protocol="TCP"].nodePort`, To: "30930"}},
		},
		{
			name: "entry replaced under another key is one added and one removed",
			live: func(w *world) { w.apply(service(), manager) },
			want: service(func(s *corev1.Service) { s.Spec.Ports[0].Port = 8031 }),
			found: []diff.Field{
				{Path: `spec.ports[port=8030,protocol="TCP"]`, From: `{"name":"http","port":8030,"protocol":"TCP","targetPort":8030}`},
				{Path: `spec.ports[port=8031,protocol="TCP"]`, To: `{"name":"http","port":8031}`},
			},
		},
		{
			name: "new entry is one change and not one for each of its fields",
			live: func(w *world) { w.apply(set(), manager) },
			want: set(func(s *appsv1.StatefulSet) {
				container(s).Env = append(container(s).Env, corev1.EnvVar{Name: "C", Value: "3"})
			}),
			found: []diff.Field{{Path: inFE + `.env[name="C"]`, To: `{"name":"C","value":"3"}`}},
		},
		{
			name:  "owned entry that is no longer wanted is removed",
			live:  func(w *world) { w.apply(set(), manager) },
			want:  set(func(s *appsv1.StatefulSet) { container(s).Env = container(s).Env[:1] }),
			found: []diff.Field{{Path: inFE + `.env[name="B"]`, From: `{"name":"B","value":"$(A)"}`}},
		},
		{
			name:  "atomic list differs as a whole",
			live:  func(w *world) { w.apply(set(), manager) },
			want:  set(func(s *appsv1.StatefulSet) { container(s).Command = []string{"run"} }),
			found: []diff.Field{{Path: inFE + ".command", From: `["run","-v"]`, To: `["run"]`}},
		},
		{
			name: "key with dots and slashes is quoted",
			live: func(w *world) { w.apply(service(), manager) },
			want: service(func(s *corev1.Service) { s.Labels["app.kubernetes.io/name"] = "be" }),
			found: []diff.Field{
				{Path: `metadata.labels["app.kubernetes.io/name"]`, From: `"fe"`, To: `"be"`},
			},
		},
		{
			name: "fields of others are not spoken of",
			live: func(w *world) {
				w.apply(set(), manager).edit(func(o client.Object) {
					s := liveSet(t, o)
					s.Annotations = map[string]string{"theirs": "yes"}
					s.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
					s.Spec.Template.Spec.Containers = append(s.Spec.Template.Spec.Containers, corev1.Container{Name: "injected", Image: "sidecar"})
				})
			},
			want: set(),
		},
		{
			name: "owned field edited by others is restored",
			live: func(w *world) {
				w.apply(service(), manager).edit(func(o client.Object) { o.SetLabels(map[string]string{"app.kubernetes.io/name": "x"}) })
			},
			want:  service(),
			found: []diff.Field{{Path: `metadata.labels["app.kubernetes.io/name"]`, From: `"x"`, To: `"fe"`}},
		},
		{
			name: "owned field removed by others is restored",
			live: func(w *world) {
				w.apply(service(), manager).edit(func(o client.Object) { o.SetLabels(nil) })
			},
			want:  service(),
			found: []diff.Field{{Path: `metadata.labels`, To: `{"app.kubernetes.io/name":"fe"}`}},
		},
		{
			name: "field that is no longer wanted and was taken over by others is theirs",
			live: func(w *world) {
				w.apply(service(), manager).edit(func(o client.Object) { o.SetLabels(map[string]string{"app.kubernetes.io/name": "x"}) })
			},
			want: service(func(s *corev1.Service) { s.Labels = nil }),
		},
		{
			name: "environment in another order is a change of the list",
			live: func(w *world) { w.apply(set(), manager) },
			want: set(func(s *appsv1.StatefulSet) {
				e := container(s).Env
				e[0], e[1] = e[1], e[0]
			}),
			found: []diff.Field{{Path: inFE + ".env", From: `[name="A" name="B"]`, To: `[name="B" name="A"]`, Order: true}},
		},
		{
			name: "init containers in another order are a change of the list",
			live: func(w *world) { w.apply(set(), manager) },
			want: set(func(s *appsv1.StatefulSet) {
				c := s.Spec.Template.Spec.InitContainers
				c[0], c[1] = c[1], c[0]
			}),
			found: []diff.Field{{Path: "spec.template.spec.initContainers", From: `[name="first" name="second"]`, To: `[name="second" name="first"]`, Order: true}},
		},
		{
			name: "environment that is live twice would be collapsed, which is a change",
			live: func(w *world) { createWithDuplicates(w) },
			want: set(),
			found: []diff.Field{
				{Path: inFE + ".env", From: `[name="A" name="B" name="A"]`, To: `[name="A" name="B"]`, Order: true},
				{Path: inFE + `.env[name="A"]`, From: `{"name":"A","value":"1"}`, To: `{"name":"A","value":"1"}`},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.live(w)
			got := compare(t, tc.want, w.live)
			if d := cmp.Diff(tc.found, got, cmpopts.IgnoreUnexported(diff.Field{})); d != "" {
				t.Errorf("fields (-want +got):\n%s", d)
			}
		})
	}
}

// createWithDuplicates makes what only an old client can: a set with the
// same environment variable twice.
func createWithDuplicates(w *world) {
	w.t.Helper()
	s := set(func(s *appsv1.StatefulSet) {
		container(s).Env = append(container(s).Env, corev1.EnvVar{Name: "A", Value: "other"})
	})
	live, err := w.store.Create(s, "old-operator")
	if err != nil {
		w.t.Fatal(err)
	}
	w.live = live
}

func TestSecretDataIsWithheld(t *testing.T) {
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Labels: map[string]string{"l": string(data["a"][:1])}}, Data: data}
	}
	w := newWorld(t).apply(secret(map[string][]byte{"a": []byte("1-old"), "gone": []byte("hunter2")}), manager)
	got := compare(t, secret(map[string][]byte{"a": []byte("2-new"), "added": []byte("hunter3")}), w.live)
	want := []diff.Field{
		{Path: "data.a", From: "(withheld)", To: "(withheld)"},
		{Path: "data.added", To: "(withheld)"},
		{Path: "data.gone", From: "(withheld)"},
		{Path: "metadata.labels.l", From: `"1"`, To: `"2"`},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(diff.Field{})); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
}

func TestCompareRefusesAnotherKind(t *testing.T) {
	w := newWorld(t).apply(service(), manager)
	if _, err := diff.New(clientgoscheme.Scheme).Compare(set(), w.live, manager); err == nil || !strings.Contains(err.Error(), "Service") {
		t.Errorf("error = %v", err)
	}
}

// What Compare says and what an apply does are the same thing.
func TestCompareForetellsTheApply(t *testing.T) {
	edits := []func(*appsv1.StatefulSet){
		func(*appsv1.StatefulSet) {},
		func(s *appsv1.StatefulSet) { container(s).Image = "fe:2" },
		func(s *appsv1.StatefulSet) { container(s).Env = nil },
		func(s *appsv1.StatefulSet) { e := container(s).Env; e[0], e[1] = e[1], e[0] },
		func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Volumes = nil; container(s).VolumeMounts = nil },
		func(s *appsv1.StatefulSet) { s.Spec.Replicas = nil },
		func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"a": "b"} },
		func(s *appsv1.StatefulSet) { container(s).Resources = corev1.ResourceRequirements{} },
	}
	for i, before := range edits {
		for j, after := range edits {
			t.Run(fmt.Sprintf("%d to %d", i, j), func(t *testing.T) {
				w := newWorld(t).apply(set(before), manager)
				found := compare(t, set(after), w.live)
				version := w.live.GetResourceVersion()
				w.apply(set(after), manager)
				if changed := w.live.GetResourceVersion() != version; changed != (len(found) > 0) {
					t.Errorf("apply changed the object: %v, foretold: %v", changed, found)
				}
				if left := compare(t, set(after), w.live); len(left) > 0 {
					t.Errorf("left after the apply: %v", left)
				}
			})
		}
	}
}

func TestOwned(t *testing.T) {
	w := newWorld(t).apply(service(), manager).edit(func(o client.Object) {
		o.SetLabels(map[string]string{"app.kubernetes.io/name": "taken", "theirs": "x"})
	})
	got, err := diff.New(clientgoscheme.Scheme).Owned(w.live, manager)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"spec": map[string]any{
		"selector": map[string]any{"app": "fe"},
		"ports": []any{
			map[string]any{"name": "http", "port": int64(8030), "protocol": "TCP"},
			map[string]any{"name": "query", "port": int64(9030), "protocol": "TCP", "targetPort": "query"},
		},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("owned (-want +got):\n%s", d)
	}
	nothing, err := diff.New(clientgoscheme.Scheme).Owned(w.live, "somebody else")
	if err != nil || len(nothing) != 0 {
		t.Errorf("Owned by a stranger = %v, %v", nothing, err)
	}
}

func TestKeep(t *testing.T) {
	for _, tc := range []struct {
		name   string
		live   func(*world)
		want   *appsv1.StatefulSet
		theirs string // part of what must not become ours
	}{
		{name: "modified field that we own keeps its live value", live: func(w *world) { w.apply(set(), manager) }, want: set(func(s *appsv1.StatefulSet) { container(s).Image = "fe:2" })},
		{name: "added entry is left out", live: func(w *world) { w.apply(set(), manager) }, want: set(func(s *appsv1.StatefulSet) { container(s).Env = append(container(s).Env, corev1.EnvVar{Name: "C"}) })},
		{name: "removed entry stays", live: func(w *world) { w.apply(set(), manager) }, want: set(func(s *appsv1.StatefulSet) { container(s).Env = nil })},
		{name: "removed container stays", live: func(w *world) { w.apply(set(), manager) }, want: set(func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.InitContainers = s.Spec.Template.Spec.InitContainers[1:]
		})},
		{name: "order stays", live: func(w *world) { w.apply(set(), manager) }, want: set(func(s *appsv1.StatefulSet) {
			e := container(s).Env
			container(s).Env = []corev1.EnvVar{{Name: "C"}, e[1], {Name: "D"}, e[0]}
		})},
		{name: "removed map stays", live: func(w *world) {
			w.apply(set(func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"a": "b"} }), manager)
		}, want: set()},
		{name: "field edited by others stays theirs", live: func(w *world) {
			w.apply(set(), manager).edit(func(o client.Object) { container(liveSet(w.t, o)).Image = "fe:edited" })
		}, want: set(), theirs: "fe:edited"},
		{name: "entry removed by others stays away", live: func(w *world) {
			w.apply(set(), manager).edit(func(o client.Object) { container(liveSet(w.t, o)).Env = nil })
		}, want: set()},
		{name: "entries that are live twice stay", live: createWithDuplicates, want: set()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.live(w)
			tc.want.Spec.Replicas = ptr.To[int32](5)
			var held []diff.Field
			for _, f := range compare(t, tc.want, w.live) {
				if f.Path != "spec.replicas" {
					held = append(held, f)
				}
			}
			if len(held) == 0 {
				t.Fatal("nothing to hold")
			}
			intent, err := diff.New(clientgoscheme.Scheme).Keep(tc.want, w.live, manager, held)
			if err != nil {
				t.Fatal(err)
			}
			before := liveSet(t, w.live)
			after := liveSet(t, w.apply(intent, manager).live)
			if *after.Spec.Replicas != 5 {
				t.Errorf("replicas = %d: the change that is not held was lost", *after.Spec.Replicas)
			}
			if d := cmp.Diff(before.Spec.Template, after.Spec.Template); d != "" {
				t.Errorf("the template moved (-before +after):\n%s", d)
			}
			paths := func(list []diff.Field) (out []string) {
				for _, f := range list {
					out = append(out, f.Path)
				}
				return out
			}
			if d := cmp.Diff(paths(held), paths(compare(t, tc.want, after))); d != "" {
				t.Errorf("held fields are no longer the same (-before +after):\n%s", d)
			}
			owned, err := diff.New(clientgoscheme.Scheme).Owned(after, manager)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(owned); tc.theirs != "" && strings.Contains(got, tc.theirs) {
				t.Errorf("%s has become ours: %s", tc.theirs, got)
			}
		})
	}
}
