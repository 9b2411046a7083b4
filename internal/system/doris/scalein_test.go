package doris

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

const threeByFive = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 3, image: "apache/doris:fe-1", persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 5, image: "apache/doris:be-1", persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
`

const oneByThree = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-1", persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 3, image: "apache/doris:be-1", persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
`

// memberCluster is a settled one whose database can be asked.
func memberCluster(t *testing.T, manifest string) *world {
	t.Helper()
	w := newWorld(t, manifest).withDatabase()
	w.lives()
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		t.Fatalf("Ready is %q", got)
	}
	if len(w.db.statements) > 0 {
		t.Fatalf("a cluster that was just made needs no statement: %v", w.db.statements)
	}
	return w
}

func (w *world) backendsWanted(n int32) {
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = &n })
}

var fiveBackends = []string{"doris-be-0", "doris-be-1", "doris-be-2", "doris-be-3", "doris-be-4"}

func (w *world) statements(t *testing.T, want ...string) {
	t.Helper()
	got := slices.Clone(w.db.statements)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

// only holds which backends there are, as Pods and as members, and that nothing is
// remembered of others.
func (w *world) only(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.podNames("be")); diff != "" {
		t.Errorf("Pods (-want +got):\n%s", diff)
	}
	var members []string
	for _, b := range w.db.backends {
		members = append(members, podOfHost(b.Host))
	}
	slices.Sort(members)
	if diff := cmp.Diff(want, members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if got := leaveRecords(w.set("doris-be"), w.pods()); len(got) > 0 {
		t.Errorf("still remembered: %v", got)
	}
	if got := w.db.tablets(); got%12 != 0 || got == 0 {
		t.Errorf("%d tablets are left", got)
	}
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %q", got)
	}
}

func TestBackendsLeave(t *testing.T) {
	t.Parallel()
	t.Run("five to three", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.backendsWanted(3)
		w.lives()
		w.statements(t, "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-4")
		w.only(t, fiveBackends[:3]...)
	})
	t.Run("drained backends that the database keeps are dropped", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.db.keep = true
		w.backendsWanted(3)
		w.lives()
		w.statements(t, "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-4", "DROPP BACKEND doris-be-3", "DROPP BACKEND doris-be-4")
		w.only(t, fiveBackends[:3]...)
	})
	t.Run("and come back", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.backendsWanted(3)
		w.lives()
		w.backendsWanted(5)
		w.lives()
		w.only(t, fiveBackends...)
	})
	t.Run("cancelled on the way", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.db.stuck = true
		w.backendsWanted(3)
		w.lives()
		if got := condition(w.dc, meta.ConditionReconciling); got != "True MembersLeaving: leaving the database: doris-be-4 with 12 tablets, doris-be-3 with 12 tablets" {
			t.Errorf("Reconciling is %q", got)
		}
		leaving := w.dc.Status.BeStatus.LeavingInstances
		if len(leaving) != 2 || leaving[0].Name != "doris-be-3" || *leaving[0].Tablets != 12 || leaving[0].Since.IsZero() {
			t.Errorf("leaving are %v", leaving)
		}
		w.backendsWanted(4)
		w.lives()
		w.backendsWanted(5)
		w.lives()
		w.statements(t, "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-4", "CANCEL DECOMMISSION BACKEND doris-be-3", "CANCEL DECOMMISSION BACKEND doris-be-4")
		w.only(t, fiveBackends...)
	})
	t.Run("no tablet moves for as long as the progress deadline, and then they do", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.db.stuck = true
		w.backendsWanted(4)
		w.lives()
		moved := w.dc.Status.BeStatus.LeavingInstances[0].LastMoved
		if moved == nil {
			t.Fatalf("leaving are %v", w.dc.Status.BeStatus.LeavingInstances)
		}
		w.now = moved.Add(progressDeadline / 2) // some minutes go by in a life
		w.lives()
		if got := condition(w.dc, meta.ConditionReconciling); !strings.HasPrefix(got, "True MembersLeaving: ") {
			t.Errorf("before the deadline Reconciling is %q", got)
		}
		w.now = moved.Add(progressDeadline)
		w.lives()
		const says = "True MembersCannotLeave: no tablet has left doris-be-4 with 12 tablets for 10m0s: "
		if got := condition(w.dc, meta.ConditionReconciling); !strings.HasPrefix(got, says) || !strings.HasSuffix(got, "put spec.beSpec.replicas back to 5") {
			t.Errorf("after the deadline Reconciling is %q", got)
		}
		w.db.stuck = false
		w.lives()
		w.only(t, fiveBackends[:4]...)
	})
	t.Run("wanted again when it is out already", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.db.stuck = true
		w.backendsWanted(3)
		w.lives()
		w.db.backends = slices.DeleteFunc(w.db.backends, func(b client.Backend) bool { return b.Host == hostOf("doris-be-4") })
		w.backendsWanted(5)
		w.lives()
		w.statements(t, "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-4", "CANCEL DECOMMISSION BACKEND doris-be-3", "ADD BACKEND doris-be-4")
		w.only(t, fiveBackends...)
	})
}

