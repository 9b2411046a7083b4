package doris

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// fourComponents is a cluster with all of them, and an autoscaler.
const fourComponents = smallCluster + `  cnSpec:
    image: apache/doris:be-1
    configMapInfo: {configMapName: cn-conf}
    autoScalingPolicy: {minReplicas: 2, maxReplicas: 6}
  brokerSpec:
    image: apache/doris:broker-1
    configMapInfo: {configMapName: broker-conf}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: cn-conf}
data: {be.conf: "be_node_role = computation"}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: broker-conf}
data: {apache_hdfs_broker.conf: "broker_ipc_port = 8000"}
`

// scale carries out a patch of the scale subresource of the resource.
func (w *world) scale(p plan.Patch) error {
	if _, is := p.Object.(*dorisv1.DorisCluster); !is {
		return fmt.Errorf("%s has no scale subresource here", p.Target())
	}
	spec, _ := p.Fields["spec"].(map[string]any)
	n, ok := spec["replicas"].(int64)
	if !ok {
		return fmt.Errorf("%v says no number", p.Fields)
	}
	w.scaleTo(int32(n), p.Manager)
	return nil
}

// scaleTo scales the compute nodes through the resource.
func (w *world) scaleTo(n int32, manager string) {
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec.Replicas = &n })
	w.dc.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:cnSpec":{"f:replicas":{}}}}`),
	}}
}

func (w *world) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	a, _ := w.store.Now().Get(keyOf(&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "doris-cn-autoscaler"}})).(*autoscalingv2.HorizontalPodAutoscaler)
	return a
}

func TestAllComponentsAreBroughtUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fourComponents)
	p := w.reconcile()
	if waits := p.Waits(); len(waits) != 1 || !strings.Contains(waits[0].Message, "backends are made when a frontend serves") {
		t.Errorf("before a frontend serves it waits for %v", waits)
	}
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("settled, and still:\n%s", printPlan(p))
	}
	want := map[string]int32{"doris-fe": 1, "doris-be": 1, "doris-cn": 2, "doris-broker": 1}
	for name, n := range want {
		if got := *w.set(name).Spec.Replicas; got != n {
			t.Errorf("%s has %d replicas, want %d", name, got, n)
		}
	}
	a := w.autoscaler()
	if a == nil || targetName(a.Spec.ScaleTargetRef) != "DorisCluster/doris" || *a.Spec.MinReplicas != 2 || a.Spec.MaxReplicas != 6 {
		t.Errorf("the autoscaler is %+v", a)
	}
	if n := w.dc.Spec.CnSpec.Replicas; n == nil || *n != 2 {
		t.Errorf("the autoscaler has no number to start from: %v", n)
	}
	cn, broker := w.dc.Status.CnStatus, w.dc.Status.BrokerStatus
	if cn == nil || cn.ComponentCondition.Phase != dorisv1.PhaseAvailable || cn.HorizontalScaler == nil || *cn.HorizontalScaler != (dorisv1.HorizontalScaler{Name: "doris-cn-autoscaler", Version: "v2"}) {
		t.Errorf("cnStatus is %+v", cn)
	}
	if cn != nil && cn.Selector != "app.doris.ownerreference/name=doris-cn,app.kubernetes.io/component=cn" {
		t.Errorf("the selector for the autoscaler is %q", cn.Selector)
	}
	if broker == nil || broker.ComponentCondition.Phase != dorisv1.PhaseAvailable || !slices.Equal(broker.RunningInstances, []string{"doris-broker-0"}) || broker.AccessService != "" {
		t.Errorf("brokerStatus is %+v", broker)
	}
	if got := condition(w.dc, "Ready"); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %s", got)
	}
}

// legacyAutoscaler makes the autoscaler of the existing operator, which has scaled
// the set to a number.
func legacyAutoscaler(w *world, n int32) {
	a := autoscaler(w.dc)
	a.Annotations, a.OwnerReferences[0].Controller = nil, nil
	a.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "doris-cn"}
	_, err := w.store.Create(a, upstream)
	w.must(err)
	w.scaledThrough("doris-cn", n, "kube-controller-manager")
	if !autoscaled(w.set("doris-cn")) {
		w.Fatalf("nobody would know that an autoscaler scaled it: %+v", w.set("doris-cn").ManagedFields)
	}
	w.controllers()
	w.kubelet()
}

