package stories

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/story"
)

// complete has all components, an autoscaler and a shared claim.
const complete = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  sharedPersistentVolumeClaims: [{persistentVolumeClaimName: jars, mountPath: $DORIS_HOME/jars, supportComponents: [cn, broker]}]
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8"}
  beSpec: {replicas: 1, image: "apache/doris:be-2.1.8"}
  cnSpec:
    image: apache/doris:be-2.1.8
    configMapInfo: {configMapName: cn-conf}
    autoScalingPolicy: {minReplicas: 2, maxReplicas: 6}
  brokerSpec: {image: "apache/doris:broker-2.1.8", kickOffAffinityBe: true}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cn-conf}
data: {be.conf: "be_node_role = computation"}
`

const sharedClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: jars}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
`

// scaleResource scales the compute nodes of a cluster as an autoscaler does.
func (s *scene) scaleResource(manager, name string, replicas int32) {
	s.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	err := s.client.SubResource("scale").Patch(s.Context(), s.doris(name), client.RawPatch("application/merge-patch+json", []byte(patch)),
		client.FieldOwner(manager), client.WithSubResourceBody(&autoscalingv1.Scale{}))
	if err != nil {
		s.Fatal(err)
	}
}

// scaleOf is what an autoscaler reads of a cluster.
func (s *scene) scaleOf(name string) *autoscalingv1.Scale {
	s.Helper()
	scale := &autoscalingv1.Scale{}
	if err := s.client.SubResource("scale").Get(s.Context(), s.doris(name), scale); err != nil {
		s.Fatal(err)
	}
	return scale
}

func (s *scene) autoscaler(name string) *autoscalingv2.HorizontalPodAutoscaler {
	s.Helper()
	a := &autoscalingv2.HorizontalPodAutoscaler{}
	s.get(name, a)
	return a
}

// TestComponentsAreMadeAndScaled makes a cluster with compute nodes and a broker. A
// claim that it names comes late, and is noticed. The autoscaler's number is
// followed; without its policy the autoscaler goes.
func TestComponentsAreMadeAndScaled(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(complete)
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "jars")
	s.create(sharedClaim)
	dc := s.settled("doris")
	if n := len(s.pods("cn")); n != 2 {
		t.Errorf("%d compute nodes, want the 2 that the autoscaler may not go below", n)
	}
	if dc.Status.CnStatus == nil || dc.Status.BrokerStatus == nil || dc.Status.CnStatus.ComponentCondition.Phase != dorisv1.PhaseAvailable || dc.Status.BrokerStatus.ComponentCondition.Phase != dorisv1.PhaseAvailable {
		t.Errorf("cn is %+v, broker is %+v", dc.Status.CnStatus, dc.Status.BrokerStatus)
	}
	s.eventually("the autoscaler can begin", func() string {
		if scale := s.scaleOf("doris"); scale.Spec.Replicas != 2 || scale.Status.Replicas != 2 || !strings.Contains(scale.Status.Selector, "doris-cn") {
			return fmt.Sprintf("scale is %+v", scale)
		}
		for _, c := range s.autoscaler("doris-cn-autoscaler").Status.Conditions {
			if c.Type == autoscalingv2.AbleToScale {
				if c.Status == corev1.ConditionTrue {
					return ""
				}
				return c.Message
			}
		}
		return "it has not looked yet"
	})
	pods := s.identities()
	s.scaleResource("kube-controller-manager", "doris", 4)
	s.settled("doris")
	s.eventually("there are four compute nodes", func() string {
		if n := len(s.pods("cn")); n != 4 {
			return fmt.Sprintf("there are %d", n)
		}
		return ""
	})
	for name, uid := range pods {
		if s.identities()[name] != uid {
			t.Errorf("%s was replaced by the scaling", name)
		}
	}
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.CnSpec.AutoScalingPolicy = nil })
	s.eventually("the autoscaler is gone", func() string {
		if list := s.list(&autoscalingv2.HorizontalPodAutoscalerList{}); len(list) > 0 {
			return "it is there"
		}
		return ""
	})
	if dc := s.settled("doris"); dc.Status.CnStatus.HorizontalScaler != nil || len(s.pods("cn")) != 4 {
		t.Errorf("without the policy: %+v, %d compute nodes", dc.Status.CnStatus.HorizontalScaler, len(s.pods("cn")))
	}
	s.quiet(2 * time.Second)
}

