package kernel_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/test/toy"
)

// versions are the resource versions of everything in the namespace that a toy makes.
func (s *stage) versions() string {
	s.Helper()
	out := ""
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.ServiceList{}, &appsv1.StatefulSetList{}, &toy.ToyList{}} {
		s.ok(s.List(s.Context(), list, client.InNamespace(s.namespace)))
		switch l := list.(type) {
		case *corev1.ConfigMapList:
			for _, o := range l.Items {
				if toy.Owner(&o) != "" {
					out += o.Name + "=" + o.ResourceVersion + " "
				}
			}
		case *corev1.ServiceList:
			for _, o := range l.Items {
				out += o.Name + "=" + o.ResourceVersion + " "
			}
		case *appsv1.StatefulSetList:
			for _, o := range l.Items {
				out += o.Name + "=" + o.ResourceVersion + " "
			}
		case *toy.ToyList:
			for _, o := range l.Items {
				out += o.Name + "=" + o.ResourceVersion + " "
			}
		}
	}
	return out
}

// Each object is written once, the status at most three times; after that there
// is no request at all, whatever happens elsewhere; and a new operator finds
// nothing to do either.
func TestEachObjectIsWrittenOnceAndThenThereIsQuiet(t *testing.T) {
	s := newStage(t)
	s.eventually("the toys of other tests to be gone", func() error {
		var all toy.ToyList
		err := s.List(t.Context(), &all)
		if n := len(all.Items); err == nil && n > 0 {
			err = fmt.Errorf("%d are there", n)
		}
		return err
	})
	mark := s.mark()
	op := s.start(settings{everywhere: true})
	names := []string{"a", "b", "c"}
	for _, n := range names {
		s.make(n, toy.Spec{Config: n, Image: "none:1", Replicas: ptr.To[int32](0)})
	}
	s.ready(names...)
	s.settle(op)
	counts := op.since(mark)
	made := map[string]int{}
	for k, n := range counts {
		made[k.Verb+" "+k.Resource] += n
	}
	t.Logf("requests for three toys:\n%s", counts)
	for what, want := range map[string]int{"patch configmaps": 3, "patch services": 3, "patch statefulsets": 6} {
		if made[what] != want {
			t.Errorf("%s: %d, want exactly %d", what, made[what], want)
		}
	}
	if got := made["patch toys/status"]; got > 9 {
		t.Errorf("%d status writes for three toys, want at most 9", got)
	}
	if got := counts.Total("create", "update", "delete", "deletecollection"); got != 0 {
		t.Errorf("%d other writes", got)
	}

	before := s.versions()
	mark = s.mark()
	unrelated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "unrelated"}}
	s.ok(s.Create(t.Context(), unrelated))
	observes := op.system.Observes.Load()
	for i := range 200 { // 20 times a second for 10 s
		unrelated.Data = map[string]string{"n": fmt.Sprint(i)}
		s.ok(s.Update(t.Context(), unrelated))
		s.pass(50 * time.Millisecond)
	}
	op.expectRequests(mark, map[string]int{})
	if n := op.system.Observes.Load() - observes; n != 0 {
		t.Errorf("%d reconciles because of ConfigMaps that nobody names", n)
	}

	op.stop()
	mark = s.mark()
	again := s.start(settings{})
	s.settle(again)
	if got := again.since(mark).Total("create", "update", "patch", "delete", "deletecollection"); got != 0 {
		t.Errorf("a new operator made %d writes:\n%s", got, again.since(mark))
	}
	if after := s.versions(); after != before {
		t.Errorf("versions moved:\n%s\n%s", before, after)
	}
}

// settle waits until the operator has not reconciled anything for a while.
func (s *stage) settle(op *operator) {
	s.Helper()
	const still = 2 * time.Second
	last, since := op.system.Observes.Load(), time.Now()
	s.eventually("the operator to come to rest", func() error {
		if n := op.system.Observes.Load(); n != last || n == 0 {
			last, since = n, time.Now()
		}
		if d := time.Since(since); d < still {
			return fmt.Errorf("it reconciled %s ago, %d times in all", d, last)
		}
		return nil
	})
}

func TestReferenceWakesItsUsersAndIsReadOnce(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{})
	for _, n := range []string{"user-1", "user-2", "user-3", "user-4"} {
		s.make(n, toy.Spec{Config: "own ", ConfigMapRef: "shared"})
	}
	s.make("stranger", toy.Spec{Config: "own "})
	s.ready("user-1", "user-2", "user-3", "user-4", "stranger")
	s.settle(op)

	shared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shared"}, Data: map[string]string{"k": "first"}}
	stranger := s.get("stranger").ResourceVersion
	for _, step := range []struct {
		content string
		do      func() error
	}{
		{"own first", func() error { return s.Create(t.Context(), shared) }},
		{"own second", func() error { shared.Data["k"] = "second"; return s.Update(t.Context(), shared) }},
		{"own ", func() error { return s.Delete(t.Context(), shared) }},
	} {
		mark := s.mark()
		s.ok(step.do())
		for _, n := range []string{"user-1", "user-2", "user-3", "user-4"} {
			s.content(n+"-config", step.content)
		}
		s.settle(op)
		op.expectRequests(mark, map[string]int{"get configmaps": 1, "patch configmaps": 4})
	}
	if got := s.get("stranger").ResourceVersion; got != stranger {
		t.Error("a toy that does not name the ConfigMap was written to")
	}
}

