package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/sim"
)

const manager = "fairlead-test"

var engine = diff.New(clientgoscheme.Scheme)

// store holds live objects with real ownership.
type store struct {
	t *testing.T
	*sim.Store
}

func newStore(t *testing.T) store {
	t.Helper()
	return store{t, sim.NewStore(clientgoscheme.Scheme)}
}

func (s store) applied(o client.Object) client.Object {
	s.t.Helper()
	intent, err := engine.Intent(o)
	if err != nil {
		s.t.Fatal(err)
	}
	live, _, err := s.Apply(intent, manager)
	if err != nil {
		s.t.Fatal(err)
	}
	return live
}

func configMap(data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "conf"}, Data: map[string]string{"k": data}}
}

func claim(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

func set(change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fe"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), ServiceName: "fe",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "fe"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "fe"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "fe", Image: "fe:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
				}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim("data", "10Gi")},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func image(v string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = v }
}

func replicas(n int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(n) }
}

// causes attributes differences by a part of their path; all others are the user's.
func causes(by map[string]plan.Cause) func(string) plan.Cause {
	return func(path string) plan.Cause {
		for part, c := range by {
			if strings.Contains(path, part) {
				return c
			}
		}
		return plan.CauseUser
	}
}

func build(t *testing.T, steps func(*plan.Builder)) plan.Plan {
	t.Helper()
	b := plan.NewBuilder(engine, manager)
	steps(b)
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Covered(); err != nil {
		t.Errorf("the plan leaves its changes: %v", err)
	}
	return p
}

// lines prints the changes and steps of a plan, one a line.
func lines(p plan.Plan) []string {
	var out []string
	for _, c := range p.Changes {
		out = append(out, fmt.Sprintf("%s %s: %s %s %s", c.Object, c.Path, c.Cause, c.Effect, c.Verdict))
	}
	for _, s := range p.Steps {
		out = append(out, fmt.Sprintf("%T %s: %s", s, s.Target(), s.Why()))
	}
	return out
}

func TestVerdicts(t *testing.T) {
	const inTemplate, outside = `spec.template.spec.containers[name="fe"].image`, "spec.replicas"
	for _, tc := range []struct {
		cause             plan.Cause
		inTemplate        plan.Verdict
		outside           plan.Verdict
		reasonIn, reasonO string
	}{
		{plan.CauseUser, plan.VerdictApply, plan.VerdictApply, "", ""},
		{plan.CauseConfig, plan.VerdictApply, plan.VerdictApply, "", ""},
		{plan.CauseClass, plan.VerdictHold, plan.VerdictHold, "NeedsConsent", "NeedsConsent"},
		{plan.CauseRevision, plan.VerdictHold, plan.VerdictHold, "NeedsConsent", "NeedsConsent"},
		{plan.CauseDrift, plan.VerdictHold, plan.VerdictApply, "EditedElsewhere", "Restored"},
		{plan.CauseRuntime, plan.VerdictHold, plan.VerdictHold, "ChangedAtRunTime", "ChangedAtRunTime"},
	} {
		t.Run(string(tc.cause), func(t *testing.T) {
			live := newStore(t).applied(set())
			p := build(t, func(b *plan.Builder) {
				b.Want(plan.Want{Rendered: set(image("fe:2"), replicas(5)), Live: live, Cause: func(string) plan.Cause { return tc.cause }})
			})
			want := []plan.Change{
				{Object: plan.Ref{Kind: "StatefulSet", Namespace: "ns", Name: "fe"}, Path: outside, From: "3", To: "5", Cause: tc.cause, Effect: plan.EffectNone, Verdict: tc.outside, Reason: tc.reasonO},
				{Object: plan.Ref{Kind: "StatefulSet", Namespace: "ns", Name: "fe"}, Path: inTemplate, From: `"fe:1"`, To: `"fe:2"`, Cause: tc.cause, Effect: plan.EffectRestartPod, Verdict: tc.inTemplate, Reason: tc.reasonIn},
			}
			got := slices.Clone(p.Changes)
			for i := range got {
				if consentable := got[i].Verdict == plan.VerdictHold && tc.cause != plan.CauseRuntime; consentable != (got[i].Approve != "") {
					t.Errorf("change %+v: can it be consented to?", got[i])
				}
				got[i].Message, got[i].Approve = "", ""
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("changes (-want +got):\n%s", d)
			}
		})
	}
}

