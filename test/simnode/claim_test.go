package simnode

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func sized(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func boundClaim(wanted, has string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-be-0", UID: "c1"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "pvc-c1", Resources: corev1.VolumeResourceRequirements{Requests: sized(wanted)},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: sized(has)},
	}
}

// claimSummary is a claim's status and what is done, in one line.
func claimSummary(t *claimTurn) string {
	text := t.status.Capacity.Storage().String()
	for _, c := range t.status.Conditions {
		text += " " + string(c.Type)
	}
	if s := t.status.AllocatedResourceStatuses[corev1.ResourceStorage]; s != "" {
		text += fmt.Sprintf(" %s(%s)", s, t.status.AllocatedResources.Storage())
	}
	if !t.grown.IsZero() {
		text += " volume=" + t.grown.String()
	}
	if t.provision {
		text += " provision"
	}
	return text
}

func TestClaimGrowth(t *testing.T) {
	minute := Fixed(time.Minute)
	early, late := []time.Time{epoch.Add(-time.Hour)}, []time.Time{epoch.Add(time.Hour)}
	type moment struct {
		at    time.Duration
		rules rules
		users []time.Time
		want  string
	}
	for _, tc := range []struct {
		name    string
		grow    Delay
		moments []moment
	}{
		{name: "takes no time", moments: []moment{{users: early, want: "2Gi volume=2Gi"}}},
		{name: "driver, then node", grow: minute, moments: []moment{
			{users: early, want: "1Gi Resizing ControllerResizeInProgress(2Gi)"},
			{at: 30 * time.Second, users: early, want: "1Gi Resizing ControllerResizeInProgress(2Gi)"},
			{at: time.Minute, users: early, want: "1Gi FileSystemResizePending NodeResizePending(2Gi) volume=2Gi"},
			{at: 2 * time.Minute, users: early, want: "2Gi"},
		}},
		{name: "the node's part needs a pod", moments: []moment{
			{want: "1Gi FileSystemResizePending NodeResizePending(2Gi) volume=2Gi"},
			{at: time.Hour, want: "1Gi FileSystemResizePending NodeResizePending(2Gi)"},
			{at: 2 * time.Hour, users: late, want: "2Gi"},
		}},
		{name: "offline growth needs a pod that started since", moments: []moment{
			{rules: rules{{Fault: FaultGrowthOffline}}, users: early, want: "1Gi FileSystemResizePending NodeResizePending(2Gi) volume=2Gi"},
			{at: 2 * time.Hour, rules: rules{{Fault: FaultGrowthOffline}}, users: late, want: "2Gi"},
		}},
		{name: "fails until the fault is gone", moments: []moment{
			{rules: rules{{Fault: FaultGrowthFails}}, users: early, want: "1Gi ControllerResizeError ControllerResizeInfeasible(2Gi)"},
			{at: time.Minute, users: early, want: "2Gi volume=2Gi"},
		}},
		{name: "hangs at the driver", moments: []moment{
			{rules: rules{{Fault: FaultGrowthHangs}}, users: early, want: "1Gi Resizing ControllerResizeInProgress(2Gi)"},
			{at: time.Hour, rules: rules{{Fault: FaultGrowthHangs}}, users: early, want: "1Gi Resizing ControllerResizeInProgress(2Gi)"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opts := Options{Grow: tc.grow}.withDefaults()
			claim := boundClaim("2Gi", "1Gi")
			state := &claimState{rand: rand.New(rand.NewPCG(1, 1))}
			for _, m := range tc.moments {
				turn := &claimTurn{claim: claim, now: epoch.Add(m.at), rules: m.rules, users: m.users, opts: &opts}
				state.step(turn)
				if diff := cmp.Diff(m.want, claimSummary(turn)); diff != "" {
					t.Errorf("at +%s (-want +got):\n%s", m.at, diff)
				}
				claim.Status = turn.status
			}
		})
	}
}

func TestClaimOfItsSizeIsLeftAlone(t *testing.T) {
	opts := Options{}.withDefaults()
	turn := &claimTurn{claim: boundClaim("1Gi", "1Gi"), now: epoch, opts: &opts}
	(&claimState{}).step(turn)
	if turn.statusChanged() || turn.provision || !turn.wake.IsZero() {
		t.Errorf("something is done: %s", claimSummary(turn))
	}
}

func TestProvisioning(t *testing.T) {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for _, tc := range []struct {
		name  string
		mode  storagev1.VolumeBindingMode
		node  string
		rules rules
		want  bool
	}{
		{name: "waits for a pod", mode: wait},
		{name: "the scheduler chose a node", mode: wait, node: "sim-0", want: true},
		{name: "immediate binding", mode: now, want: true},
		{name: "hangs", mode: now, rules: rules{{Fault: FaultProvisionHangs}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claim := boundClaim("1Gi", "0")
			claim.Spec.VolumeName, claim.Status = "", corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			claim.Annotations = map[string]string{annotationSelectedNode: tc.node}
			opts := Options{}.withDefaults()
			turn := &claimTurn{claim: claim, class: &storagev1.StorageClass{VolumeBindingMode: &tc.mode}, now: epoch, rules: tc.rules, opts: &opts}
			state := &claimState{rand: rand.New(rand.NewPCG(1, 1))}
			state.step(turn)
			if turn.provision != tc.want {
				t.Errorf("provision is %t, want %t", turn.provision, tc.want)
			}
			turn.provision = false
			state.step(turn)
			if turn.provision {
				t.Error("provisioned twice")
			}
		})
	}
}
