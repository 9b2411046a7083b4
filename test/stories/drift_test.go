package stories

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// TestDrift holds the table of what becomes of other people's edits: outside Pod
// templates they are undone, inside they are held, and what is nobody's business
// of ours is left alone.
func TestDrift(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(strings.NewReplacer(
		"    image: \"apache/doris:fe-2.1.8\"\n", "    image: \"apache/doris:fe-2.1.8\"\n    service: {type: NodePort}\n",
		"    image: \"apache/doris:be-2.1.8\"\n", "    image: \"apache/doris:be-2.1.8\"\n    service: {type: LoadBalancer}\n",
	).Replace(pair))
	s.settled("doris")
	for _, c := range []struct {
		name string
		do   func(*scene)
	}{
		{"what is ours outside of templates is put back", oursIsPutBack},
		{"what is theirs is left alone", theirsIsLeft},
		{"a health check port stays when the Service changes", healthCheckPortIsLeft},
		{"an edit of a template is held, and no edit of the spec releases it", templateEditsAreHeld},
		{"kubectl rollout restart is honoured, and the held edit goes with the Pods", restartAfterOurRendering},
	} {
		if t.Failed() {
			return
		}
		began := time.Now()
		t.Logf("%s", c.name)
		c.do(s)
		t.Logf("  took %s", time.Since(began).Round(100*time.Millisecond))
	}
}

func oursIsPutBack(s *scene) {
	before := s.identities()
	changeAs(s, "kubectl-edit", "doris-be-internal", &corev1.Service{}, func(o *corev1.Service) {
		o.Spec.Ports[0].TargetPort = intstr.FromInt32(1234)
		delete(o.Labels, dorisv1.LabelComponent)
	})
	// An entry of its own, since ports are told apart by their numbers.
	changeAs(s, "kubectl-edit", "doris-fe-internal", &corev1.Service{}, func(o *corev1.Service) { o.Spec.Ports[0].Port = 1234 })
	changeAs(s, "kubectl-label", "doris-be", &appsv1.StatefulSet{}, func(o *appsv1.StatefulSet) {
		o.Labels[dorisv1.LabelComponent] = "changed"
		o.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
	})
	s.eventually("all is as it was", func() string {
		service, frontends := &corev1.Service{}, &corev1.Service{}
		s.get("doris-be-internal", service)
		s.get("doris-fe-internal", frontends)
		set := s.set("doris-be")
		switch {
		case len(frontends.Spec.Ports) != 1 || frontends.Spec.Ports[0].Port == 1234:
			return fmt.Sprintf("the Service of the frontends has %v", frontends.Spec.Ports)
		case service.Spec.Ports[0].TargetPort.IntVal == 1234 || service.Labels[dorisv1.LabelComponent] != "be":
			return fmt.Sprintf("the Service has %v and %v", service.Spec.Ports, service.Labels)
		case set.Labels[dorisv1.LabelComponent] != "be" || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType:
			return fmt.Sprintf("the set has %v and %+v", set.Labels, set.Spec.UpdateStrategy)
		}
		return ""
	})
	s.eventually("it is reported", func() string {
		events := &corev1.EventList{}
		for _, o := range s.list(events) {
			e := o.(*corev1.Event)
			if e.InvolvedObject.Kind == dorisv1.Kind && strings.Contains(e.Message, "doris-be-internal") && strings.Contains(e.Message, "spec.ports") {
				return ""
			}
		}
		return "no event tells of the Service's port"
	})
	s.settled("doris")
	if diff := cmp.Diff(before, s.identities()); diff != "" {
		s.Errorf("Pods were replaced (-before +after):\n%s", diff)
	}
}

