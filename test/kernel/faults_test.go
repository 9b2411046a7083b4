package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/toy"
)

func TestPanicHurtsNobodyElseAndPasses(t *testing.T) {
	s := newStage(t)
	s.start(settings{workers: 2})
	s.make("well", toy.Spec{Config: "1"})
	for name, fault := range map[string]string{"observe": toy.PanicInObserve, "plan": toy.PanicInPlan, "report": toy.PanicInReport} {
		t.Run(name, func(t *testing.T) {
			s := &stage{T: t, Client: s.Client, namespace: s.namespace, audit: s.audit, config: s.config}
			s.make(name, toy.Spec{Fault: fault})
			if m := s.turns(name, "Stalled", "True InternalError"); m != "the operator failed on this object: told to" {
				t.Errorf("message = %q", m)
			}
			s.turns(name, "Ready", "False InternalError")
			if got := s.get(name).Status.Ready; len(got) != 0 {
				t.Errorf("half a report was written: %v", got)
			}
			s.edit("well", func(x *toy.Toy) { x.Spec.Config = name })
			s.content("well-config", name)
			s.ready("well")
			s.edit(name, func(x *toy.Toy) { x.Spec.Fault = "" })
			s.ready(name)
			s.turns(name, "Stalled", "")
		})
	}
}

func TestHangingObjectDelaysNobodyAndIsEnded(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{workers: 2, timeout: 6 * time.Second})
	s.make("hanging", toy.Spec{Fault: toy.Hang})
	s.eventually("the hanging object to be observed", func() error {
		if op.system.Observes.Load() == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	start := time.Now()
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("quick-%d", i))
		s.make(names[i], toy.Spec{})
	}
	s.ready(names...)
	t.Logf("ten others were ready after %s", time.Since(start).Round(time.Millisecond))
	if c := condition(s.get("hanging"), "Ready"); c != "" && time.Since(start) < 5*time.Second {
		t.Errorf("the hanging object does not hang: %s", c)
	}
	if m := s.turns("hanging", "Reconciling", "True ObserveFailed"); !strings.Contains(m, "gave up after 6s") {
		t.Errorf("message = %q", m)
	}
	s.edit("hanging", func(x *toy.Toy) { x.Spec.Fault = "" })
	s.ready("hanging")
}

func TestPause(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{})
	s.make("toy", toy.Spec{Config: "1"})
	s.ready("toy")
	pause := func(value string) {
		s.edit("toy", func(x *toy.Toy) { x.Annotations = map[string]string{meta.AnnotationPaused: value} })
	}
	pause("true")
	s.turns("toy", "Ready", "True Paused")
	s.settle(op)
	mark := s.mark()
	s.edit("toy", func(x *toy.Toy) { x.Spec.Config = "2" })
	s.turns("toy", "Stalled", "True Paused")
	s.ok(s.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "toy"}}))
	s.settle(op)
	op.expectRequests(mark, map[string]int{"patch toys/status": 1})
	if got := s.configMap("toy-config").Data["content"]; got != "1" {
		t.Errorf("content = %q while paused", got)
	}
	pause("false")
	s.content("toy-config", "2")
	s.ready("toy")
}

func TestRefusedInputStopsEveryWrite(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{})
	mark := s.mark()
	s.make("toy", toy.Spec{Fault: toy.Refuse})
	if m := s.turns("toy", "Stalled", "True InvalidSpec"); m != "spec.fault: told to refuse" {
		t.Errorf("message = %q", m)
	}
	s.settle(op)
	op.expectRequests(mark, map[string]int{"patch toys/status": 1})
}

func TestForeignObjectIsNeverTakenOver(t *testing.T) {
	s := newStage(t)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "toy"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	s.ok(s.Create(t.Context(), foreign))
	op := s.start(settings{})
	s.make("toy", toy.Spec{})
	m := s.turns("toy", "Stalled", "True ApplyFailed")
	if !strings.Contains(m, "Service/toy exists and does not belong to this resource") {
		t.Errorf("message = %q", m)
	}
	mark := s.mark()
	s.pass(3 * time.Second)
	if got := op.since(mark); got.Total("patch", "update", "create", "delete") != 0 || got.Total() > 10 {
		t.Errorf("requests while stalled:\n%s", got)
	}
	now := &corev1.Service{}
	s.ok(s.Get(t.Context(), client.ObjectKeyFromObject(foreign), now))
	if now.ResourceVersion != foreign.ResourceVersion {
		t.Error("the foreign object was written to")
	}
	s.ok(s.Delete(t.Context(), now))
	s.ready("toy") // nothing tells that it is gone: the retry finds out
}

