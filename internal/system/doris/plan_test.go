package doris

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

func setNames(w *world) map[string]int32 {
	out := map[string]int32{}
	for _, o := range w.store.Now().List(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "shop") {
		set := o.(*appsv1.StatefulSet)
		out[strings.TrimPrefix(set.Name, "doris-")] = *set.Spec.Replicas
	}
	return out
}

func TestGateOfBackends(t *testing.T) {
	t.Parallel()
	external := strings.Replace(smallCluster, "beSpec: {", `beSpec: {feAddress: {endpoints: {address: [fe.example.org]}}, `, 1)
	tests := map[string]struct {
		manifest string
		act      func(*world)
		want     map[string]int32
		waits    string
	}{
		"no frontend serves, so there are no backends": {
			manifest: smallCluster, act: func(w *world) { w.reconcile(); w.controllers() },
			want: map[string]int32{"fe": 1}, waits: "backends are made when a frontend serves",
		},
		"a frontend serves, so there are backends": {
			manifest: smallCluster, act: func(w *world) { w.reconcile(); w.controllers(); w.kubelet() },
			want: map[string]int32{"fe": 1, "be": 1},
		},
		"frontends are named elsewhere, so nothing is waited for": {
			manifest: external, act: func(*world) {}, want: map[string]int32{"fe": 1, "be": 1},
		},
		"there are backends only, of frontends elsewhere": {
			manifest: regexp.MustCompile(`(?m)^  feSpec:.*$`).ReplaceAllString(external, ""),
			act:      func(*world) {}, want: map[string]int32{"be": 1},
		},
		"the backends exist already and stay when the frontend fails": {
			manifest: smallCluster,
			act: func(w *world) {
				w.settle()
				w.broken["doris-fe-0"] = true
				w.kubelet()
				w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(2)) })
			},
			want: map[string]int32{"fe": 1, "be": 2}, waits: "the StatefulSet controller has not seen the newest template of be",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.manifest)
			tc.act(w)
			p := w.reconcile()
			if diff := cmp.Diff(tc.want, setNames(w)); diff != "" {
				t.Errorf("StatefulSets (-want +got):\n%s", diff)
			}
			got := ""
			if waits := p.Waits(); len(waits) > 0 {
				got = waits[0].Message
			}
			if got != tc.waits {
				t.Errorf("waits for %q, want %q", got, tc.waits)
			}
		})
	}
}

func TestABadFirstImageCanBeMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(smallCluster, "doris:fe-1", "doris:bad", 1))
	w.settle()
	if phase := w.dc.Status.FeStatus.ComponentCondition.Phase; phase != dorisv1.PhaseHaveMemberFailed {
		t.Fatalf("the phase is %s", phase)
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-1" })
	w.settle()
	if diff := cmp.Diff(map[string]int32{"fe": 1, "be": 1}, setNames(w)); diff != "" {
		t.Errorf("StatefulSets (-want +got):\n%s", diff)
	}
}

func TestNobodyGoesInThePlanThatMakesOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, smallCluster)
	w.reconcile()
	w.controllers()
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-2" })
	w.podGoesOn("doris-fe-0") // it serves, on the image before
	w.broken["doris-be-0"] = true
	w.settle()
	if len(w.evicts) > 0 {
		t.Errorf("%v went although no backend has come up yet", w.evicts)
	}
	delete(w.broken, "doris-be-0")
	w.settle()
	if diff := cmp.Diff([]string{"doris-fe-0"}, w.evicts); diff != "" {
		t.Errorf("Pods replaced (-want +got):\n%s", diff)
	}
}

func TestPlanStartsOneFrontendFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeByThree)
	w.reconcile()
	if diff := cmp.Diff(map[string]int32{"fe": 1}, setNames(w)); diff != "" {
		t.Fatalf("first (-want +got):\n%s", diff)
	}
	if w.store.Now().Get(keyOf(&corev1.ConfigMap{ObjectMeta: objectMeta(w.dc, BootstrapConfigMapName("doris"), nil), TypeMeta: bootstrapRecord(w.dc).TypeMeta})) != nil {
		t.Error("the record that the frontends have served is there before they have")
	}
	w.controllers()
	w.reconcile()
	if diff := cmp.Diff(map[string]int32{"fe": 1}, setNames(w)); diff != "" {
		t.Fatalf("while it starts (-want +got):\n%s", diff)
	}
	w.kubelet()
	w.reconcile()
	if diff := cmp.Diff(map[string]int32{"fe": 3, "be": 3}, setNames(w)); diff != "" {
		t.Fatalf("when it serves (-want +got):\n%s", diff)
	}
	object(w, BootstrapConfigMapName("doris"), &corev1.ConfigMap{})
}

func TestAllFrontendsStayWantedWhenNoneServesAnyMore(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	for _, n := range []string{"doris-fe-0", "doris-fe-1", "doris-fe-2"} {
		w.broken[n] = true
	}
	w.kubelet()
	w.reconcile()
	if diff := cmp.Diff(map[string]int32{"fe": 3, "be": 3}, setNames(w)); diff != "" {
		t.Errorf("StatefulSets (-want +got):\n%s", diff)
	}
}

func TestMissingReferencesAreWaitedForByName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		add, create string
		into        func() (string, bool)
		names       []string
	}{
		"a ConfigMap of the frontends holds everything": {
			add: "feSpec: {configMapInfo: {configMapName: fe-conf}, ", create: "kind: ConfigMap\napiVersion: v1\nmetadata: {name: fe-conf}\ndata: {fe.conf: enable_fqdn_mode = true}",
			names: []string{"spec.feSpec.configMapInfo.configMapName", `ConfigMap "fe-conf"`, `namespace "shop"`},
		},
		"a Secret of the frontends holds everything": {
			add: "feSpec: {secrets: [{secretName: certs, mountPath: /certs}], ", create: "kind: Secret\napiVersion: v1\nmetadata: {name: certs}",
			names: []string{"spec.feSpec.secrets[0]", `Secret "certs"`},
		},
		"the account": {
			add: "authSecret: login\n  feSpec: {", create: "kind: Secret\napiVersion: v1\nmetadata: {name: login}",
			names: []string{"spec.authSecret", `Secret "login"`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, strings.Replace(smallCluster, "feSpec: {", tc.add, 1))
			p := w.settle()
			if len(setNames(w)) > 0 {
				t.Errorf("there are StatefulSets: %v", setNames(w))
			}
			waits := p.Waits()
			if len(waits) != 1 || waits[0].Reason != meta.ReasonMissingReference {
				t.Fatalf("waits are %v", waits)
			}
			for _, part := range tc.names {
				if !strings.Contains(waits[0].Message, part) {
					t.Errorf("message %q does not hold %q", waits[0].Message, part)
				}
				if !strings.Contains(condition(w.dc, meta.ConditionStalled), part) {
					t.Errorf("condition %q does not hold %q", condition(w.dc, meta.ConditionStalled), part)
				}
			}
			if strings.HasPrefix(tc.create, "kind: Secret") {
				w.user(tc.create, &corev1.Secret{})
			} else {
				w.user(tc.create, &corev1.ConfigMap{})
			}
			if p := w.settle(); len(p.Changes) > 0 {
				t.Errorf("it is there, and yet:\n%s", printPlan(p))
			}
		})
	}
}

func TestMissingReferenceOfBackendsLeavesFrontendsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(smallCluster, "beSpec: {", "beSpec: {configMapInfo: {configMapName: be-conf}, ", 1))
	w.settle()
	if diff := cmp.Diff(map[string]int32{"fe": 1}, setNames(w)); diff != "" {
		t.Errorf("StatefulSets (-want +got):\n%s", diff)
	}
}

