package doris

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

func (w *world) objectNames(kind string) []string {
	var out []string
	gvk := appsv1.SchemeGroupVersion.WithKind(kind)
	if kind == "Service" {
		gvk = corev1.SchemeGroupVersion.WithKind(kind)
	}
	for _, o := range w.store.Now().List(gvk, "shop") {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return out
}

// withComputeNodes is three by three with compute nodes beside them.
func withComputeNodes(n int) string {
	nodes := fmt.Sprintf("  cnSpec: {replicas: %d, image: \"apache/doris:be-1\", configMapInfo: {configMapName: cn-conf}}\n  beSpec:", n)
	return strings.Replace(threeByThree, "  beSpec:", nodes, 1) + `---
kind: ConfigMap
metadata: {name: cn-conf}
data: {be.conf: "be_node_role = computation\n"}
`
}

var frontendServices = []string{"doris-fe-internal", "doris-fe-service"}

func TestRemovedComponents(t *testing.T) {
	t.Parallel()
	t.Run("compute nodes leave the database, then their objects go", func(t *testing.T) {
		w := memberCluster(t, withComputeNodes(2))
		if got := len(w.db.backends); got != 5 {
			t.Fatalf("%d backends are registered", got)
		}
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec = nil })
		w.lives()
		w.statements(t, "DROPP BACKEND doris-cn-0", "DROPP BACKEND doris-cn-1")
		if diff := cmp.Diff([]string{"doris-be", "doris-fe"}, w.objectNames("StatefulSet")); diff != "" {
			t.Errorf("StatefulSets (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(append([]string{"doris-be-internal", "doris-be-service"}, frontendServices...), w.objectNames("Service")); diff != "" {
			t.Errorf("Services (-want +got):\n%s", diff)
		}
		if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
			t.Errorf("Ready is %q", got)
		}
	})
	t.Run("compute nodes are fewer", func(t *testing.T) {
		w := memberCluster(t, withComputeNodes(3))
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec.Replicas = new(int32(1)) })
		w.lives()
		w.statements(t, "DROPP BACKEND doris-cn-1", "DROPP BACKEND doris-cn-2")
		if diff := cmp.Diff([]string{"doris-cn-0"}, w.podNames("cn")); diff != "" {
			t.Errorf("Pods (-want +got):\n%s", diff)
		}
	})
	t.Run("backends go with their data when a person consents", func(t *testing.T) {
		w := memberCluster(t, threeByThree)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec = nil })
		w.lives()
		w.statements(t)
		p := w.reconcile()
		if diff := cmp.Diff([]string{"spec.replicas user data-loss hold"}, changesOf(p, "StatefulSet/doris-be")); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		w.approve(onlyDigest(t, p, "StatefulSet/doris-be"))
		w.lives()
		w.statements(t, "DROPP BACKEND doris-be-0", "DROPP BACKEND doris-be-1", "DROPP BACKEND doris-be-2")
		if diff := cmp.Diff([]string{"doris-fe"}, w.objectNames("StatefulSet")); diff != "" {
			t.Errorf("StatefulSets (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(frontendServices, w.objectNames("Service")); diff != "" {
			t.Errorf("Services (-want +got):\n%s", diff)
		}
	})
	t.Run("frontends are not removed", func(t *testing.T) {
		w := memberCluster(t, threeByThree)
		w.edit(func(s *dorisv1.DorisClusterSpec) {
			s.FeSpec = nil
			s.BeSpec.FeAddress = &dorisv1.FeAddress{ServiceName: "elsewhere"}
		})
		w.lives()
		if got := condition(w.dc, meta.ConditionStalled); !strings.Contains(got, "the frontends hold the metadata of the cluster") {
			t.Errorf("Stalled is %q", got)
		}
		if diff := cmp.Diff(map[string]int32{"fe": 3, "be": 3}, setNames(w)); diff != "" {
			t.Errorf("StatefulSets (-want +got):\n%s", diff)
		}
	})
}

// TestBackendsByAnotherNameAreDrained is of compute nodes that were never made such by
// their configuration: they hold tablets, and are not dropped with them.
func TestBackendsByAnotherNameAreDrained(t *testing.T) {
	t.Parallel()
	found := strings.Replace(withComputeNodes(2), "be_node_role = computation", "sys_log_level = INFO", 1)
	t.Run("fewer", func(t *testing.T) {
		w := legacy(t, found, nil).withDatabase()
		w.settle()
		w.lives()
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.CnSpec.Replicas = new(int32(1)) })
		w.lives()
		for digest, changes := range heldSets(w.reconcile()) {
			if slices.Contains(changes, "StatefulSet/doris-cn spec.replicas") {
				w.approve(digest)
			}
		}
		w.lives()
		w.statements(t, "DECOMMISSION BACKEND doris-cn-1")
		if got := w.podNames("cn"); len(got) != 1 {
			t.Errorf("compute nodes are %v", got)
		}
	})
	t.Run("dropped only when a person consents", func(t *testing.T) {
		w := legacy(t, found, nil).withDatabase()
		w.settle()
		w.lives()
		w.edit(func(s *dorisv1.DorisClusterSpec) {
			s.CnSpec.Replicas, s.CnSpec.ScaleInPolicy = new(int32(1)), dorisv1.ScaleInDrop
		})
		w.lives()
		w.statements(t)
		if got := changesOf(w.reconcile(), "StatefulSet/doris-cn"); !slices.Contains(got, "spec.replicas user data-loss hold") {
			t.Errorf("changes are %v", got)
		}
	})
}
