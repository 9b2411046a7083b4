package stories

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// TestAnotherOperatorIsAtWork lets another operator hold its lease: before a
// cluster is made, and again when it is there. It changes what all stories see,
// so it is told alone.
func TestAnotherOperatorIsAtWork(t *testing.T) {
	s := newScene(t)
	lease := func() *coordinationv1.Lease {
		now := metav1.NewMicroTime(time.Now())
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: doris.UpstreamLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("other-0"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &now},
		}
	}
	work := func() {
		if err := s.client.Create(t.Context(), lease()); err != nil {
			t.Fatal(err)
		}
	}
	leave := func() {
		if err := client.IgnoreNotFound(s.client.Delete(s.Context(), lease())); err != nil {
			t.Fatal(err)
		}
	}
	work()
	t.Cleanup(func() { _ = s.client.Delete(t.Context(), lease()) })
	s.operate()
	s.create(small)
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "OtherOperatorRunning", s.namespace+"/other-0", "Scale it down")
	s.stays("nothing is made", 2*time.Second, func() string {
		for kind, list := range ownKinds() {
			if n := len(s.list(list)); n > 0 && kind == "StatefulSet" {
				return "there is a StatefulSet"
			}
		}
		return ""
	})
	leave()
	s.settled("doris")

	// It is back, and somebody edits the cluster.
	work()
	before := s.identities()
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Replicas = new(int32(3)) })
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "OtherOperatorRunning")
	s.quiet(time.Second) // what it says of this has been written: the condition, then the event
	mark := s.mark()
	s.stays("no Pod moves", 3*time.Second, func() string {
		if len(s.identities()) != len(before) {
			return "there are other Pods"
		}
		return ""
	})
	tally, err := s.requests().Since(mark, s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	if n := tally.Restless(); n > 0 {
		t.Errorf("%d requests while another operator is at work: %s", n, tally.Summary())
	}
	leave()
	s.settled("doris")
	if n := len(s.pods("fe")); n != 3 {
		t.Errorf("%d frontends", n)
	}
}