func TestRefusalStopsEveryStep(t *testing.T) {
	t.Parallel()
	w := settled(t, smallCluster)
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.FeSpec.Image = "apache/doris:fe-2"
		s.BeSpec.Image = ""
	})
	version := w.store.Now().Version
	p := w.settle()
	if len(p.Steps) > 0 || w.store.Now().Version != version {
		t.Errorf("something was done about a refused spec: %v", steps(p))
	}
	if got := condition(w.dc, meta.ConditionStalled); !strings.Contains(got, "True InvalidSpec: spec.beSpec.image") {
		t.Errorf("Stalled is %q", got)
	}
	for _, c := range p.Changes {
		if c.Verdict != plan.VerdictRefuse {
			t.Errorf("%s %s has the verdict %s", c.Object, c.Path, c.Verdict)
		}
	}
}

func TestScaleInIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		act     func(*world)
		cause   string
		message string
	}{
		"back from what somebody else asked for": {
			act: func(w *world) {
				stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(5)) })
				w.settle()
			},
			cause: "drift", message: "somebody else scaled StatefulSet doris-be to 5",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := settled(t, threeByThree)
			tc.act(w)
			before := setNames(w)
			p := w.settle()
			if diff := cmp.Diff(before, setNames(w)); diff != "" {
				t.Errorf("StatefulSets (-before +after):\n%s", diff)
			}
			want := []string{"spec.replicas " + tc.cause + " data-loss refuse"}
			if diff := cmp.Diff(want, changesOf(p, "StatefulSet/doris-be")); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if got := condition(w.dc, meta.ConditionFullySupported); !strings.Contains(got, tc.message) || !strings.Contains(got, "spec.beSpec.replicas") {
				t.Errorf("FullySupported is %q", got)
			}
		})
	}
}

// TestScaleInUnasked plans without a way to the database, as the plugin does.
func TestScaleInUnasked(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(1)) })
	p := w.settle()
	if diff := cmp.Diff([]string{"spec.replicas user none wait"}, changesOf(p, "StatefulSet/doris-be")); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := printPlan(p); !strings.Contains(got, "doris-be-2, doris-be-1: the operator asks the database whether they can go, and takes them out of it first. The set shrinks once, when all are out") {
		t.Errorf("the plan is\n%s", got)
	}
	if diff := cmp.Diff(map[string]int32{"fe": 3, "be": 3}, setNames(w)); diff != "" {
		t.Errorf("StatefulSets (-want +got):\n%s", diff)
	}
}

func TestScaleInByAStrangerIsRestored(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) })
	p, _ := w.plan(w.store.Now())
	if diff := cmp.Diff([]string{"spec.replicas drift none apply"}, changesOf(p, "StatefulSet/doris-be")); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	w.settle()
	if diff := cmp.Diff(map[string]int32{"fe": 3, "be": 3}, setNames(w)); diff != "" {
		t.Errorf("StatefulSets (-want +got):\n%s", diff)
	}
}

