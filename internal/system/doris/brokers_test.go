package doris

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

var withBrokers = strings.Replace(threeByThree, "  beSpec:", "  brokerSpec: {replicas: 3, image: \"apache/doris:broker-1\"}\n  beSpec:", 1)

// brokersAre holds which brokers there are, as Pods and in the database.
func (w *world) brokersAre(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.podNames("broker")); diff != "" {
		t.Errorf("Pods (-want +got):\n%s", diff)
	}
	var known []string
	for _, b := range w.db.brokers {
		known = append(known, podOfHost(b.Host))
	}
	slices.Sort(known)
	if diff := cmp.Diff(want, known); diff != "" {
		t.Errorf("brokers of the database (-want +got):\n%s", diff)
	}
}

func TestBrokersLeaveTheDatabase(t *testing.T) {
	t.Parallel()
	t.Run("fewer, and more again", func(t *testing.T) {
		w := memberCluster(t, withBrokers)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BrokerSpec.Replicas = new(int32(1)) })
		w.lives()
		w.brokersAre(t, "doris-broker-0")
		w.statements(t, "DROP BROKER `broker001` doris-broker-1", "DROP BROKER `broker001` doris-broker-2")
		if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
			t.Errorf("Ready is %q", got)
		}
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BrokerSpec.Replicas = new(int32(2)) })
		w.lives()
		w.brokersAre(t, "doris-broker-0", "doris-broker-1")
	})
	t.Run("gone from the spec", func(t *testing.T) {
		w := memberCluster(t, withBrokers)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BrokerSpec = nil })
		w.lives()
		w.brokersAre(t)
		if got := w.objectNames("StatefulSet"); !slices.Equal(got, []string{"doris-be", "doris-fe"}) {
			t.Errorf("StatefulSets are %v", got)
		}
	})
	t.Run("the set stays while the database says nothing", func(t *testing.T) {
		w := memberCluster(t, withBrokers)
		w.db.failing = client.ErrUnreachable
		w.now = w.now.Add(time.Hour)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BrokerSpec = nil })
		w.lives()
		if got := w.objectNames("StatefulSet"); !slices.Contains(got, "doris-broker") {
			t.Errorf("StatefulSets are %v", got)
		}
		if got := condition(w.dc, meta.ConditionReconciling); !strings.Contains(got, "StatefulSet doris-broker goes last: the database does not answer") {
			t.Errorf("Reconciling is %q", got)
		}
		w.db.failing = nil
		w.now = w.now.Add(time.Hour)
		w.lives()
		w.brokersAre(t)
	})
	t.Run("those of others, and those by an address, are left", func(t *testing.T) {
		w := memberCluster(t, withBrokers)
		others := []client.Broker{
			{Name: "hdfs", Host: "10.1.2.3", Port: 8000},
			{Name: "broker001", Host: "doris-broker-9.doris-broker-internal.other.svc.cluster.local", Port: 8000},
			{Name: "broker001", Host: "doris-broker-9", Port: 8000},
			{Name: "x", Host: "doris-be-9.doris-be-internal.shop.svc.cluster.local", Port: 8000},
		}
		w.db.brokers = append(w.db.brokers, others...)
		w.now = w.now.Add(time.Hour)
		w.lives()
		w.statements(t)
	})
	t.Run("one that cannot be taken out is named", func(t *testing.T) {
		w := memberCluster(t, withBrokers)
		w.db.registers("doris-broker-5")
		w.now = w.now.Add(time.Hour)
		p, observed := w.plan(w.store.Now())
		w.report(p, observed)
		if got := condition(w.dc, meta.ConditionMembersRegistered); !strings.Contains(got, "broker doris-broker-5.doris-broker-internal.shop.svc.cluster.local:8000 is registered and its Pod is gone") {
			t.Errorf("MembersRegistered is %q", got)
		}
		w.lives()
		w.brokersAre(t, "doris-broker-0", "doris-broker-1", "doris-broker-2")
		if got := condition(w.dc, meta.ConditionMembersRegistered); got != "" {
			t.Errorf("MembersRegistered is %q", got)
		}
	})
	t.Run("killed at every step", func(t *testing.T) {
		killedEverywhere(t, 2, func() *world {
			w := memberCluster(t, withBrokers)
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BrokerSpec.Replicas = new(int32(1)) })
			return w
		}, func(w *world) {
			w.lives()
			w.brokersAre(t, "doris-broker-0")
		})
	})
}
