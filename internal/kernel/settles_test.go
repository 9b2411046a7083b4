package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/test/sim"
	"github.com/fairlead-dev/fairlead/test/toy"
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(toy.AddToScheme(s))
	return s
}

var toyKey = types.NamespacedName{Namespace: "ns", Name: "toy"}

// toyWorld is a simulated world with one Toy.
type toyWorld struct {
	*sim.Runner[*toy.Toy, toy.World]
	cluster *sim.Cluster
}

func newToyWorld(dice sim.Dice, spec toy.Spec) (*toyWorld, error) {
	scheme := newScheme()
	engine := diff.New(scheme)
	cluster := &sim.Cluster{Store: sim.NewStore(scheme), Broken: func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == "broken" }}
	if _, err := cluster.Create(&toy.Toy{ObjectMeta: metav1.ObjectMeta{Namespace: toyKey.Namespace, Name: toyKey.Name}, Spec: spec}, "user"); err != nil {
		return nil, err
	}
	return &toyWorld{cluster: cluster, Runner: sim.NewRunner(sim.Config[*toy.Toy, toy.World]{
		Cluster: cluster, System: &toy.System{Engine: engine}, New: func() *toy.Toy { return &toy.Toy{} },
		Key: toyKey, Owner: toy.Owner, Manager: toy.Manager, Engine: engine, Dice: dice,
	})}, nil
}

func (w *toyWorld) toy() (*toy.Toy, error) {
	t, ok := w.cluster.Now().Get(sim.Key{Kind: toy.GroupVersion.WithKind(toy.Kind), NamespacedName: toyKey}).(*toy.Toy)
	if !ok {
		return nil, fmt.Errorf("the Toy is gone")
	}
	return t, nil
}

func (w *toyWorld) edit(change func(*toy.Toy)) error {
	t, err := w.toy()
	if err != nil {
		return err
	}
	change(t)
	_, err = w.cluster.Update(t, "user")
	return err
}

// rapidDice let a property test decide what goes wrong.
type rapidDice struct{ t *rapid.T }

func (d rapidDice) Roll(what string, sides int) int {
	return rapid.IntRange(0, sides-1).Draw(d.t, what)
}

func drawSpec(t *rapid.T) toy.Spec {
	s := toy.Spec{
		Config: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "config"),
		Image:  rapid.SampledFrom([]string{"good:1", "good:2", "broken"}).Draw(t, "image"),
	}
	if rapid.Bool().Draw(t, "with Pods") {
		s.Replicas = new(rapid.Int32Range(0, 3).Draw(t, "replicas"))
	}
	for _, e := range []string{"x", "y", "z"} {
		if rapid.Bool().Draw(t, "extra "+e) {
			s.Extra = append(s.Extra, e)
		}
	}
	if rapid.Bool().Draw(t, "refers to a ConfigMap") {
		s.ConfigMapRef = "users"
	}
	return s
}

// userEdits is one thing that people do to the world.
func userEdits(t *rapid.T, w *toyWorld) error {
	switch rapid.IntRange(0, 3).Draw(t, "edit") {
	case 0:
		spec := drawSpec(t)
		return w.edit(func(x *toy.Toy) { x.Spec = spec })
	case 1: // the referenced ConfigMap comes, changes or goes
		key := sim.Key{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), NamespacedName: types.NamespacedName{Namespace: "ns", Name: "users"}}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "users"}, Data: map[string]string{"k": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "data")}}
		if w.cluster.Now().Get(key) == nil {
			_, err := w.cluster.Create(cm, "user")
			return err
		}
		if rapid.Bool().Draw(t, "deleted") {
			return w.cluster.Delete(key, "", false)
		}
		_, err := w.cluster.Update(cm, "user")
		return err
	case 2: // somebody meddles with an owned object
		for _, o := range w.cluster.Now().List(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "ns") {
			if cm, ok := o.(*corev1.ConfigMap); ok && toy.Owner(cm) != "" {
				cm.Data = map[string]string{"content": "meddled", "theirs": "stays"}
				_, err := w.cluster.Update(cm, "meddler")
				return err
			}
		}
	case 3: // somebody deletes an owned object
		for _, o := range w.cluster.Now().List(corev1.SchemeGroupVersion.WithKind("Service"), "ns") {
			return w.cluster.Delete(sim.Key{Kind: corev1.SchemeGroupVersion.WithKind("Service"), NamespacedName: types.NamespacedName{Namespace: "ns", Name: o.GetName()}}, "", false)
		}
	}
	return nil
}