func legacyFour(t *testing.T, scaled int32) *world {
	t.Helper()
	w := legacy(t, strings.Replace(fourComponents, "  cnSpec:\n", "  cnSpec:\n    replicas: 2\n", 1), nil)
	legacyAutoscaler(w, scaled)
	return w
}

// allTemplates are what decides about the Pods of every set.
func allTemplates(w *world) string {
	var out []string
	for _, o := range w.store.Now().List(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "shop") {
		set, _ := o.(*appsv1.StatefulSet)
		text, err := json.Marshal([]any{set.Name, set.Spec.Template, set.Spec.VolumeClaimTemplates, set.Spec.Replicas})
		w.must(err)
		out = append(out, string(text))
	}
	return strings.Join(out, "\n")
}

// TestAutoscalerIsTakenOver holds that the number which the autoscaler chose in the
// set goes over to the resource before the autoscaler looks at it, and that a kill
// after any write scales nothing.
func TestAutoscalerIsTakenOver(t *testing.T) {
	t.Parallel()
	kills := 0
	for survive := range 12 {
		w := legacyFour(t, 5)
		before := allTemplates(w)
		p, _ := w.plan(w.store.Now())
		if survive == 0 {
			said := printPlan(p)
			for _, part := range []string{
				"DorisCluster/doris spec.cnSpec.replicas: 2 → 5 | revision none apply | TakenOver",
				"HorizontalPodAutoscaler/doris-cn-autoscaler spec.scaleTargetRef: StatefulSet/doris-cn → DorisCluster/doris | revision none apply | TakenOver",
			} {
				if !strings.Contains(said, part) {
					t.Errorf("the plan does not say %q:\n%s", part, said)
				}
			}
			one, two := slices.Index(steps(p), "Patch DorisCluster/doris"), slices.Index(steps(p), "Patch HorizontalPodAutoscaler/doris-cn-autoscaler")
			if one < 0 || two < one {
				t.Errorf("the number is noted too late: %v", steps(p))
			}
		}
		for i, s := range p.Steps {
			if i == survive {
				kills++
				break
			}
			w.must(w.step(s))
		}
		w.settle()
		if after := allTemplates(w); after != before {
			t.Fatalf("killed after %d writes, it moved something:\n%s", survive, cmp.Diff(before, after))
		}
		if targetName(w.autoscaler().Spec.ScaleTargetRef) != "DorisCluster/doris" || *w.dc.Spec.CnSpec.Replicas != 5 {
			t.Errorf("killed after %d writes: the target is %v, the number %d", survive, w.autoscaler().Spec.ScaleTargetRef, *w.dc.Spec.CnSpec.Replicas)
		}
		if len(w.evicts) > 0 {
			t.Errorf("killed after %d writes: evicted %v", survive, w.evicts)
		}
	}
	if kills < 6 {
		t.Errorf("%d kills: the takeover has fewer writes than the test thinks", kills)
	}
}

func TestNumberOfComputeNodesFollowsTheAutoscaler(t *testing.T) {
	t.Parallel()
	w := legacyFour(t, 5)
	w.settle()
	w.dc.ManagedFields = nil // somebody applies the manifest again
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec.Replicas = new(int32(2)) })
	p := w.settle()
	if n := *w.set("doris-cn").Spec.Replicas; n != 5 {
		t.Fatalf("a manifest scaled in what the autoscaler chose, to %d", n)
	}
	if got := changesOf(p, "StatefulSet/doris-cn"); !slices.Contains(got, "spec.replicas user none refuse") {
		t.Errorf("the plan does not say so: %v", got)
	}
	w.scaleTo(6, "kube-controller-manager")
	w.settle()
	if n := *w.set("doris-cn").Spec.Replicas; n != 6 {
		t.Errorf("the autoscaler chose 6, and there are %d", n)
	}
	if cn := w.dc.Status.CnStatus; len(cn.RunningInstances) != 6 {
		t.Errorf("running: %v", cn.RunningInstances)
	}
}