func TestRollOrder(t *testing.T) {
	t.Parallel()
	all := []string{"doris-be-2", "doris-be-1", "doris-be-0", "doris-fe-2", "doris-fe-1", "doris-fe-0"}
	both := func(s *dorisv1.DorisClusterSpec) {
		s.FeSpec.Image, s.BeSpec.Image = "apache/doris:fe-2", "apache/doris:be-2"
	}
	tests := map[string]struct {
		act  func(*world)
		want []string
	}{
		"backends first, then frontends, the last of each first": {
			act: func(w *world) { w.edit(both) }, want: all,
		},
		"only what changed": {
			act:  func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-2" }) },
			want: all[3:],
		},
		"a broken outdated Pod goes first": {
			act: func(w *world) {
				w.broken["doris-be-0"] = true
				w.kubelet()
				w.edit(both)
				w.reconcile()
				w.controllers()
				w.reconcile()
				delete(w.broken, "doris-be-0")
			},
			want: []string{"doris-be-0", "doris-be-2", "doris-be-1", "doris-fe-2", "doris-fe-1", "doris-fe-0"},
		},
		"a broken frontend goes before any backend": {
			act: func(w *world) {
				w.broken["doris-fe-1"] = true
				w.kubelet()
				w.edit(both)
				w.reconcile()
				w.controllers()
				w.reconcile()
				delete(w.broken, "doris-fe-1")
			},
			want: []string{"doris-fe-1", "doris-be-2", "doris-be-1", "doris-be-0", "doris-fe-2", "doris-fe-0"},
		},
		"nobody goes while a Pod of the other component is down": {
			act: func(w *world) {
				w.broken["doris-fe-1"] = true
				w.kubelet()
				w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
				w.settle()
			},
		},
		"a bad image stops at one Pod": {
			act: func(w *world) {
				w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:bad" })
				w.settle()
			},
			want: all[:1],
		},
		"a bad image goes on when it is mended": {
			act: func(w *world) {
				w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:bad" })
				w.settle()
				w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-3" })
			},
			want: []string{"doris-be-2", "doris-be-2", "doris-be-1", "doris-be-0"},
		},
		"a restart that somebody asked kubectl for is honoured": {
			act: func(w *world) {
				stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
					s.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
				})
			},
			want: all[:3],
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := settled(t, threeByThree)
			tc.act(w)
			w.settle()
			if diff := cmp.Diff(tc.want, w.evicts); diff != "" {
				t.Errorf("Pods replaced (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnseenTemplateIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	p := w.reconcile()
	if len(w.evicts) > 0 {
		t.Fatalf("%v went although the controller has not seen the template", w.evicts)
	}
	if got := p.Waits()[0].Message; !strings.Contains(got, "has not seen the newest template of be") {
		t.Errorf("waits for %q", got)
	}
	if phase := w.dc.Status.BeStatus.ComponentCondition.Phase; phase == dorisv1.PhaseAvailable {
		t.Errorf("the phase is %s although nobody knows which Pods are outdated", phase)
	}
}

func TestPlanOfAnEditNamesEveryPod(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	p, _ := w.plan(w.store.Now())
	for _, pod := range []string{"doris-be-0", "doris-be-1", "doris-be-2"} {
		if diff := cmp.Diff([]string{"user restart-pod wait"}, changesOf(p, "Pod/"+pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pod, diff)
		}
	}
	if got := changesOf(p, "Pod/doris-fe-0"); len(got) > 0 {
		t.Errorf("doris-fe-0: %v", got)
	}
	// In the middle of the roll the rest is still listed.
	w.reconcile()
	w.controllers()
	p, _ = w.plan(w.store.Now())
	got := map[string][]string{}
	for _, pod := range []string{"doris-be-0", "doris-be-1", "doris-be-2"} {
		got[pod] = changesOf(p, "Pod/"+pod)
	}
	want := map[string][]string{
		"doris-be-2": {"user restart-pod apply"}, "doris-be-1": {"user restart-pod wait"}, "doris-be-0": {"user restart-pod wait"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the middle of the roll (-want +got):\n%s", diff)
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	withConfig := strings.NewReplacer("feSpec: {", "feSpec: {configMapInfo: {configMapName: fe-conf}, ", "spec:\n", "spec:\n  runtimeConfigPersistence: {enabled: false}\n").Replace(threeByThree) +
		"\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: fe-conf}\ndata: {fe.conf: \"enable_fqdn_mode = true\\nquery_port = 9030\\n\"}\n"
	editTemplate := func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "apache/doris:strange" }
	tests := map[string]struct {
		act    func(*world)
		object string
		want   []string
		writes bool // although there is no change that is worth saying
	}{
		"the spec changed": {
			act:    func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" }) },
			object: "StatefulSet/doris-be",
			want: []string{
				`spec.template.spec.containers[name="be"].image user restart-pod apply`,
				`spec.template.spec.initContainers[name="default-init"].image user restart-pod apply`,
			},
		},
		"a ConfigMap changed what is rendered": {
			act: func(w *world) {
				stranger(w, "fe-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["fe.conf"] = "enable_fqdn_mode = true\nquery_port = 9031\n" })
			},
			object: "ConfigMap/fe-conf",
			want:   []string{`for fe: data["fe.conf"].query_port config restart-pod hold`},
		},
		"and the set stays": {
			act: func(w *world) {
				stranger(w, "fe-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["fe.conf"] = "enable_fqdn_mode = true\nquery_port = 9031\n" })
			},
			object: "StatefulSet/doris-fe",
		},
		"a ConfigMap changed what is rendered, and is followed": {
			act: func(w *world) {
				w.edit(func(s *dorisv1.DorisClusterSpec) { s.ConfigUpdatePolicy = dorisv1.ConfigUpdateRestart })
				stranger(w, "fe-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["fe.conf"] = "enable_fqdn_mode = true\nquery_port = 9031\n" })
			},
			object: "StatefulSet/doris-fe",
			want:   []string{"config"},
		},
		"the backends are told of it": {
			act: func(w *world) {
				w.edit(func(s *dorisv1.DorisClusterSpec) { s.ConfigUpdatePolicy = dorisv1.ConfigUpdateRestart })
				stranger(w, "fe-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["fe.conf"] = "enable_fqdn_mode = true\nquery_port = 9031\n" })
			},
			object: "StatefulSet/doris-be",
			want:   []string{`spec.template.spec.containers[name="be"].env[name="FE_QUERY_PORT"].value config restart-pod apply`},
		},
		"a ConfigMap changed what is not rendered": {
			act: func(w *world) {
				stranger(w, "fe-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["fe.conf"] += "sys_log_level = WARN\n" })
			},
			object: "StatefulSet/doris-fe",
		},
		"a stranger edited the template": {
			act:    func(w *world) { stranger(w, "doris-be", &appsv1.StatefulSet{}, editTemplate) },
			object: "StatefulSet/doris-be",
			want:   []string{`spec.template.spec.containers[name="be"].image drift restart-pod hold`},
		},
		"a stranger edited a field of the set outside the template": {
			act: func(w *world) {
				stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.RevisionHistoryLimit = new(int32(1)) })
			},
			object: "StatefulSet/doris-be",
			want:   []string{"spec.revisionHistoryLimit drift none apply"},
		},
		"a stranger took the record away": {
			act: func(w *world) {
				stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { delete(s.Annotations, meta.AnnotationAccepted) })
			},
			object: "StatefulSet/doris-be",
			writes: true,
		},
		"the record is gone and the spec changed": {
			act: func(w *world) {
				stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { delete(s.Annotations, meta.AnnotationAccepted) })
				w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
			},
			object: "StatefulSet/doris-be",
			want: []string{
				`spec.template.spec.containers[name="be"].image user restart-pod apply`,
				`spec.template.spec.initContainers[name="default-init"].image user restart-pod apply`,
			},
		},
		"the record is gone and a stranger edited the template": {
			act: func(w *world) {
				stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
					delete(s.Annotations, meta.AnnotationAccepted)
					editTemplate(s)
				})
			},
			object: "StatefulSet/doris-be",
			want: []string{
				`spec.template.spec.containers[name="be"].image drift restart-pod hold`,
			},
		},
		"the number of replicas changed in the spec": {
			act:    func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(4)) }) },
			object: "StatefulSet/doris-be",
			want:   []string{"spec.replicas user none apply"},
		},
		"a stranger edited the Service": {
			act: func(w *world) {
				stranger(w, "doris-fe-service", &corev1.Service{}, func(s *corev1.Service) { s.Spec.Ports[0].Port = 1 })
			},
			object: "Service/doris-fe-service",
			want:   []string{"drift"},
		},
		"the Service changed in the spec": {
			act: func(w *world) {
				w.edit(func(s *dorisv1.DorisClusterSpec) {
					s.FeSpec.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort}
				})
			},
			object: "Service/doris-fe-service",
			want:   []string{"spec.type user none apply"},
		},
		"and that changed nothing else": {
			act: func(w *world) {
				w.edit(func(s *dorisv1.DorisClusterSpec) {
					s.FeSpec.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort}
				})
			},
			object: "StatefulSet/doris-fe",
		},
		"the revision of the rendering is another": {
			act: func(w *world) {
				stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
					s.Annotations[meta.AnnotationRevision] = "0"
					editTemplate(s)
				})
				w.dc.Status.Workloads = nil // which would say that somebody made it so
			},
			object: "StatefulSet/doris-be",
			want:   []string{"revision"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := settled(t, withConfig)
			tc.act(w)
			p, _ := w.plan(w.store.Now())
			got := changesOf(p, tc.object)
			if tc.writes && len(p.Steps) == 0 {
				t.Error("nothing is written")
			}
			if len(tc.want) == 1 && !strings.Contains(tc.want[0], " ") { // every change has that cause
				if len(got) == 0 {
					t.Fatal("there is no change")
				}
				for _, c := range got {
					if !slices.Contains(strings.Fields(c), tc.want[0]) {
						t.Errorf("change %q is not by %s", c, tc.want[0])
					}
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStrangersTemplateIsHeldUntilTheSpecChanges(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "apache/doris:strange" })
	version := w.store.Now().Version
	w.settle()
	if len(w.evicts) > 0 {
		t.Errorf("Pods went for a stranger's edit: %v", w.evicts)
	}
	image := func() string {
		return object(w, "doris-be", &appsv1.StatefulSet{}).Spec.Template.Spec.Containers[0].Image
	}
	if image() != "apache/doris:strange" {
		t.Errorf("the stranger's edit is fought over: image is %s", image())
	}
	if w.store.Now().Version > version+2 { // the controller saw the template, and keeps it as a revision
		t.Errorf("%d writes", w.store.Now().Version-version)
	}
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %q: a held change does not make it False", got)
	}
	if got := condition(w.dc, meta.ConditionChangePending); !strings.Contains(got, "doris-be") {
		t.Errorf("ChangePending is %q", got)
	}
	// Scaling and Services go on meanwhile.
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(4)) })
	w.settle()
	if image() != "apache/doris:strange" || setNames(w)["be"] != 4 || len(w.evicts) > 0 {
		t.Errorf("image %s, sets %v, evictions %v", image(), setNames(w), w.evicts)
	}
	// The next edit of the spec by the user ends it.
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	if p := w.settle(); len(p.Changes) > 0 || image() != "apache/doris:be-2" {
		t.Errorf("image %s, and still:\n%s", image(), printPlan(p))
	}
}