func TestWant(t *testing.T) {
	for _, tc := range []struct {
		name string
		live client.Object // applied first; nil for absent
		edit func(*appsv1.StatefulSet)
		want client.Object
		by   map[string]plan.Cause
		out  []string
	}{
		{name: "absent, it is created", want: configMap("1"), out: []string{
			"ConfigMap/conf : user none apply", "plan.Apply ConfigMap/conf: create: for a test",
		}},
		{name: "as wanted, nothing", live: configMap("1"), want: configMap("1")},
		{name: "differs, it is updated", live: configMap("1"), want: configMap("2"), out: []string{
			"ConfigMap/conf data.k: user none apply", "plan.Apply ConfigMap/conf: update data.k",
		}},
		{name: "everything held, no step", live: configMap("1"), want: configMap("2"), by: map[string]plan.Cause{"data": plan.CauseRevision}, out: []string{
			"ConfigMap/conf data.k: revision none hold",
		}},
		{
			name: "user edits one field of the template, another is held, both are told", live: set(), by: map[string]plan.Cause{"env": plan.CauseRevision},
			want: set(image("fe:2"), func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Env = nil }), out: []string{
				`StatefulSet/fe spec.template.spec.containers[name="fe"].env[name="A"]: revision restart-pod hold`,
				`StatefulSet/fe spec.template.spec.containers[name="fe"].env[name="B"]: revision restart-pod hold`,
				`StatefulSet/fe spec.template.spec.containers[name="fe"].image: user restart-pod apply`,
				`plan.Apply StatefulSet/fe: update spec.template.spec.containers[name="fe"].image`,
			},
		},
		{name: "many fields, the step names three", live: set(), want: set(func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "C"}, {Name: "D"}, {Name: "E"}, {Name: "F"}, {Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
		}), out: []string{
			`StatefulSet/fe spec.template.spec.containers[name="fe"].env[name="C"]: user restart-pod apply`,
			`StatefulSet/fe spec.template.spec.containers[name="fe"].env[name="D"]: user restart-pod apply`,
			`StatefulSet/fe spec.template.spec.containers[name="fe"].env[name="E"]: user restart-pod apply`,
			`StatefulSet/fe spec.template.spec.containers[name="fe"].env[name="F"]: user restart-pod apply`,
			`plan.Apply StatefulSet/fe: update spec.template.spec.containers[name="fe"].env[name="C"], spec.template.spec.containers[name="fe"].env[name="D"], spec.template.spec.containers[name="fe"].env[name="E"] and 1 more`,
		}},
		{name: "claim grew, the set would have to be made again, which is held", live: set(), want: set(func(s *appsv1.StatefulSet) {
			s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data", "20Gi")}
		}), out: []string{`StatefulSet/fe spec.volumeClaimTemplates[name="data"]: user recreate hold`}},
		{name: "claims added, removed and in another notation", live: set(func(s *appsv1.StatefulSet) {
			s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("same", "1024Mi"), claim("gone", "1Gi")}
		}), want: set(replicas(5), func(s *appsv1.StatefulSet) {
			s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("new", "1Gi"), claim("same", "1Gi")}
		}), out: []string{
			`StatefulSet/fe spec.volumeClaimTemplates[name="gone"]: user recreate hold`,
			`StatefulSet/fe spec.volumeClaimTemplates[name="new"]: user recreate hold`,
			`StatefulSet/fe spec.replicas: user none apply`,
			`plan.Apply StatefulSet/fe: update spec.replicas`,
		}},
		{name: "storage class taken out of a claim is a difference", live: set(func(s *appsv1.StatefulSet) {
			s.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = new("fast")
		}), want: set(), out: []string{`StatefulSet/fe spec.volumeClaimTemplates[name="data"]: user recreate hold`}},
		{name: "immutable fields of a set are held", live: set(), want: set(func(s *appsv1.StatefulSet) {
			s.Spec.ServiceName, s.Spec.PodManagementPolicy = "other", appsv1.ParallelPodManagement
			s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
		}), out: []string{
			"StatefulSet/fe spec.serviceName: user recreate hold",
			"StatefulSet/fe spec.podManagementPolicy: user recreate hold",
			"StatefulSet/fe spec.selector: user recreate hold",
		}},
		{name: "policy left to its default is no difference", live: set(func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }), want: set()},
		{name: "Service becomes headless, held; its other fields go on", live: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 1, NodePort: 30001}}},
		}, want: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc", Labels: map[string]string{"a": "b"}},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 1}}},
		}, out: []string{
			"Service/svc spec.clusterIP: user recreate hold",
			"Service/svc metadata.labels: user none apply",
			`Service/svc spec.ports[port=1,protocol="TCP"].nodePort: user none apply`,
			`plan.Apply Service/svc: update metadata.labels, spec.ports[port=1,protocol="TCP"].nodePort`,
		}},
		{name: "headless Service stops being so, held", live: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 1}}},
		}, want: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 1, NodePort: 30001}}},
		}, out: []string{"Service/svc spec.clusterIP: user recreate hold"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t)
			w := plan.Want{Rendered: tc.want, Reason: "for a test", Cause: causes(tc.by)}
			if tc.live != nil {
				w.Live = s.applied(tc.live)
			}
			p := build(t, func(b *plan.Builder) { b.Want(w) })
			if d := cmp.Diff(tc.out, lines(p)); d != "" {
				t.Fatalf("plan (-want +got):\n%s", d)
			}
			for _, step := range p.Steps {
				if a, ok := step.(plan.Apply); ok { // the server takes it, and what is left is what was held
					w.Live = s.applied(a.Object)
				}
			}
			after := build(t, func(b *plan.Builder) { b.Want(w) })
			if !after.Settled() {
				t.Errorf("not settled after its steps:\n%s", strings.Join(lines(after), "\n"))
			}
			if d := cmp.Diff(p.Held(), after.Held()); d != "" {
				t.Errorf("what is held changed (-before +after):\n%s", d)
			}
		})
	}
}