func TestAutoscalerFollowsItsPolicy(t *testing.T) {
	t.Parallel()
	w := settled(t, fourComponents)
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.CnSpec.AutoScalingPolicy.MaxReplicas = 9
		s.CnSpec.AutoScalingPolicy.HPAPolicy = &dorisv1.HPAPolicy{Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(60))},
		}}
	})
	w.settle()
	if a := w.autoscaler(); a.Spec.MaxReplicas != 9 || a.Spec.Behavior == nil {
		t.Errorf("the autoscaler does not follow: %+v", a.Spec)
	}
	stranger(w, "doris-cn-autoscaler", &autoscalingv2.HorizontalPodAutoscaler{}, func(a *autoscalingv2.HorizontalPodAutoscaler) { a.Spec.MaxReplicas = 50 })
	w.settle()
	if a := w.autoscaler(); a.Spec.MaxReplicas != 9 {
		t.Errorf("somebody else's edit stays: %d", a.Spec.MaxReplicas)
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec.AutoScalingPolicy = nil })
	if p := w.settle(); len(p.Changes) > 0 {
		t.Errorf("settled, and still:\n%s", printPlan(p))
	}
	if w.autoscaler() != nil || w.dc.Status.CnStatus.HorizontalScaler != nil {
		t.Error("the policy is gone, and the autoscaler is there")
	}
	if n := *w.set("doris-cn").Spec.Replicas; n != 2 {
		t.Errorf("%d compute nodes without the policy, want as many as before", n)
	}
}

func TestAutoscalerOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fourComponents)
	theirs := autoscaler(w.dc)
	theirs.OwnerReferences, theirs.Spec.MaxReplicas = nil, 3
	_, err := w.store.Create(theirs, "somebody")
	w.must(err)
	p := w.settle()
	if refused := p.Refused(); len(refused) != 1 || refused[0].Field != fieldPolicy {
		t.Errorf("refused: %v", refused)
	}
	if w.autoscaler().Spec.MaxReplicas != 3 {
		t.Error("it was changed")
	}
}

func TestAutoscalerIsHandedBack(t *testing.T) {
	t.Parallel()
	w := legacyFour(t, 4)
	w.settle()
	w.asks(map[string]string{meta.AnnotationRelease: "true"})
	w.settle()
	a := w.autoscaler()
	if targetName(a.Spec.ScaleTargetRef) != "StatefulSet/doris-cn" || a.Annotations[meta.AnnotationInputs] != "" {
		t.Errorf("handed back it is %+v, %v", a.Spec.ScaleTargetRef, a.Annotations)
	}
	for _, name := range []string{"doris-fe", "doris-be", "doris-cn", "doris-broker"} {
		if set := w.set(name); set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || ours(set) {
			t.Errorf("%s was not handed back", name)
		}
	}
	if n := *w.set("doris-cn").Spec.Replicas; n != 4 {
		t.Errorf("%d compute nodes, want 4", n)
	}
}