func theirsIsLeft(s *scene) {
	s.quiet(time.Second)
	mark := s.mark()
	port := s.freeNodePort()
	changeAs(s, "kubectl-edit", "doris-fe-service", &corev1.Service{}, func(o *corev1.Service) {
		o.Annotations["theirs"], o.Labels["theirs"] = "yes", "yes"
		for i := range o.Spec.Ports {
			if o.Spec.Ports[i].Port == 9030 {
				o.Spec.Ports[i].NodePort = port
			}
		}
		o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	changeAs(s, "kubectl-annotate", "doris-be", &appsv1.StatefulSet{}, func(o *appsv1.StatefulSet) {
		o.Annotations["theirs"], o.Labels["theirs"] = "yes", "yes"
	})
	s.quiet(2 * time.Second)
	service := &corev1.Service{}
	s.get("doris-fe-service", service)
	found := int32(0)
	for _, p := range service.Spec.Ports {
		if p.Port == 9030 {
			found = p.NodePort
		}
	}
	set := s.set("doris-be")
	if found != port || service.Annotations["theirs"]+service.Labels["theirs"]+set.Annotations["theirs"]+set.Labels["theirs"] != "yesyesyesyes" {
		s.Errorf("node port %d (set to %d), Service %v %v, set %v %v", found, port, service.Annotations, service.Labels, set.Annotations, set.Labels)
	}
	if n := s.writes(mark); n > 0 {
		tally, _ := s.requests().Since(mark, s.namespace)
		s.Errorf("it cost %d writes:\n%s", n, tally)
	}
}

// freeNodePort is a node port that no Service has, of those that the API server draws
// last.
func (s *scene) freeNodePort() int32 {
	s.Helper()
	taken, services := map[int32]bool{}, &corev1.ServiceList{}
	if err := s.client.List(s.Context(), services); err != nil {
		s.Fatal(err)
	}
	for i := range services.Items {
		for _, p := range services.Items[i].Spec.Ports {
			taken[p.NodePort] = true
		}
	}
	const first, last = 30000, 30085
	for port := int32(first); port < last; port++ {
		if !taken[port] {
			return port
		}
	}
	s.Fatal("every node port is taken")
	return 0
}

// healthCheckPortIsLeft has somebody make the load balancer ask each node, for which the
// API server draws a port, and then changes the Service by the spec.
func healthCheckPortIsLeft(s *scene) {
	changeAs(s, "kubectl-edit", "doris-be-service", &corev1.Service{}, func(o *corev1.Service) {
		o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	before := &corev1.Service{}
	s.get("doris-be-service", before)
	if before.Spec.HealthCheckNodePort == 0 {
		s.Fatal("the API server gave it no health check port")
	}
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Service.Annotations = map[string]string{"asked": "for"} })
	after := &corev1.Service{}
	s.eventually("the Service has what the spec asks for", func() string {
		if s.get("doris-be-service", after); after.Annotations["asked"] != "for" {
			return fmt.Sprintf("it has %v", after.Annotations)
		}
		return ""
	})
	s.quiet(time.Second)
	s.get("doris-be-service", after)
	if after.Spec.HealthCheckNodePort != before.Spec.HealthCheckNodePort || after.Spec.ExternalTrafficPolicy != before.Spec.ExternalTrafficPolicy {
		s.Errorf("health check port %d, %s; before %d, %s", after.Spec.HealthCheckNodePort, after.Spec.ExternalTrafficPolicy, before.Spec.HealthCheckNodePort, before.Spec.ExternalTrafficPolicy)
	}
}

// templateEditsAreHeld edits a template as `kubectl set env`, `set resources` and
// `edit` do, and then edits the spec of the same component elsewhere.
func templateEditsAreHeld(s *scene) {
	theirs := func(set *appsv1.StatefulSet) {
		spec := &set.Spec.Template.Spec
		for i := range spec.Containers[0].Env {
			if spec.Containers[0].Env[i].Name == "A" {
				spec.Containers[0].Env[i].Value = "theirs"
			}
		}
		spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "ADDED", Value: "theirs"})
		spec.Containers = append(spec.Containers, corev1.Container{Name: "sidecar", Image: "busybox"})
		spec.TerminationGracePeriodSeconds = new(int64(55))
	}
	kept := func(when string) {
		s.Helper()
		set := s.set("doris-be")
		got := variables(set)
		if got["A"][0] != "theirs" || got["ADDED"] == nil || len(set.Spec.Template.Spec.Containers) != 2 || *set.Spec.Template.Spec.TerminationGracePeriodSeconds != 55 {
			s.Errorf("%s: what they edited was not left: variables %v, %d containers, grace %d", when, got, len(set.Spec.Template.Spec.Containers), *set.Spec.Template.Spec.TerminationGracePeriodSeconds)
		}
	}
	s.nothingGoes("edits of a template", func() {
		changeAs(s, "kubectl-set", "doris-be", &appsv1.StatefulSet{}, theirs)
		s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue, "doris-be")
	})
	kept("edited")
	p := s.plannedBy(s.present(), "doris")
	text := printed(p)
	for _, part := range []string{`env[name="A"].value`, `env[name="ADDED"]`, `containers[name="sidecar"]`, "terminationGracePeriodSeconds"} {
		if !strings.Contains(text, part) {
			s.Errorf("the plan does not name %s:\n%s", part, text)
		}
	}
	undo := s.digest(p, "StatefulSet/doris-be", plan.CauseDrift)
	// An edit of the spec that is not of the template; one of another component;
	// then one of this template, which rolls and keeps what they edited.
	s.nothingGoes("a Service and more", func() {
		s.edit("doris", func(dc *dorisv1.DorisCluster) {
			dc.Spec.BeSpec.Service = &dorisv1.ExportService{Annotations: map[string]string{"example.org/a": "b"}}
		})
	})
	kept("after an edit of the Service")
	before := len(s.history.Went())
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		for i := range dc.Spec.BeSpec.EnvVars {
			if dc.Spec.BeSpec.EnvVars[i].Name == "B" {
				dc.Spec.BeSpec.EnvVars[i].Value = "new"
			}
		}
	})
	s.wentSoFar(before + 2)
	s.settled("doris")
	kept("after an edit of another variable")
	if got := variables(s.set("doris-be"))["B"]; len(got) != 1 || got[0] != "new" {
		s.Errorf("B is %v", got)
	}
	if now := s.digest(s.plannedBy(s.present(), "doris"), "StatefulSet/doris-be", plan.CauseDrift); now != undo {
		s.Logf("the digest of their edits was %s and is %s", undo, now)
	}
}