func TestHeldTemplateIsNotTouchedByOtherFields(t *testing.T) {
	s := newStore(t)
	live := s.applied(set())
	theirs, ok := live.DeepCopyObject().(*appsv1.StatefulSet)
	if !ok {
		t.Fatal("no StatefulSet")
	}
	c := &theirs.Spec.Template.Spec.Containers[0]
	c.Image, c.Env = "fe:edited", c.Env[1:] // somebody else changed one field and removed another
	theirs.Spec.Template.Spec.Containers = append(theirs.Spec.Template.Spec.Containers, corev1.Container{Name: "injected", Image: "i"})
	edited, err := s.Update(theirs, "kubectl-edit")
	if err != nil {
		t.Fatal(err)
	}
	w := plan.Want{Rendered: set(replicas(5)), Live: edited, Cause: causes(map[string]plan.Cause{"template": plan.CauseDrift})}
	p := build(t, func(b *plan.Builder) { b.Want(w) })
	if d := cmp.Diff([]string{
		"StatefulSet/fe spec.replicas: user none apply",
		`StatefulSet/fe spec.template.spec.containers[name="fe"].env[name="A"]: drift restart-pod hold`,
		`StatefulSet/fe spec.template.spec.containers[name="fe"].image: drift restart-pod hold`,
		"plan.Apply StatefulSet/fe: update spec.replicas",
	}, lines(p)); d != "" {
		t.Fatalf("plan (-want +got):\n%s", d)
	}
	step, ok := p.Steps[0].(plan.Apply)
	if !ok {
		t.Fatalf("step is a %T", p.Steps[0])
	}
	after, ok := s.applied(step.Object).(*appsv1.StatefulSet)
	if !ok {
		t.Fatal("no StatefulSet")
	}
	before, ok := edited.(*appsv1.StatefulSet)
	if !ok {
		t.Fatal("no StatefulSet")
	}
	if d := cmp.Diff(before.Spec.Template, after.Spec.Template); d != "" {
		t.Errorf("the template moved (-before +after):\n%s", d)
	}
	if *after.Spec.Replicas != 5 {
		t.Errorf("replicas = %d, want 5", *after.Spec.Replicas)
	}
}