func TestRevokedPermissionIsNamedAndComesBack(t *testing.T) {
	s := newStage(t)
	user := "system:serviceaccount:" + s.namespace + ":operator"
	role := func(verbs ...string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", "apps", "events.k8s.io", toy.GroupVersion.Group}, Resources: []string{"configmaps", "secrets", "statefulsets", "pods", "toys", "toys/status", "events"}, Verbs: []string{"*"}},
			{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: verbs},
		}}
	}
	full := []string{"get", "list", "watch", "patch", "create"}
	s.ok(s.Create(t.Context(), role(full...)))
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.namespace}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}}
	s.ok(s.Create(t.Context(), binding))
	t.Cleanup(func() {
		_ = s.Delete(context.Background(), role())
		_ = s.Delete(context.Background(), binding)
	})
	s.start(settings{user: user})
	s.make("toy", toy.Spec{})
	s.ready("toy")
	s.ok(s.Update(t.Context(), role("get", "list", "watch")))
	s.eventually("the permission to be revoked and the Service to be missed", func() error {
		err := s.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "toy"}})
		if err := client.IgnoreNotFound(err); err != nil {
			return err
		}
		if c := condition(s.get("toy"), "Stalled"); c != "True ApplyFailed" {
			return fmt.Errorf("it is %q", c)
		}
		return nil
	})
	if m := s.turns("toy", "Stalled", "True ApplyFailed"); !strings.Contains(m, `cannot patch resource "services"`) {
		t.Errorf("message = %q", m)
	}
	s.ok(s.Update(t.Context(), role(full...)))
	s.ready("toy")
}

func TestMissingKindIsWaitedFor(t *testing.T) {
	s := newStage(t)
	s.removeCRD()
	op := s.start(settings{})
	mark := s.mark()
	s.pass(2 * time.Second)
	op.expectRequests(mark, map[string]int{})
	s.installCRD()
	s.make("toy", toy.Spec{})
	s.ready("toy")

	s.removeCRD() // and again, while the operator serves it
	s.installCRD()
	s.make("another", toy.Spec{})
	s.ready("another")
}

func (s *stage) removeCRD() {
	s.Helper()
	s.ok(s.Delete(s.Context(), toy.CRD()))
	s.eventually("the kind to be gone", func() error {
		if err := s.List(s.Context(), &toy.ToyList{}, client.InNamespace(s.namespace)); apierrors.IsNotFound(err) {
			return nil
		}
		return errors.New("it is served")
	})
}

// An operator that may not do anything yet waits, and begins when it may.
func TestMissingPermissionIsWaitedFor(t *testing.T) {
	s := newStage(t)
	user := "system:serviceaccount:" + s.namespace + ":operator"
	op := s.start(settings{user: user})
	s.make("toy", toy.Spec{})
	s.pass(2 * time.Second)
	if n := op.system.Observes.Load(); n != 0 {
		t.Fatalf("%d reconciles without permission", n)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}
	s.ok(s.Create(t.Context(), role))
	s.ok(s.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
	}))
	s.ready("toy")
}