// TestAutoscalerIsTakenOverWhereItHasScaled takes a cluster over whose autoscaler has
// scaled the set to five while the resource says two, and kills the operator
// meanwhile. Nothing is scaled, before and after the autoscaler has another target.
func TestAutoscalerIsTakenOverWhereItHasScaled(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const name, set, scaler = "components", "components-cn", "components-cn-autoscaler"
	s.legacy(readFile(t, "testdata/legacy/components.yaml"))
	s.legacyAutoscaler(name)
	s.scaleAs("kube-controller-manager", set, 5)
	s.serves()
	pods, workloads := s.identities(), s.workloads()
	said := printed(s.plannedBy(s.present(), name))
	for _, part := range []string{"DorisCluster/components spec.cnSpec.replicas: 2 → 5", "spec.scaleTargetRef: StatefulSet/components-cn → DorisCluster/components"} {
		if !strings.Contains(said, part) {
			t.Errorf("the plan does not say %q:\n%s", part, said)
		}
	}
	op := s.operate()
	for range 3 {
		time.Sleep(300 * time.Millisecond) // somewhere in the takeover
		op.end(syscall.SIGKILL)
		op.start()
	}
	s.takenOver(name)
	s.eventually("the autoscaler looks at the resource", func() string {
		if target := s.autoscaler(scaler).Spec.ScaleTargetRef; target.Kind != dorisv1.Kind || target.Name != name {
			return fmt.Sprintf("it looks at %+v", target)
		}
		return ""
	})
	s.stays("everything", 3*time.Second, func() string {
		return cmp.Diff([]map[string]string{pods, workloads}, []map[string]string{s.identities(), s.workloads()})
	})
	dc := s.settled(name)
	if n := dc.Spec.CnSpec.Replicas; n == nil || *n != 5 {
		t.Errorf("the resource says %v, want 5", n)
	}
	if c := dc.Status.CnStatus; c == nil || c.HorizontalScaler == nil || *c.HorizontalScaler != (dorisv1.HorizontalScaler{Name: scaler, Version: "v1"}) {
		t.Errorf("cnStatus is %+v", c)
	}
	// The manifest is applied again: what the autoscaler chose stays.
	s.edit(name, func(dc *dorisv1.DorisCluster) { dc.Spec.CnSpec.Replicas = new(int32(2)) })
	s.stays("five compute nodes", 2*time.Second, func() string { return cmp.Diff(workloads, s.workloads()) })
	s.scaleResource("kube-controller-manager", name, 6)
	s.eventually("the autoscaler is followed", func() string {
		if n := *s.set(set).Spec.Replicas; n != 6 {
			return fmt.Sprintf("there are %d", n)
		}
		return ""
	})
	s.serves()
	for pod, uid := range pods {
		if s.identities()[pod] != uid {
			t.Errorf("%s was replaced", pod)
		}
	}
}

// legacyAutoscaler makes the autoscaler that the existing operator would have made.
func (s *scene) legacyAutoscaler(name string) {
	s.Helper()
	dc := s.doris(name)
	policy := dc.Spec.CnSpec.AutoScalingPolicy
	s.makeLegacy(dc, &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-cn-autoscaler", Labels: map[string]string{dorisv1.LabelOwner: name, dorisv1.LabelComponent: "autoscaler"}},
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: name + "-cn"},
			MinReplicas:    policy.MinReplicas, MaxReplicas: policy.MaxReplicas,
		},
	})
}

// TestComputeNodesNeedTheirRole refuses compute nodes whose configuration makes none
// of them, with the way out, until it does.
func TestComputeNodesNeedTheirRole(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(strings.Replace(complete, "be_node_role = computation", "be_port = 9060", 1) + "---" + sharedClaim)
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "spec.cnSpec.configMapInfo", "be_node_role = computation")
	if pods := s.pods(""); len(pods) > 0 {
		t.Errorf("%d Pods although the cluster is refused", len(pods))
	}
	change(s, "cn-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["be.conf"] = "be_node_role = computation" })
	s.settled("doris")
	for _, p := range s.pods("") {
		if !story.PodReady(&p) {
			t.Errorf("%s is not ready", p.Name)
		}
	}
}

// TestComponentIsTakenAway takes compute nodes, of which there are none, out of the
// spec: the set goes, then its Services, and nothing else.
func TestComponentIsTakenAway(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(strings.Replace(small, "spec:\n", "spec:\n  cnSpec: {replicas: 0, image: \"apache/doris:be-2.1.8\", configMapInfo: {configMapName: cn-conf}}\n", 1) + `---
apiVersion: v1
kind: ConfigMap
metadata: {name: cn-conf}
data: {be.conf: "be_node_role = computation"}
`)
	s.settled("doris")
	of := func(list client.ObjectList) (left []string) {
		for _, o := range s.list(list) {
			if o.GetLabels()[dorisv1.LabelComponent] == "cn" {
				left = append(left, o.GetName())
			}
		}
		return left
	}
	if sets, services := of(&appsv1.StatefulSetList{}), of(&corev1.ServiceList{}); len(sets) != 1 || len(services) != 2 {
		t.Fatalf("compute nodes have %v and %v", sets, services)
	}
	before := s.identities()
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.CnSpec = nil })
	s.eventually("set and Services are gone", func() string {
		if left := append(of(&appsv1.StatefulSetList{}), of(&corev1.ServiceList{})...); len(left) > 0 {
			return strings.Join(left, ", ") + " are there"
		}
		return ""
	})
	s.settled("doris")
	s.samePods(before)
}