// TestComputeRole holds that Pods which would hold data are not made as compute
// nodes, and that those which run are looked after.
func TestComputeRole(t *testing.T) {
	t.Parallel()
	withoutRole := strings.Replace(fourComponents, "be_node_role = computation", "be_port = 9060", 1)
	field := "spec.cnSpec.configMapInfo"
	t.Run("a new set is refused", func(t *testing.T) {
		p := newWorld(t, withoutRole).settle()
		if refused := p.Refused(); len(refused) != 1 || refused[0].Field != field || !strings.Contains(refused[0].Message, "be_node_role = computation") {
			t.Errorf("refused: %v", refused)
		}
	})
	t.Run("one that was found is taken over, and warned about", func(t *testing.T) {
		w := legacy(t, withoutRole, nil)
		p := w.settle()
		if !slices.ContainsFunc(p.Findings, func(f plan.Finding) bool { return f.Severity == plan.Warning && f.Field == field }) || len(p.Refused()) > 0 {
			t.Errorf("found: %v", p.Findings)
		}
		if !pinned(w.set("doris-cn")) {
			t.Error("it was not taken over")
		}
		// Its Pods hold data on emptyDir volumes: replacing them waits for a person.
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec.Image = "apache/doris:be-2" })
		p = w.settle()
		if got := changesOf(p, "StatefulSet/doris-cn"); !slices.ContainsFunc(got, func(c string) bool { return strings.HasSuffix(c, ".image user data-loss hold") }) {
			t.Errorf("an image that costs data is not held: %v", got)
		}
	})
	t.Run("they have one way to leave", func(t *testing.T) {
		for policy, says := range map[dorisv1.ScaleInPolicy]bool{"": false, dorisv1.ScaleInDrop: false, dorisv1.ScaleInDecommission: true} {
			w := settled(t, fourComponents)
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec.ScaleInPolicy = policy })
			got := slices.ContainsFunc(w.settle().Findings, func(f plan.Finding) bool {
				return f.Field == "spec.cnSpec.scaleInPolicy" && f.Reason == meta.ReasonNoEffect
			})
			if got != says {
				t.Errorf("policy %q is said to have no effect: %t", policy, got)
			}
		}
	})
	t.Run("compute nodes lose no data", func(t *testing.T) {
		w := settled(t, fourComponents)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec.Image = "apache/doris:be-2" })
		w.settle()
		if !slices.Equal(w.evicts, []string{"doris-cn-1", "doris-cn-0"}) {
			t.Errorf("evicted %v", w.evicts)
		}
	})
	t.Run("a role that is taken away is refused", func(t *testing.T) {
		w := settled(t, strings.Replace(fourComponents, "spec:", "spec:\n  configUpdatePolicy: Restart", 1))
		stranger(w, "cn-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["be.conf"] = "be_port = 9060" })
		if refused := w.settle().Refused(); len(refused) != 1 || refused[0].Field != field {
			t.Errorf("refused: %v", refused)
		}
	})
	t.Run("a file that is not there may hold it", func(t *testing.T) {
		w := newWorld(t, strings.Replace(fourComponents, "cn-conf}\n    auto", "none}\n    auto", 1))
		p := w.settle()
		if len(p.Refused()) > 0 || len(p.Waits()) != 1 || !p.Waits()[0].Person {
			t.Errorf("refused %v, waits %v", p.Refused(), p.Waits())
		}
	})
}

func TestRestartOfEachComponent(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		dorisv1.AnnotationCNRestartedAt:     {"doris-cn-1", "doris-cn-0"},
		dorisv1.AnnotationBrokerRestartedAt: {"doris-broker-0"},
		dorisv1.AnnotationBERestartedAt:     {"doris-be-0"},
		dorisv1.AnnotationFERestartedAt:     {"doris-fe-0"},
	}
	for key, want := range tests {
		t.Run(key, func(t *testing.T) {
			w := settled(t, fourComponents)
			w.asks(map[string]string{key: "2026-05-06T07:00:00Z"})
			w.settle()
			if !slices.Equal(w.evicts, want) {
				t.Errorf("restarted %v, want %v", w.evicts, want)
			}
		})
	}
}

// TestConfigurationOfBrokers holds that nothing of a broker's file is set live.
func TestConfigurationOfBrokers(t *testing.T) {
	t.Parallel()
	tests := map[dorisv1.ConfigUpdatePolicy]struct {
		evicts []string
		held   bool
	}{
		dorisv1.ConfigUpdateManual:  {nil, true},
		dorisv1.ConfigUpdateRestart: {[]string{"doris-broker-0"}, false},
		dorisv1.ConfigUpdateAuto:    {[]string{"doris-broker-0"}, false},
	}
	for policy, want := range tests {
		t.Run(string(policy), func(t *testing.T) {
			w := settled(t, strings.Replace(fourComponents, "spec:", "spec:\n  configUpdatePolicy: "+string(policy), 1))
			stranger(w, "broker-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) {
				c.Data["apache_hdfs_broker.conf"] = "broker_ipc_port = 8000\nclient_expire_seconds = 10"
			})
			p := w.settle()
			if !slices.Equal(w.evicts, want.evicts) || len(p.Held()) > 0 != want.held {
				t.Errorf("evicted %v, held %v", w.evicts, p.Held())
			}
		})
	}
}