// Of Secrets that are named nothing is asked for but their metadata.
func TestSecretDataIsNeverAskedFor(t *testing.T) {
	s := newStage(t)
	s.ok(s.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "password"}, StringData: map[string]string{"p": "hunter2"}}))
	var asked accepted
	s.start(settings{wrap: asked.wrap})
	s.make("toy", toy.Spec{SecretRef: "password"})
	s.ready("toy")
	all := asked.of("/secrets")
	if !slices.ContainsFunc(all, func(a string) bool {
		return strings.Contains(a, "GET /api/v1/namespaces/"+s.namespace+"/secrets/password")
	}) {
		t.Errorf("the Secret was not looked for: %q", all)
	}
	for _, a := range all {
		if !strings.Contains(a, "as=PartialObjectMetadata") {
			t.Errorf("asked for more than metadata: %s", a)
		}
	}
}

// accepted records which form of which objects was asked for.
type accepted struct {
	mu  sync.Mutex
	all []string
}

func (a *accepted) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		a.mu.Lock()
		a.all = append(a.all, r.Method+" "+r.URL.Path+" as "+r.Header.Get("Accept"))
		a.mu.Unlock()
		return next.RoundTrip(r)
	})
}

func (a *accepted) of(path string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, r := range a.all {
		if strings.Contains(r, path) {
			out = append(out, r)
		}
	}
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPruneRemovesWhatIsOwnedAndNothingElse(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{})
	s.make("toy", toy.Spec{Extra: []string{"x", "y"}})
	s.ready("toy")
	lookalike := s.configMap("toy-x").DeepCopy()
	lookalike.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: "lookalike", Labels: lookalike.Labels}
	s.ok(s.Create(t.Context(), lookalike))
	s.settle(op)
	mark := s.mark()
	s.edit("toy", func(x *toy.Toy) { x.Spec.Extra = []string{"x"} })
	s.gone(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "toy-y"}})
	s.ready("toy")
	s.settle(op)
	got := op.since(mark)
	if n := got.Total("delete"); n != 1 {
		t.Errorf("%d deletions, want 1:\n%s", n, got)
	}
	if n := got.Total("patch"); n > 2 {
		t.Errorf("%d patches, want none but of the status:\n%s", n, got)
	}
	s.configMap("lookalike")
	s.configMap("toy-x")
}

func TestDeletionWritesNothing(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{})
	x := s.make("toy", toy.Spec{Image: "none:1", Replicas: ptr.To[int32](0)})
	s.ready("toy")
	s.settle(op)
	cm := s.configMap("toy-config")
	mark := s.mark()
	s.ok(s.Delete(t.Context(), x))
	s.gone(x)
	s.gone(cm) // by the garbage collector
	s.gone(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "toy-b"}})
	s.gone(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "toy"}})
	op.expectRequests(mark, map[string]int{})
}

func TestNamespacesAreKept(t *testing.T) {
	s := newStage(t)
	second := newStage(t)
	other := newStage(t)
	mark := s.mark()
	op := s.start(settings{namespaces: []string{s.namespace, second.namespace}})
	s.make("toy", toy.Spec{ConfigMapRef: "shared"})
	second.make("toy", toy.Spec{})
	other.make("toy", toy.Spec{})
	s.ready("toy")
	second.ready("toy")
	s.settle(op)
	if c := other.get("toy").Status.Conditions; len(c) != 0 {
		t.Errorf("a toy in another namespace was reported on: %v", c)
	}
	entries, err := s.audit.Since(mark)
	s.ok(err)
	for _, e := range entries {
		if e.UserAgent == op.agent && e.Resource != "" && e.Namespace != s.namespace && e.Namespace != second.namespace {
			t.Errorf("%s %s in namespace %q", e.Verb, e.Resource, e.Namespace)
		}
	}
	// A reference in one namespace is none in the other.
	before := second.versions()
	s.ok(s.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: second.namespace, Name: "shared"}, Data: map[string]string{"k": "wrong"}}))
	s.ok(s.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shared"}, Data: map[string]string{"k": "right"}}))
	s.content("toy-config", "right")
	if after := second.versions(); after != before {
		t.Errorf("the other namespace moved:\n%s\n%s", before, after)
	}
}

func TestEventsAreEmittedOnce(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{})
	s.make("toy", toy.Spec{Image: "none:1", Replicas: ptr.To[int32](0)})
	s.ready("toy")
	s.edit("toy", func(x *toy.Toy) { x.Spec.Config = "new" })
	s.content("toy-config", "new")
	s.ready("toy")
	s.settle(op)
	want := map[string]int{
		"Created created ConfigMap/toy-config, Service/toy, StatefulSet/toy-a, StatefulSet/toy-b": 1, // at once
		"Updated ConfigMap/toy-config: update data.content":                                       1, "Ready as the spec wants it": 1,
	}
	s.eventually("all events and no other", func() error {
		var list eventsv1.EventList
		if err := s.List(t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		got := map[string]int{}
		for _, e := range list.Items {
			if e.Regarding.Kind != toy.Kind {
				continue
			}
			got[e.Reason+" "+e.Note]++
			if e.Series != nil {
				got[e.Reason+" "+e.Note] += int(e.Series.Count)
			}
		}
		// Ready may be told again after the edit made it false for a moment.
		if n := got["Ready as the spec wants it"]; n > 1 {
			got["Ready as the spec wants it"] = 1
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("%v, want %v", got, want)
		}
		return nil
	})
}
