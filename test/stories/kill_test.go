package stories

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/simnode"
	"github.com/fairlead-dev/fairlead/test/story"
)

// TestKilledAtAnyMoment kills the operator with SIGKILL again and again while a
// cluster is created, upgraded and grown. What it left half done is finished by
// the next one, and no promise is broken on the way (see history).
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newScene(t)
	op := s.operate()
	kills := 0
	for _, act := range []func(){
		func() { s.create(three) },
		func() {
			s.edit("doris", func(dc *dorisv1.DorisCluster) {
				dc.Spec.FeSpec.Image, dc.Spec.BeSpec.Image = "apache/doris:fe-3.0.5", "apache/doris:be-3.0.5"
			})
		},
		func() {
			s.edit("doris", func(dc *dorisv1.DorisCluster) {
				dc.Spec.BeSpec.Replicas, dc.Spec.FeSpec.Image = new(int32(5)), "apache/doris:fe-3.0.6"
			})
		},
	} {
		act()
		for range 5 {
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second)))) // the random moment
			op.end(syscall.SIGKILL)
			kills++
			op.launch()
		}
		s.settled("doris")
	}
	s.quiet(2 * time.Second)
	if n := len(s.pods("")); n != 8 {
		t.Errorf("%d Pods, want 8", n)
	}
	for _, p := range s.pods("fe") {
		if p.Spec.Containers[0].Image != "apache/doris:fe-3.0.6" {
			t.Errorf("%s runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
	t.Logf("killed %d times", kills)
}

// TestFrontendReadyWhileNobodyLooks lets the frontend become ready while the
// operator is down, and again while it starts. Backends follow either way.
func TestFrontendReadyWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]bool{"before the operator is back": true, "while the operator starts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			op := s.operate()
			serve := s.nodes.Inject(simnode.Rule{Fault: simnode.FaultNeverReady, Namespace: s.namespace})
			s.create(small)
			s.says("doris", meta.ConditionReconciling, metav1.ConditionTrue, "backends are made when a frontend serves")
			s.eventually("the frontend runs", func() string {
				if len(s.pods("fe")) == 0 {
					return "there is none"
				}
				return ""
			})
			op.end(syscall.SIGKILL)
			if !wait {
				op.launch()
			}
			serve()
			s.eventually("the frontend is ready", func() string {
				if pods := s.pods("fe"); !story.PodReady(&pods[0]) {
					return "it is not"
				}
				return ""
			})
			if wait {
				op.launch()
			}
			s.settled("doris")
		})
	}
}

// TestReferencesAppearLater creates what a cluster refers to after the cluster,
// one after the other.
func TestReferencesAppearLater(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(`
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  authSecret: login
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8", configMapInfo: {configMapName: fe-conf}}
  beSpec: {replicas: 1, image: "apache/doris:be-2.1.8", configMapInfo: {configMapName: be-conf}}
`)
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, meta.ReasonMissingReference, `ConfigMap "fe-conf"`)
	s.create("kind: ConfigMap\napiVersion: v1\nmetadata: {name: fe-conf}\ndata: {fe.conf: \"enable_fqdn_mode = true\\n\"}")
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, meta.ReasonMissingReference, `Secret "login"`)
	s.create("kind: Secret\napiVersion: v1\nmetadata: {name: login}\nstringData: {username: root, password: a}")
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, meta.ReasonMissingReference, `ConfigMap "be-conf"`)
	s.create("kind: ConfigMap\napiVersion: v1\nmetadata: {name: be-conf}\ndata: {be.conf: \"heartbeat_service_port = 9150\\n\"}")
	s.settled("doris")
}