func TestBarrierEndsStepsAndNotChanges(t *testing.T) {
	s := newStore(t)
	live := s.applied(configMap("1"))
	ref := plan.Ref{Kind: "StatefulSet", Namespace: "ns", Name: "fe"}
	p := build(t, func(b *plan.Builder) {
		b.Want(plan.Want{Rendered: configMap("2"), Live: live})
		b.Recheck(ref, "NotThereYet", "first", time.Minute)
		b.Wait(plan.Wait{On: ref, Message: "second"})
		b.Want(plan.Want{Rendered: configMap("3"), Live: live})
		b.Want(plan.Want{Rendered: set(), Reason: "later"})
		b.Step(plan.Change{Object: ref, Verdict: plan.VerdictApply}, plan.Delete{Object: set()})
		b.Step(plan.Change{Object: ref, Verdict: plan.VerdictHold}, plan.Delete{Object: set()})
		b.Note(plan.Change{Object: ref, Verdict: plan.VerdictRefuse})
		if !b.Blocked() {
			t.Error("not blocked behind a barrier")
		}
	})
	if d := cmp.Diff([]string{
		"ConfigMap/conf data.k: user none apply",
		"ConfigMap/conf data.k: user none wait",
		"StatefulSet/fe : user none wait",
		"StatefulSet/fe :   wait",
		"StatefulSet/fe :   hold",
		"StatefulSet/fe :   refuse",
		"plan.Apply ConfigMap/conf: update data.k",
		"plan.Wait StatefulSet/fe: first",
	}, lines(p)); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
	for _, c := range p.Changes {
		if c.Verdict == plan.VerdictWait && (c.Reason != "NotThereYet" || c.Message != "first") {
			t.Errorf("%s waits for %s: %q, not for the barrier", c.Object, c.Reason, c.Message)
		}
	}
	if d := cmp.Diff([]plan.Wait{{On: ref, Reason: "NotThereYet", Message: "first", Recheck: time.Minute}}, p.Waits()); d != "" {
		t.Errorf("waits (-want +got):\n%s", d)
	}
}

// TestExactUpdateFollowsAPatch holds that a plan does not refuse itself an update: what it
// patches first is of another version then.
func TestExactUpdateFollowsAPatch(t *testing.T) {
	s := newStore(t)
	live := s.applied(configMap("1"))
	noted := func(b *plan.Builder) {
		b.Step(plan.Change{Object: plan.RefOf(live), Verdict: plan.VerdictApply}, plan.Patch{Object: live, Reason: "note"})
	}
	for name, tc := range map[string]struct {
		steps func(*plan.Builder)
		want  []string
	}{
		"exact: in the next plan": {
			func(b *plan.Builder) {
				noted(b)
				b.Want(plan.Want{Rendered: configMap("2"), Live: live, Exact: true})
			},
			[]string{"ConfigMap/conf :   apply", "ConfigMap/conf data.k: user none apply", "plan.Patch ConfigMap/conf: note"},
		},
		"any version will do: in the same": {
			func(b *plan.Builder) {
				noted(b)
				b.Want(plan.Want{Rendered: configMap("2"), Live: live})
			},
			[]string{"ConfigMap/conf :   apply", "ConfigMap/conf data.k: user none apply", "plan.Patch ConfigMap/conf: note", "plan.Apply ConfigMap/conf: update data.k"},
		},
		"exact, and nothing is patched": {
			func(b *plan.Builder) { b.Want(plan.Want{Rendered: configMap("2"), Live: live, Exact: true}) },
			[]string{"ConfigMap/conf data.k: user none apply", "plan.Apply ConfigMap/conf: update data.k"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, lines(build(t, tc.steps))); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
		})
	}
}