func restartAfterOurRendering(s *scene) {
	before := len(s.history.Went())
	annotated(kubectlRestart, "2026-11-03T00:00:00Z")(s)
	s.wentSoFar(before + 2)
	s.settled("doris")
	s.quiet(time.Second)
	if diff := cmp.Diff(backendsFollow, s.history.Went()[before:]); diff != "" {
		s.Errorf("Pods that went (-want +got):\n%s", diff)
	}
	if got := s.set("doris-be").Spec.Template.Annotations[kubectlRestart]; got != "2026-11-03T00:00:00Z" {
		s.Errorf("the annotation of the restart is %q", got)
	}
}

// fights has a second manager put its own values back each 100 ms, on objects of
// a new cluster and of one that was taken over, for a while. It returns how many
// times it wrote.
func (s *scene) fights(d time.Duration, putBack ...func(ctx context.Context) (bool, error)) int {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), d)
	defer stop()
	var fighters sync.WaitGroup
	var mu sync.Mutex
	wrote := 0
	for _, again := range putBack {
		fighters.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				if did, err := again(ctx); err == nil && did {
					mu.Lock()
					wrote++
					mu.Unlock()
				}
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
		})
	}
	fighters.Wait()
	return wrote
}

// putsBack is a manager that sets one thing whenever it is not as it wants it.
func putsBack[T client.Object](s *scene, name string, obj T, differs func(T) bool, do func(T)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, obj); err != nil || !differs(obj) {
			return false, err
		}
		do(obj)
		return true, s.client.Update(ctx, obj, client.FieldOwner("a-second-manager"))
	}
}

// fightBudget is how often the operator may write one object while another manager
// puts its value back for ten seconds: at once three times, and then after 1, 2
// and 4 s. The status may say each time that it is undone, and that it is done.
const fightBudget = 7

