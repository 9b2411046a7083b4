// Package kernel_test proves the kernel, with a toy system, on a real API
// server: what it writes, what it does not, and how often it asks.
package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/kernel"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/toy"
)

func TestMain(m *testing.M) { clustertest.Main(m, cluster.Options{Nodes: cluster.None}) }

// patience is how long anything may take that takes no time by itself, on a
// slow and busy machine.
const patience = 60 * time.Second

var types = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(toy.AddToScheme(s))
	return s
})

// stage is the cluster as the administrator sees it, with one namespace.
type stage struct {
	*testing.T
	client.Client
	namespace string
	audit     *audit.Log
	config    *rest.Config
}

func newStage(t *testing.T) *stage {
	t.Helper()
	c := clustertest.Shared(t)
	admin, err := client.New(c.RESTConfig(), client.Options{Scheme: types()})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, Client: admin, namespace: clustertest.Namespace(t), audit: c.Audit(), config: c.RESTConfig()}
	s.installCRD()
	return s
}

func (s *stage) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) installCRD() {
	s.Helper()
	if err := s.Create(s.Context(), toy.CRD()); err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	s.eventually("the kind to be served", func() error {
		return s.List(s.Context(), &toy.ToyList{}, client.InNamespace(s.namespace))
	})
}

// eventually polls until the condition has no error any more.
func (s *stage) eventually(what string, condition func() error) {
	s.Helper()
	s.within(patience, what, condition)
}

func (s *stage) within(limit time.Duration, what string, condition func() error) {
	s.Helper()
	deadline := time.After(limit)
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			s.Fatalf("waited %s for %s: %v", limit, what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// pass lets time go by.
func (s *stage) pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.Context().Done():
	}
}

// operator is one running operator of toys.
type operator struct {
	*stage
	agent  string
	system *toy.System
	stop   func()
}

// settings of an operator that a test may change.
type settings struct {
	namespaces []string // default: the stage's
	workers    int
	timeout    time.Duration
	user       string // impersonated; default: the administrator
	everywhere bool
	wrap       func(http.RoundTripper) http.RoundTripper
}

var operators struct {
	sync.Mutex
	n int
}

func (s *stage) start(o settings) *operator {
	s.Helper()
	operators.Lock()
	operators.n++
	agent := fmt.Sprintf("toy-operator-%d-%d", operators.n, time.Now().UnixNano())
	operators.Unlock()
	config := rest.CopyConfig(s.config)
	config.UserAgent, config.QPS = agent, -1
	config.Impersonate.UserName = o.user
	if o.wrap != nil {
		config.Wrap(o.wrap)
	}
	ctrl.SetLogger(testr.New(s.T))
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: types(), Metrics: server.Options{BindAddress: "0"}, Logger: testr.New(s.T),
	})
	s.ok(err)
	if o.namespaces == nil && !o.everywhere {
		o.namespaces = []string{s.namespace}
	}
	engine := diff.New(types())
	op := &operator{stage: s, agent: agent, system: &toy.System{Engine: engine}}
	s.ok(mgr.Add(kernel.Runnable(mgr, o.namespaces, kernel.Registration[*toy.Toy, toy.World]{
		Name: "toy", New: func() *toy.Toy { return &toy.Toy{} }, System: op.system, Manager: toy.Manager,
		Watches: toy.Watches(), Engine: engine, Workers: o.workers, Timeout: o.timeout,
	}.Run)))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	op.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				s.Errorf("the operator ended with %v", err)
			}
		case <-time.After(patience):
			s.Error("the operator does not end")
		}
	})
	s.Cleanup(op.stop)
	return op
}

// since counts the operator's requests after a mark, watches and events apart.
func (o *operator) since(mark audit.Mark) audit.Counts {
	o.Helper()
	entries, err := o.audit.Since(mark)
	o.ok(err)
	counts := audit.Count(entries, audit.Filter{Client: o.agent, ExceptResources: []string{"events", ""}})
	for k := range counts {
		if k.Verb == "watch" || strings.HasPrefix(k.Resource, "/") { // discovery
			delete(counts, k)
		}
	}
	return counts
}

func (s *stage) mark() audit.Mark {
	s.Helper()
	m, err := s.audit.Mark()
	s.ok(err)
	return m
}

// expectRequests holds that exactly these requests were made, written as
// "verb resource": number.
func (o *operator) expectRequests(mark audit.Mark, want map[string]int) {
	o.Helper()
	got := o.since(mark)
	seen := map[string]int{}
	for k, n := range got {
		seen[k.Verb+" "+k.Resource] += n
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		o.Errorf("requests %v, want %v", seen, want)
	}
}

func (s *stage) make(name string, spec toy.Spec) *toy.Toy {
	s.Helper()
	t := &toy.Toy{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: spec}
	s.ok(s.Create(s.Context(), t))
	return t
}

func (s *stage) get(name string) *toy.Toy {
	s.Helper()
	t := &toy.Toy{}
	s.ok(s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, t))
	return t
}

func (s *stage) edit(name string, change func(*toy.Toy)) {
	s.Helper()
	s.eventually("an edit without a conflict", func() error {
		t := s.get(name)
		change(t)
		return s.Update(s.Context(), t)
	})
}

// condition is "True Reason" of a condition, "" when it is not there.
func condition(t *toy.Toy, kind string) string {
	c := apimeta.FindStatusCondition(t.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// turns waits until a condition of the newest generation is "Status Reason" and
// returns its message.
func (s *stage) turns(name, kind, want string) string {
	s.Helper()
	var message string
	s.eventually(name+" to be "+kind+" "+want, func() error {
		t := s.get(name)
		if got := condition(t, kind); got != want || t.Status.ObservedGeneration != t.Generation {
			return fmt.Errorf("it is %q at generation %d of %d: %v", got, t.Status.ObservedGeneration, t.Generation, t.Status.Conditions)
		}
		if c := apimeta.FindStatusCondition(t.Status.Conditions, kind); c != nil {
			message = c.Message
		}
		return nil
	})
	return message
}

func (s *stage) ready(names ...string) {
	s.Helper()
	for _, n := range names {
		s.turns(n, "Ready", "True Reconciled")
	}
}

func (s *stage) configMap(name string) *corev1.ConfigMap {
	s.Helper()
	cm := &corev1.ConfigMap{}
	s.ok(s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, cm))
	return cm
}

// content waits until a ConfigMap of a toy says what is wanted.
func (s *stage) content(name, want string) {
	s.Helper()
	s.eventually(name+" to say "+want, func() error {
		cm := &corev1.ConfigMap{}
		if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, cm); err != nil {
			return err
		}
		if got := cm.Data["content"]; got != want {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
}

func (s *stage) gone(o client.Object) {
	s.Helper()
	s.eventually(o.GetName()+" to be gone", func() error {
		err := s.Get(s.Context(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}