func TestObjectBeingDeletedIsWaitedFor(t *testing.T) {
	live := configMap("1")
	live.DeletionTimestamp, live.ResourceVersion = &metav1.Time{Time: time.Unix(1, 0)}, "7"
	p := build(t, func(b *plan.Builder) { b.Want(plan.Want{Rendered: configMap("1"), Live: live}) })
	if d := cmp.Diff([]string{
		"ConfigMap/conf : user none wait",
		"plan.Wait ConfigMap/conf: ConfigMap/conf is being deleted and will be made again",
	}, lines(p)); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
}

func TestRefusalStopsEveryStep(t *testing.T) {
	b := plan.NewBuilder(engine, manager)
	b.Want(plan.Want{Rendered: configMap("1")})
	before, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	b.Wait(plan.Wait{On: plan.RefOf(set()), Reason: "NotThereYet"})
	b.Want(plan.Want{Rendered: set()})
	b.Find(plan.Finding{Severity: plan.Warning, Field: "spec.a", Message: "careful"}, plan.Finding{Severity: plan.Refusal, Field: "spec.b", Reason: "InvalidSpec", Message: "no"})
	refused, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if len(refused.Steps) != 0 || len(refused.Changes) != 2 {
		t.Errorf("refused plan = %+v", refused)
	}
	for _, c := range refused.Changes {
		if c.Verdict != plan.VerdictRefuse || c.Message != "spec.b: no" {
			t.Errorf("change of a refused plan = %+v", c)
		}
	}
	if !refused.Settled() {
		t.Error("a refused plan is not settled, although nothing will be done")
	}
	if len(before.Steps) != 1 || before.Changes[0].Verdict != plan.VerdictApply {
		t.Errorf("the plan that was taken before changed: %+v", before)
	}
	before.Findings = refused.Findings
	if err := before.Covered(); err == nil {
		t.Error("steps in spite of a refusal are covered")
	}
}