// TestNoFightWithASecondManager holds that writes get fewer and fewer where
// another manager puts its own value back.
func TestNoFightWithASecondManager(t *testing.T) {
	t.Parallel()
	rolling := appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
	fight := func(s *scene) []func(context.Context) (bool, error) {
		return []func(context.Context) (bool, error){
			putsBack(s, "doris-fe-internal", &corev1.Service{},
				func(o *corev1.Service) bool { return o.Spec.PublishNotReadyAddresses },
				func(o *corev1.Service) { o.Spec.PublishNotReadyAddresses = false }),
			putsBack(s, "doris-be", &appsv1.StatefulSet{},
				func(o *appsv1.StatefulSet) bool { return o.Spec.UpdateStrategy.Type != rolling.Type },
				func(o *appsv1.StatefulSet) { o.Spec.UpdateStrategy = rolling }),
		}
	}
	ours, theirs := newScene(t), newScene(t)
	theirs.legacy(pair)
	ours.create(pair)
	ours.operate(func(o *settings) { o.Namespaces = []string{ours.namespace, theirs.namespace} })
	for name, s := range map[string]*scene{"a cluster of our own": ours, "a cluster that was taken over": theirs} {
		s.settled("doris")
		s.taken("doris")
		s.quiet(time.Second)
		pods, mark := s.identities(), s.mark()
		wrote := s.fights(10*time.Second, fight(s)...)
		tally, err := s.requests().Since(mark, s.namespace)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: the other wrote %d times; the operator: %s", name, wrote, tally.Summary())
		if wrote < 4 || tally.ObjectWrites > 2*fightBudget || tally.StatusWrites > 4*fightBudget {
			t.Errorf("%s: the other wrote %d times, and the operator:\n%s", name, wrote, tally)
		}
		s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "somebody else keeps changing")
		if diff := cmp.Diff(pods, s.identities()); diff != "" {
			t.Errorf("%s: Pods (-before +after):\n%s", name, diff)
		}
	}
}

// TestWebhookOnASetCostsOneApply has an admission policy rewrite a field of the
// template that is rendered, as a cluster's own rules do.
func TestWebhookOnASetCostsOneApply(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.since(36, "admission policies that change objects")
	s.operate()
	s.create(pair)
	s.settled("doris")
	s.quiet(time.Second)
	s.rewrites(`Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{terminationGracePeriodSeconds: 66}}}}`)
	mark := s.mark()
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = newBackend })
	s.wentSoFar(2)
	s.serves()
	s.quiet(3 * time.Second)
	tally, err := s.requests().Since(mark, s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	// A write that meets a newer version is refused and made once more.
	conflicts := tally.Refused["409 patch statefulsets"] + tally.Refused["409 create pods/eviction"]
	if tally.ObjectWrites-conflicts > 5 || conflicts > 3 {
		t.Errorf("more writes than the change needs:\n%s", tally)
	}
	t.Logf("an image under a webhook that rewrites the template: %s", tally.Summary())
	if got := *s.set("doris-be").Spec.Template.Spec.TerminationGracePeriodSeconds; got != 66 {
		t.Errorf("the webhook did nothing: %d", got)
	}
	if diff := cmp.Diff(backendsFollow, s.history.Went()); diff != "" {
		t.Errorf("Pods that went (-want +got):\n%s", diff)
	}
}

// rewrites has the API server rewrite the backend's set at each write.
func (s *scene) rewrites(expression string) {
	s.Helper()
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "rewrite-" + s.namespace},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"}},
				}}},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: expression},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	s.must(s.client.Create(s.Context(), policy))
	s.must(s.client.Create(s.Context(), binding))
	s.Cleanup(func() {
		_ = s.client.Delete(context.Background(), binding)
		_ = s.client.Delete(context.Background(), policy)
	})
	probe := 0
	s.eventually("the policy is in force", func() string {
		probe++
		set := s.set("doris-be").DeepCopy()
		set.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("probe-%d", probe)}
		if err := s.client.Create(s.Context(), set, client.DryRunAll); err != nil {
			return err.Error()
		}
		if got := *set.Spec.Template.Spec.TerminationGracePeriodSeconds; got != 66 {
			return fmt.Sprintf("the grace period is %d", got)
		}
		return ""
	})
}