// TestSharedClaims holds that a shared claim is looked at before it is mounted.
func TestSharedClaims(t *testing.T) {
	t.Parallel()
	shared := strings.Replace(fourComponents, "spec:", "spec:\n  sharedPersistentVolumeClaims: [{persistentVolumeClaimName: jars, mountPath: $DORIS_HOME/jars, supportComponents: [cn, broker]}]", 1)
	claim := func(w *world, modes ...corev1.PersistentVolumeAccessMode) {
		_, err := w.store.Create(&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "jars"}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes},
		}, "user")
		w.must(err)
	}
	t.Run("missing: it is waited for, and found", func(t *testing.T) {
		w := newWorld(t, shared)
		p := w.settle()
		if waits := p.Waits(); len(waits) != 1 || !waits[0].Person || waits[0].On.String() != "PersistentVolumeClaim/jars" {
			t.Errorf("it waits for %v", waits)
		}
		claim(w, corev1.ReadWriteMany)
		if p := w.settle(); len(p.Changes) > 0 {
			t.Errorf("settled, and still:\n%s", printPlan(p))
		}
		for name, at := range map[string]string{"doris-cn": "/opt/apache-doris/be/jars", "doris-broker": "/opt/apache-doris/apache_hdfs_broker/jars"} {
			if !slices.ContainsFunc(w.set(name).Spec.Template.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == at }) {
				t.Errorf("%s does not mount it at %s", name, at)
			}
		}
	})
	t.Run("for one node alone: refused", func(t *testing.T) {
		w := newWorld(t, shared)
		claim(w, corev1.ReadWriteOnce)
		if refused := w.settle().Refused(); len(refused) != 1 || refused[0].Field != "spec.sharedPersistentVolumeClaims[0]" {
			t.Errorf("refused: %v", refused)
		}
	})
}

// TestComputeNodesAreReconfiguredLive holds that a setting of compute nodes is set
// in their running processes, and that backends, which mount another file, are left
// alone.
func TestComputeNodesAreReconfiguredLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(fourComponents, "spec:", "spec:\n  configUpdatePolicy: Auto", 1)).withNodes()
	w.settle()
	stranger(w, "cn-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) {
		c.Data["be.conf"] = "be_node_role = computation\nmax_tablet_version_num = 3000"
	})
	if p := w.settle(); len(p.Changes) > 0 || len(w.evicts) > 0 {
		t.Errorf("evicted %v, and still:\n%s", w.evicts, printPlan(p))
	}
	for pod, want := range map[string]string{"doris-cn-0": "3000", "doris-cn-1": "3000", "doris-be-0": "2000"} {
		if got := w.nodes.procs[pod].values["max_tablet_version_num"]; got != want {
			t.Errorf("%s has %q, want %q", pod, got, want)
		}
	}
}

// TestAutoscalerMayScaleIn holds that what an autoscaler chooses in the resource
// after the takeover is no edit of somebody else: compute nodes leave by it.
func TestAutoscalerMayScaleIn(t *testing.T) {
	t.Parallel()
	w := legacyFour(t, 5)
	w.settle()
	w.scaleTo(3, "kube-controller-manager")
	p, _ := w.plan(w.store.Now())
	for _, f := range p.Findings {
		if f.Reason == reasonCannotShrink {
			t.Errorf("it is refused: %v", f)
		}
	}
	if got := changesOf(p, "StatefulSet/doris-cn"); !slices.ContainsFunc(got, func(c string) bool { return strings.HasPrefix(c, "spec.replicas user ") }) {
		t.Errorf("nobody leaves: %v\n%s", got, printPlan(p))
	}
}