func TestCovered(t *testing.T) {
	a, b := configMap("1"), set()
	allowed := plan.Change{Object: plan.RefOf(a), Verdict: plan.VerdictApply}
	wait := plan.Wait{On: plan.RefOf(a), Message: "for a test"}
	for _, tc := range []struct {
		name string
		p    plan.Plan
		want string // part of the error
	}{
		{"no steps", plan.Plan{Changes: []plan.Change{allowed}}, ""},
		{"step on a change to apply", plan.Plan{Changes: []plan.Change{allowed}, Steps: []plan.Step{plan.Apply{Object: a}}}, ""},
		{"wait needs no change", plan.Plan{Steps: []plan.Step{wait}}, ""},
		{"step on an object without changes", plan.Plan{Changes: []plan.Change{allowed}, Steps: []plan.Step{plan.Delete{Object: b}}}, "StatefulSet/fe"},
		{"step on a held change", plan.Plan{Changes: []plan.Change{{Object: plan.RefOf(a), Verdict: plan.VerdictHold}}, Steps: []plan.Step{plan.Apply{Object: a}}}, "no change to apply"},
		{"step on an object of the same name and another kind", plan.Plan{Changes: []plan.Change{allowed}, Steps: []plan.Step{plan.Call{On: plan.Ref{Kind: "Secret", Namespace: "ns", Name: "conf"}}}}, "Secret/conf"},
		{"step behind a barrier", plan.Plan{Changes: []plan.Change{allowed}, Steps: []plan.Step{wait, plan.Apply{Object: a}}}, "follows a barrier"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.p.Covered()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Covered() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestSettled(t *testing.T) {
	change := func(v plan.Verdict) []plan.Change { return []plan.Change{{Verdict: v}} }
	for _, tc := range []struct {
		name string
		p    plan.Plan
		want bool
	}{
		{"empty", plan.Plan{}, true},
		{"only held and refused", plan.Plan{Changes: append(change(plan.VerdictHold), change(plan.VerdictRefuse)...)}, true},
		{"something to apply", plan.Plan{Changes: change(plan.VerdictApply)}, false},
		{"something waits", plan.Plan{Changes: change(plan.VerdictWait)}, false},
		{"a step without a change", plan.Plan{Steps: []plan.Step{plan.Wait{}}}, false},
		{"only findings", plan.Plan{Findings: []plan.Finding{{Severity: plan.Refusal}}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.p.Settled(); got != tc.want {
				t.Errorf("Settled() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRenderingFaultIsAnError(t *testing.T) {
	b := plan.NewBuilder(engine, manager)
	live := newStore(t).applied(configMap("1"))
	wrong := set()
	b.Want(plan.Want{Rendered: wrong, Live: live})
	b.Want(plan.Want{Rendered: configMap("2"), Live: live}) // nothing more is planned
	p, err := b.Plan()
	if err == nil || !strings.Contains(err.Error(), "StatefulSet/fe") {
		t.Errorf("error = %v, want one that names the object", err)
	}
	if len(p.Steps) > 0 {
		t.Errorf("steps after a fault: %v", lines(p))
	}
}

func TestPlanSpeaksJSON(t *testing.T) {
	p := build(t, func(b *plan.Builder) {
		b.Want(plan.Want{Rendered: configMap("1"), Reason: "for a test"})
		b.Find(plan.Finding{Severity: plan.Unsupported, Field: "spec.x", Reason: "R", Message: "m"})
	})
	got, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"changes":[{"object":{"kind":"ConfigMap","namespace":"ns","name":"conf"},"to":"created","cause":"user","effect":"none","verdict":"apply","reason":"Missing","message":"for a test"}],"findings":[{"severity":"Unsupported","field":"spec.x","reason":"R","message":"m"}]}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("JSON (-want +got):\n%s", d)
	}
}

// TestNobodyIsAskedToConsentToWhatIsRefused is of an edit that would be held and is
// refused besides: no digest is shown for it. What is offered by the operator is.
func TestNobodyIsAskedToConsentToWhatIsRefused(t *testing.T) {
	edited := plan.Change{Object: plan.RefOf(set()), Path: "spec.x", Cause: plan.CauseUser, Effect: plan.EffectDataLoss}
	offered := plan.Change{Object: plan.RefOf(set()), Path: "spec.y", Cause: plan.CauseRevision, Effect: plan.EffectNone}
	for refused, want := range map[bool]int{false: 2, true: 1} {
		p := build(t, func(b *plan.Builder) {
			b.Hold(0, []plan.Change{edited})
			b.Hold(0, []plan.Change{offered})
			if refused {
				b.Find(plan.Finding{Severity: plan.Refusal, Field: "spec.x", Reason: "UnsafeChange", Message: "put it back"})
			}
		})
		if got := p.HeldSets(); len(got) != want {
			t.Errorf("refused: %t; held are %+v", refused, got)
		}
		if got := p.Changes[0]; refused && (got.Verdict != plan.VerdictRefuse || got.Approve != "" || got.Reason != "UnsafeChange") {
			t.Errorf("the edit is %+v", got)
		}
	}
}