// Whatever people do and whatever goes wrong on the way, once it stops the
// world becomes what the spec says, the plan is settled, nothing is written any
// more, and at no time was anything changed that no plan had announced.
func TestToySettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, err := newToyWorld(rapidDice{t}, drawSpec(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		for range rapid.IntRange(0, 12).Draw(t, "rounds") {
			if rapid.IntRange(0, 2).Draw(t, "somebody edits") == 2 {
				if err := userEdits(t, w); err != nil {
					t.Fatal(err)
				}
			}
			if broken, _ := w.Reconcile(ctx); broken != nil {
				t.Fatal(broken)
			}
			for range rapid.IntRange(0, 2).Draw(t, "moves") {
				if _, err := w.cluster.Advance(); err != nil {
					t.Fatal(err)
				}
			}
		}
		mend(t, w)
		if err := w.Settle(ctx, 100); err != nil {
			t.Fatal(err)
		}
		settled(t, w)
		writes := fmt.Sprint(w.Writes)
		w.Dice = nil
		for range 3 {
			if broken, failed := w.Reconcile(ctx); broken != nil || failed != nil {
				t.Fatal(broken, failed)
			}
		}
		w.Kill()
		if broken, failed := w.Reconcile(ctx); broken != nil || failed != nil {
			t.Fatal(broken, failed)
		}
		if after := fmt.Sprint(w.Writes); after != writes {
			t.Fatalf("a settled world is written to: %s, then %s", writes, after)
		}
	})
}

// mend makes sure that what the spec asks for can be.
func mend(t *rapid.T, w *toyWorld) {
	if err := w.edit(func(x *toy.Toy) {
		if x.Spec.Image == "broken" {
			x.Spec.Image = "good:3"
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func settled(t *rapid.T, w *toyWorld) {
	x, err := w.toy()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(x.Status.Conditions), "Ready True") || x.Status.ObservedGeneration != x.Generation {
		t.Fatalf("settled and not Ready: %+v", x.Status)
	}
	var names []string
	for _, o := range w.cluster.Now().List(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "ns") {
		if toy.Owner(o) != "" {
			names = append(names, strings.TrimPrefix(o.GetName(), "toy-"))
		}
	}
	want := append([]string{"config"}, x.Spec.Extra...)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Fatalf("ConfigMaps %v, want %v", names, want)
	}
	pods := 0
	for _, o := range w.cluster.Now().List(corev1.SchemeGroupVersion.WithKind("Pod"), "ns") {
		p, ok := o.(*corev1.Pod)
		if !ok {
			continue
		}
		if x.Spec.Replicas != nil && p.Spec.Containers[0].Image != x.Spec.Image {
			t.Fatalf("Pod %s still runs %s", p.Name, p.Spec.Containers[0].Image)
		}
		pods++
	}
	if x.Spec.Replicas != nil && pods != 2*int(*x.Spec.Replicas) {
		t.Fatalf("%d Pods, want %d", pods, 2**x.Spec.Replicas)
	}
}

// No serving Pod is evicted while another does not serve.
func TestToyRollsOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, err := newToyWorld(rapidDice{t}, toy.Spec{Image: "good:1", Replicas: new(rapid.Int32Range(1, 3).Draw(t, "replicas"))})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if err := w.Settle(ctx, 100); err != nil {
			t.Fatal(err)
		}
		if err := w.edit(func(x *toy.Toy) { x.Spec.Image = "good:2" }); err != nil {
			t.Fatal(err)
		}
		w.Check = func(s sim.Snapshot) error {
			leaving := 0
			for _, o := range s.List(corev1.SchemeGroupVersion.WithKind("Pod"), "ns") {
				if p, ok := o.(*corev1.Pod); ok && !sim.Ready(p) {
					leaving++
				}
			}
			if leaving > 1 {
				return fmt.Errorf("%d Pods do not serve", leaving)
			}
			return nil
		}
		for range rapid.IntRange(5, 25).Draw(t, "rounds") {
			if broken, _ := w.Reconcile(ctx); broken != nil {
				t.Fatal(broken)
			}
			if rapid.Bool().Draw(t, "the cluster moves") {
				if _, err := w.cluster.Advance(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Settle(ctx, 100); err != nil {
			t.Fatal(err)
		}
		settled(t, w)
	})
}

func TestToyWritesWithoutFaults(t *testing.T) {
	w, err := newToyWorld(nil, toy.Spec{Image: "good:1", Replicas: ptr.To[int32](2), Extra: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Settle(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Writes["apply"], 5; got != want {
		t.Errorf("%d applies for %d objects", got, want)
	}
	if got, limit := w.Writes["status"], 6; got > limit {
		t.Errorf("%d status writes, want at most %d", got, limit)
	}
	created := 0
	for _, e := range w.Events {
		if e.Reason == "Created" {
			created += len(strings.Split(e.Message, ", "))
		}
	}
	if created != 5 {
		t.Errorf("events tell of %d objects made, want 5: %v", created, w.Events)
	}
	if last := w.Events[len(w.Events)-1]; last.Reason != "Ready" {
		t.Errorf("last event: %+v", last)
	}
	x, err := w.toy()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range x.Status.Conditions {
		if c.Type == meta.ConditionReconciling || c.Type == meta.ConditionStalled {
			t.Errorf("settled and %s: %s", c.Type, c.Message)
		}
	}
}