func TestAutoscalingPolicyIsChecked(t *testing.T) {
	t.Parallel()
	policy := func(least *int32, most int32) *dorisv1.AutoScalingPolicy {
		return &dorisv1.AutoScalingPolicy{MinReplicas: least, MaxReplicas: most}
	}
	tests := map[string]struct {
		policy *dorisv1.AutoScalingPolicy
		want   string
	}{
		"none":                             {nil, ""},
		"bounds":                           {policy(new(int32(2)), 5), ""},
		"the highest alone":                {policy(nil, 1), ""},
		"one number":                       {policy(new(int32(3)), 3), ""},
		"no highest":                       {policy(nil, 0), "Refusal maxReplicas"},
		"the lowest above the highest":     {policy(new(int32(6)), 5), "Refusal minReplicas"},
		"negative":                         {policy(new(int32(-1)), 5), "Refusal minReplicas"},
		"more than anybody means":          {policy(nil, 5000), "Refusal maxReplicas"},
		"zero is for Kubernetes to decide": {policy(new(int32(0)), 5), ""},
		"metrics of the old version": {&dorisv1.AutoScalingPolicy{
			Version: dorisv1.AutoScalerV1, MaxReplicas: 3, HPAPolicy: &dorisv1.HPAPolicy{},
		}, "Warning hpaPolicy"},
		"unknown version": {&dorisv1.AutoScalingPolicy{Version: "v3", MaxReplicas: 3}, "Warning version"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dc := valid()
			more(dc)
			dc.Spec.CnSpec.AutoScalingPolicy = test.policy
			var got []string
			for _, f := range Validate(dc) {
				got = append(got, string(f.Severity)+" "+strings.TrimPrefix(f.Field, fieldPolicy+"."))
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("found %v, want %q", got, test.want)
			}
		})
	}
}

// TestAutoscalerByVersion holds what counts of a policy, by its version.
func TestAutoscalerByVersion(t *testing.T) {
	t.Parallel()
	own := &dorisv1.HPAPolicy{
		Metrics:  []autoscalingv2.MetricSpec{{Type: autoscalingv2.ObjectMetricSourceType}},
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{},
	}
	for version, counts := range map[dorisv1.AutoScalerVersion]bool{"": true, dorisv1.AutoScalerV2: true, dorisv1.AutoScalerV1: false} {
		dc := valid()
		more(dc)
		dc.Spec.CnSpec.AutoScalingPolicy = &dorisv1.AutoScalingPolicy{Version: version, MaxReplicas: 3, HPAPolicy: own}
		a := autoscaler(dc)
		if got := a.Spec.Metrics[0].Type == autoscalingv2.ObjectMetricSourceType && a.Spec.Behavior != nil; got != counts {
			t.Errorf("version %q: metrics and behaviour count: %t, want %t", version, got, counts)
		}
		if !counts && *a.Spec.Metrics[0].Resource.Target.AverageUtilization != 80 {
			t.Errorf("version %q aims at %+v", version, a.Spec.Metrics[0])
		}
	}
}

func TestTranslateRefusalOfAnAutoscaler(t *testing.T) {
	t.Parallel()
	dc := valid()
	more(dc)
	dc.Spec.CnSpec.AutoScalingPolicy = &dorisv1.AutoScalingPolicy{MaxReplicas: 3}
	for at, want := range map[string]string{
		"spec.metrics[0].resource.target.averageUtilization": ".hpaPolicy.metrics[0].resource.target.averageUtilization",
		"spec.behavior.scaleDown.policies[0].periodSeconds":  ".hpaPolicy.behavior.scaleDown.policies[0].periodSeconds",
		"spec.minReplicas":    ".minReplicas",
		"spec.scaleTargetRef": "",
	} {
		a := autoscaler(dc)
		findings := TranslateRefusal(dc, asSent(t, a), invalid(a, at))
		if len(findings) != 1 || findings[0].Field != fieldPolicy+want {
			t.Errorf("%s: %v, want %s", at, findings, fieldPolicy+want)
		}
	}
}