// rewriting is an admission policy that rewrites what toys say in a namespace.
func (s *stage) rewriting() (remove func()) {
	s.Helper()
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "rewrite-" + s.namespace},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "toys", Expression: `has(object.metadata.labels) && "toy.fairlead.dev/name" in object.metadata.labels`}},
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{data: {"content": "rewritten"}}`},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	s.ok(s.Create(s.Context(), policy))
	s.ok(s.Create(s.Context(), binding))
	remove = func() {
		_ = s.Delete(context.Background(), binding)
		_ = s.Delete(context.Background(), policy)
	}
	s.Cleanup(remove)
	probe := 0
	s.eventually("the policy to work", func() error {
		probe++
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("probe-%d", probe), Labels: map[string]string{"toy.fairlead.dev/name": ""}}}
		if err := s.Create(s.Context(), cm); err != nil {
			return err
		}
		if got := cm.Data["content"]; got != "rewritten" {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
	return remove
}

func TestWebhookThatRewritesCostsOneApplyAndThenThereIsQuiet(t *testing.T) {
	s := newStage(t)
	s.rewriting()
	op := s.start(settings{})
	mark := s.mark()
	s.make("toy", toy.Spec{Config: "wanted"})
	m := s.turns("toy", "Stalled", "True Contested")
	if !strings.Contains(m, "ConfigMap/toy-config") || !strings.Contains(m, "data.content") {
		t.Errorf("message = %q", m)
	}
	s.settle(op)
	entries, err := s.audit.Since(mark)
	s.ok(err)
	patches := 0
	for _, e := range entries {
		if e.UserAgent == op.agent && e.Verb == "patch" && e.Resource == "configmaps" {
			patches++
		}
	}
	if patches > 2 {
		t.Errorf("%d applies of the rewritten object, want its creation and one more", patches)
	}
	mark = s.mark()
	s.edit("toy", func(x *toy.Toy) { x.Annotations = map[string]string{"touched": "yes"} })
	s.pass(5 * time.Second)
	op.expectRequests(mark, map[string]int{})
	s.edit("toy", func(x *toy.Toy) { x.Spec.Config = "rewritten" })
	s.ready("toy") // what the webhook wants is what the spec wants
}

func TestWriterThatPutsItsValueBackIsAnsweredLessAndLess(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{})
	s.make("toy", toy.Spec{Config: "wanted"})
	s.ready("toy")
	mark := s.mark()
	fighting, stop := context.WithCancel(t.Context())
	defer stop()
	rounds := make(chan int, 1)
	go func() { // answers within milliseconds, like a controller that watches
		n := 0
		defer func() { rounds <- n }()
		for fighting.Err() == nil {
			cm := &corev1.ConfigMap{}
			err := s.Get(fighting, client.ObjectKey{Namespace: s.namespace, Name: "toy-config"}, cm)
			if err == nil && cm.Data["content"] != "theirs" {
				cm.Data["content"] = "theirs"
				if s.Update(fighting, cm) == nil {
					n++
				}
			}
			s.pass(5 * time.Millisecond)
		}
	}()
	s.pass(10 * time.Second)
	counts := op.since(mark)
	// The first restoration and two more come promptly, then after 1, 2, 4, 8 … seconds.
	if n := counts.Total("patch"); n > 6+6 {
		t.Errorf("%d patches in 10 s:\n%s", n, counts)
	}
	s.turns("toy", "Stalled", "True Contested")
	stop()
	t.Logf("the other writer wrote %d times; the operator's requests:\n%s", <-rounds, counts)
	s.content("toy-config", "wanted")
	s.ready("toy")
}

func TestPlanThatNeverSettlesIsNoHotLoop(t *testing.T) {
	s := newStage(t)
	op := s.start(settings{})
	s.make("well", toy.Spec{})
	s.ready("well")
	mark := s.mark()
	before := unsettled(t)
	s.make("restless", toy.Spec{Fault: toy.Restless})
	if m := s.turns("restless", "Reconciling", "True NotSettling"); !strings.Contains(m, "ConfigMap/restless-config") {
		t.Errorf("message = %q", m)
	}
	s.pass(10 * time.Second)
	counts := op.since(mark)
	t.Logf("requests in 10 s:\n%s", counts)
	if n := counts.Total("patch"); n > 5*(8+1)+2 { // rests of 1, 2, 4, 8 s between at most five attempts
		t.Errorf("%d writes in 10 s", n)
	}
	if unsettled(t) == before {
		t.Error("the metric did not move")
	}
	s.edit("restless", func(x *toy.Toy) { x.Spec.Fault = "" }) // a new spec is tried at once
	s.within(5*time.Second, "the mended spec to be tried at once", func() error {
		if c := condition(s.get("restless"), "Ready"); c != "True Reconciled" {
			return fmt.Errorf("it is %q", c)
		}
		return nil
	})
}
