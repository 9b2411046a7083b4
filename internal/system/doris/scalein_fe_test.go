package doris

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

const fiveByOne = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 5, electionNumber: 3, image: "apache/doris:fe-1", persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 1, image: "apache/doris:be-1", persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
`

func (w *world) frontendsWanted(n int32) {
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Replicas = &n })
}

func (w *world) onlyFrontends(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.podNames("fe")); diff != "" {
		t.Errorf("Pods (-want +got):\n%s", diff)
	}
	var members []string
	for _, f := range w.db.frontends {
		members = append(members, podOfHost(f.Host))
	}
	if diff := cmp.Diff(want, members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if got := leaveRecords(w.set("doris-fe"), w.pods()); len(got) > 0 {
		t.Errorf("still remembered: %v", got)
	}
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %q", got)
	}
}

var fiveFrontends = []string{"doris-fe-0", "doris-fe-1", "doris-fe-2", "doris-fe-3", "doris-fe-4"}

func TestObserversLeave(t *testing.T) {
	t.Parallel()
	t.Run("five to three and back", func(t *testing.T) {
		w := memberCluster(t, fiveByOne)
		w.frontendsWanted(3)
		w.lives()
		if diff := cmp.Diff([]string{"DROP OBSERVER doris-fe-4", "DROP OBSERVER doris-fe-3"}, w.db.statements); diff != "" {
			t.Errorf("statements (-want +got):\n%s", diff)
		}
		w.onlyFrontends(t, fiveFrontends[:3]...)
		first := object(w, "doris-fe-bootstrap", &corev1.ConfigMap{}).Data
		if len(first) != 3 || len(first["retired-3"]) != 12 || first["retired-3"] == first["retired-4"] {
			t.Errorf("the record is %v", first)
		}
		w.frontendsWanted(5)
		w.lives()
		w.onlyFrontends(t, fiveFrontends...)
		w.frontendsWanted(4)
		w.lives()
		again := object(w, "doris-fe-bootstrap", &corev1.ConfigMap{}).Data
		if again["retired-4"] == first["retired-4"] || again["retired-3"] != first["retired-3"] {
			t.Errorf("the record is %v", again)
		}
		if len(w.evicts) > 0 {
			t.Errorf("Pods were evicted: %v", w.evicts)
		}
	})
	t.Run("wanted again when one is out: it joins anew", func(t *testing.T) {
		w := memberCluster(t, fiveByOne)
		w.frontendsWanted(3)
		for len(w.db.statements) == 0 {
			p, _ := w.plan(w.store.Now())
			w.must(w.step(p.Steps[0]))
		}
		w.frontendsWanted(5)
		w.lives()
		w.onlyFrontends(t, "doris-fe-0", "doris-fe-1", "doris-fe-2", "doris-fe-3", "doris-fe-4")
		if diff := cmp.Diff([]string{"doris-fe-4"}, w.evicts); diff != "" {
			t.Errorf("evicted (-want +got):\n%s", diff)
		}
		if got := object(w, "doris-fe-bootstrap", &corev1.ConfigMap{}).Data["retired-4"]; len(got) != 12 {
			t.Errorf("its metadata is not put aside: %q", got)
		}
	})
	t.Run("followers do not", func(t *testing.T) {
		w := memberCluster(t, fiveByOne)
		w.frontendsWanted(2)
		w.lives()
		w.statements(t)
		if got := condition(w.dc, meta.ConditionFullySupported); !strings.Contains(got, "would take away frontends that elect the master: 3 do (electionNumber)") {
			t.Errorf("FullySupported is %q", got)
		}
	})
	t.Run("killed at every step", func(t *testing.T) {
		killedEverywhere(t, 10, func() *world {
			w := memberCluster(t, strings.NewReplacer("replicas: 5, electionNumber: 3", "replicas: 3, electionNumber: 1").Replace(fiveByOne))
			w.frontendsWanted(1)
			return w
		}, func(w *world) {
			w.now = w.now.Add(time.Second)
			w.lives()
			w.onlyFrontends(t, "doris-fe-0")
			w.statements(t, "DROP OBSERVER doris-fe-1", "DROP OBSERVER doris-fe-2")
			if data := object(w, "doris-fe-bootstrap", &corev1.ConfigMap{}).Data; len(data) != 3 {
				t.Errorf("the record is %v", data)
			}
		})
	})
}