// scaledThrough changes the number of Pods of a set through its scale subresource.
func (w *world) scaledThrough(name string, n int32, manager string) {
	w.Helper()
	w.must(w.merge(w.set(name), map[string]any{"spec": map[string]any{"replicas": int64(n)}}, manager))
	set := w.set(name).DeepCopy()
	for i := range set.ManagedFields {
		if set.ManagedFields[i].Manager == manager {
			set.ManagedFields[i].Subresource = "scale"
		}
	}
	text, err := json.Marshal(set.ManagedFields)
	w.must(err)
	var entries []any
	w.must(json.Unmarshal(text, &entries))
	w.must(w.merge(set, map[string]any{"metadata": map[string]any{"managedFields": entries}}, manager))
}

// scaledByHand changes the number of Pods of a set as kubectl does: by an edit, or by
// the scale subresource.
func scaledByHand(w *world, name string, n int32, subresource bool) {
	w.Helper()
	const hand = "kubectl"
	if !subresource {
		w.must(w.merge(w.set(name), map[string]any{"spec": map[string]any{"replicas": int64(n)}}, hand))
		return
	}
	w.scaledThrough(name, n, hand)
	if scaledBy(w.set(name)) != hand {
		w.Fatalf("nobody would know that it was scaled by hand: %+v", w.set(name).ManagedFields)
	}
}

// TestScaledByHandThenBySpec holds that a number which somebody else set is the spec's
// own once the spec asked for it: what is refused before that is carried out after it.
func TestScaledByHandThenBySpec(t *testing.T) {
	t.Parallel()
	for name, subresource := range map[string]bool{"by an edit": false, "by kubectl scale": true} {
		t.Run(name, func(t *testing.T) {
			w := memberCluster(t, threeByThree)
			scaledByHand(w, "doris-be", 5, subresource)
			w.lives()
			if got := condition(w.dc, meta.ConditionStalled); !strings.Contains(got, "set spec.beSpec.replicas to 5 first") {
				t.Errorf("before the spec asks for them Stalled is %q", got)
			}
			w.edit(func(s *dorisv1.DorisClusterSpec) {
				s.BeSpec.EnvVars = []corev1.EnvVar{{Name: "TZ", Value: "Europe/Lisbon"}}
			}) // which is written, with the number that there is
			w.lives()
			if diff := cmp.Diff(fiveBackends, w.podNames("be")); diff != "" || strings.Contains(strings.Join(w.db.statements, " "), "DECOMMISSION") {
				t.Errorf("Pods after another write (-want +got):\n%s%v", diff, w.db.statements)
			}
			w.db.statements = nil // of the roll
			if got := condition(w.dc, meta.ConditionStalled); !strings.Contains(got, "set spec.beSpec.replicas to 5 first") {
				t.Errorf("after another write Stalled is %q", got)
			}
			w.backendsWanted(5)
			w.lives()
			w.only(t, fiveBackends...)
			w.backendsWanted(3)
			w.lives()
			w.statements(t, "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-4")
			w.only(t, fiveBackends[:3]...)
			if noted := w.set("doris-be").Annotations[meta.AnnotationAgreedReplicas]; noted != "" {
				t.Errorf("the agreement outlives what was agreed to: %q", noted)
			}
			scaledByHand(w, "doris-be", 5, subresource)
			w.lives()
			if got := condition(w.dc, meta.ConditionStalled); !strings.Contains(got, "somebody else scaled StatefulSet doris-be to 5") {
				t.Errorf("scaled by hand once more, Stalled is %q", got)
			}
		})
	}
}
