package doris

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// withDisks returns a settled cluster whose claims are there.
func withDisks(t *testing.T, provisioner dorisv1.PVCProvisioner) *world {
	t.Helper()
	w := newWorld(t, threeByThree)
	w.disks = &disksDouble{}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.PersistentVolumes[0].Provisioner = provisioner })
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("a settled cluster has changes:\n%s", printPlan(p))
	}
	return w
}

func diskSize(s *dorisv1.DorisClusterSpec, size string) {
	s.BeSpec.PersistentVolumes[0].PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
}

// grow edits the size of the backends' disks.
func (w *world) grow(size string) {
	w.edit(func(s *dorisv1.DorisClusterSpec) { diskSize(s, size) })
}

func podUIDs(w *world) map[string]string {
	out := map[string]string{}
	for _, p := range w.pods() {
		out[p.Name] = string(p.UID)
	}
	return out
}

func TestDisksOfTheOperatorGrowWhileThePodsRun(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerOperator)
	before := podUIDs(w)
	w.grow("2Gi")
	p := w.settle()
	if want := []string{"data-doris-be-0 2Gi", "data-doris-be-1 2Gi", "data-doris-be-2 2Gi"}; !slices.Equal(w.disks.patches, want) {
		t.Errorf("patches %v, want %v", w.disks.patches, want)
	}
	if got := condition(w.dc, meta.ConditionReconciling); !strings.Contains(got, "DiskGrowing: data-doris-be-0 grows from 1Gi to 2Gi: asked for, and nothing has begun") {
		t.Errorf("Reconciling: %s\n%s", got, printPlan(p))
	}
	w.disks.grown(w)
	if p := w.settle(); len(p.Changes) > 0 {
		t.Errorf("grown, and still changes:\n%s", printPlan(p))
	}
	if diff := cmp.Diff(before, podUIDs(w)); diff != "" {
		t.Errorf("Pods are others: %s", diff)
	}
	if got := object(w, "doris-be", &appsv1.StatefulSet{}).Spec.VolumeClaimTemplates[0].Spec.Resources.Requests; got.Storage().String() != "1Gi" {
		t.Errorf("the template says %v", got.Storage())
	}
}

func TestANewReplicaOfADiskOfTheOperatorGrowsWhenItIsBound(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerOperator)
	w.grow("2Gi")
	w.settle()
	w.disks.grown(w)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(4)) })
	w.settle()
	w.disks.grown(w)
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("changes:\n%s", printPlan(p))
	}
	if got := object(w, "data-doris-be-3", &corev1.PersistentVolumeClaim{}).Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Errorf("the claim of the new replica asks for %s", got)
	}
}

func TestDisksThatCannotGrow(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerOperator)
	w.grow("2Gi")
	p, _ := w.plan(w.store.Now())
	w.disks.fixed = true
	patch, ok := p.Steps[0].(plan.Patch)
	if !ok {
		t.Fatalf("first step is %T:\n%s", p.Steps[0], printPlan(p))
	}
	err := w.step(patch)
	findings := w.system.Explain(w.dc, patch.Object, err)
	if len(findings) != 1 || findings[0].Field != "spec.beSpec.persistentVolumes[0].persistentVolumeClaimSpec.resources.requests.storage" || findings[0].Reason != meta.ReasonDiskCannotGrow {
		t.Fatalf("findings %v", findings)
	}
	for _, part := range []string{"claim data-doris-be-0", "nothing was changed", "allowVolumeExpansion: true", "must support resize", "put the size back"} {
		if !strings.Contains(findings[0].Message, part) {
			t.Errorf("message lacks %q: %s", part, findings[0].Message)
		}
	}
}

func TestAClaimSaysHowFarItHasGrown(t *testing.T) {
	claim := func(edit func(*corev1.PersistentVolumeClaimStatus)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		edit(&c.Status)
		return c
	}
	with := func(kind corev1.PersistentVolumeClaimConditionType, message string) *corev1.PersistentVolumeClaim {
		return claim(func(s *corev1.PersistentVolumeClaimStatus) {
			s.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: kind, Status: corev1.ConditionTrue, Message: message}}
		})
	}
	allocated := func(status corev1.ClaimResourceStatus) *corev1.PersistentVolumeClaim {
		return claim(func(s *corev1.PersistentVolumeClaimStatus) {
			s.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
		})
	}
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		want   string
		failed bool
	}{
		"nobody has begun":       {claim(func(*corev1.PersistentVolumeClaimStatus) {}), "nothing has begun", false},
		"the storage is at it":   {with(corev1.PersistentVolumeClaimResizing, ""), "the storage makes the volume larger", false},
		"the node has to follow": {with(corev1.PersistentVolumeClaimFileSystemResizePending, ""), "its node makes the file system larger", false},
		"the storage failed":     {with(corev1.PersistentVolumeClaimControllerResizeError, "no room"), "no room", true},
		"the node failed":        {with(corev1.PersistentVolumeClaimNodeResizeError, ""), "that it failed", true},
		"infeasible, storage":    {allocated(corev1.PersistentVolumeClaimControllerResizeInfeasible), "cannot make the volume larger", true},
		"infeasible, node":       {allocated(corev1.PersistentVolumeClaimNodeResizeInfeasible), "cannot make the file system larger", true},
		"in progress by status":  {allocated(corev1.PersistentVolumeClaimControllerResizeInProgress), "nothing has begun", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, failed := growth(tc.claim)
			if !strings.Contains(got, tc.want) || failed != tc.failed {
				t.Errorf("growth = %q, %v", got, failed)
			}
		})
	}
}

func TestAnnotationsOfClaimsOfTheOperatorFollowTheSpec(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerOperator)
	annotate := func(a map[string]string) {
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.PersistentVolumes[0].Annotations = a })
		if p := w.settle(); len(p.Changes) > 0 {
			t.Fatalf("changes:\n%s", printPlan(p))
		}
	}
	stranger(w, "data-doris-be-1", &corev1.PersistentVolumeClaim{}, func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{"other": "kept"} })
	annotate(map[string]string{"backup": "daily"})
	want := map[string]string{"backup": "daily", "other": "kept"}
	if diff := cmp.Diff(want, object(w, "data-doris-be-1", &corev1.PersistentVolumeClaim{}).Annotations); diff != "" {
		t.Error(diff)
	}
	annotate(nil)
	delete(want, "backup")
	if diff := cmp.Diff(want, object(w, "data-doris-be-1", &corev1.PersistentVolumeClaim{}).Annotations); diff != "" {
		t.Error(diff)
	}
}

func TestLargerClaimsStayAndNoneShrinks(t *testing.T) {
	for _, maker := range []dorisv1.PVCProvisioner{dorisv1.PVCProvisionerOperator, dorisv1.PVCProvisionerStatefulSet} {
		w := withDisks(t, maker)
		stranger(w, "data-doris-be-1", &corev1.PersistentVolumeClaim{}, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("5Gi")
		})
		w.disks.grown(w)
		if p := w.settle(); len(p.Changes) > 0 || len(w.disks.patches) > 0 {
			t.Errorf("%s: a larger claim leads to\n%s", maker, printPlan(p))
		}
	}
}