func TestNoSecretGoesIntoARecord(t *testing.T) {
	t.Parallel()
	dc := &dorisv1.DorisCluster{}
	dc.Name = "doris"
	dc.Spec.AdminUser = &dorisv1.AdminUser{Name: "admin", Password: "one"}
	dc.Spec.FeSpec = &dorisv1.FeSpec{BaseSpec: dorisv1.BaseSpec{Image: "a"}}
	dc.Spec.BeSpec = &dorisv1.BeSpec{BaseSpec: dorisv1.BaseSpec{Image: "a"}}
	dc.Spec.CnSpec = &dorisv1.CnSpec{BaseSpec: dorisv1.BaseSpec{Image: "a"}}
	dc.Spec.BrokerSpec = &dorisv1.BrokerSpec{BaseSpec: dorisv1.BaseSpec{Image: "a"}}
	records := func() []string {
		var out []string
		for _, kind := range rendered {
			record := accepting(dc, kind, Settings{}, nil)
			set := record.render(dc, kind, rendering{revision: LatestRevision}).StatefulSet
			stamp(set, nil, nil)
			out = append(out, record.String(), set.Spec.Template.Annotations[meta.AnnotationTemplate])
		}
		return out
	}
	one := records()
	dc.Spec.AdminUser.Password = "two"
	if diff := cmp.Diff(one, records()); diff != "" {
		t.Errorf("the password shows in a record:\n%s", diff)
	}
	dc.Spec.AdminUser.Name = "root"
	if cmp.Equal(one, records()) {
		t.Error("the name of the account shows nowhere: the test sees nothing")
	}
}
