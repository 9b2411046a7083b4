package simnode

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations by which the scheduler and the volume controller tell a
// provisioner about a claim.
const (
	annotationSelectedNode  = "volume.kubernetes.io/selected-node"
	annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

type growthStage int

const (
	notGrowing  growthStage = iota
	driverGrows             // the driver makes the volume larger
	nodeGrows               // the node makes the file system larger
	growthFailed
)

// claimState is what the simulator remembers of one claim.
type claimState struct {
	rand   *rand.Rand
	stage  growthStage
	target resource.Quantity
	until  time.Time
	since  time.Time // when the node's turn began
	made   bool      // a volume was made for it
}

// claimTurn is the input of a claim's step and what comes of it.
type claimTurn struct {
	claim *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
	now   time.Time
	rules rules
	opts  *Options
	users []time.Time // when running Pods that use the claim started

	status    corev1.PersistentVolumeClaimStatus
	provision bool              // make a volume of the requested size
	grown     resource.Quantity // the volume has this size; zero: as before
	wake      time.Time
	events    []event
}

// step says what is to be done for a claim now.
func (c *claimState) step(t *claimTurn) {
	t.status = *t.claim.Status.DeepCopy()
	if t.claim.Spec.VolumeName == "" {
		c.provision(t)
		return
	}
	if t.claim.Status.Phase == corev1.ClaimBound {
		c.grow(t)
	}
}

func (c *claimState) provision(t *claimTurn) {
	if t.class.VolumeBindingMode != nil && *t.class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer &&
		t.claim.Annotations[annotationSelectedNode] == "" {
		return
	}
	if c.made || t.claim.DeletionTimestamp != nil || t.rules.has(FaultProvisionHangs) {
		return
	}
	if c.until.IsZero() {
		c.until = t.now.Add(t.opts.Provision.draw(c.rand))
	}
	if t.now.Before(c.until) {
		t.wake = c.until
		return
	}
	c.until = time.Time{}
	c.made, t.provision = true, true
}

// grow follows a request that is larger than the volume. Stages that take no
// time are passed in one step.
func (c *claimState) grow(t *claimTurn) {
	wanted := t.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has := t.claim.Status.Capacity[corev1.ResourceStorage]
	if wanted.Cmp(has) <= 0 {
		if c.stage != notGrowing {
			c.stage = notGrowing
			clearGrowth(&t.status)
		}
		return
	}
	if rule, fails := t.rules.find(FaultGrowthFails); fails {
		c.fail(t, wanted, rule.Text)
		return
	}
	if c.stage == notGrowing || c.stage == growthFailed || c.target.Cmp(wanted) != 0 {
		c.stage, c.target, c.until = driverGrows, wanted, t.now.Add(t.opts.Grow.draw(c.rand))
		showGrowth(t, wanted, corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimResizing, "")
	}
	if c.stage == driverGrows {
		if t.rules.has(FaultGrowthHangs) || !t.reached(c.until) {
			return
		}
		c.stage, c.since, c.until = nodeGrows, t.now, t.now.Add(t.opts.Grow.draw(c.rand))
		t.grown = wanted
		showGrowth(t, wanted, corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimFileSystemResizePending,
			"Waiting for user to (re-)start a pod to finish file system resize of volume on node.")
	}
	if c.mountedFor(t) && t.reached(c.until) {
		c.stage = notGrowing
		clearGrowth(&t.status)
		t.status.Capacity = t.status.Capacity.DeepCopy()
		t.status.Capacity[corev1.ResourceStorage] = wanted
	}
}

// reached reports whether a moment has come, and asks to be woken if not.
func (t *claimTurn) reached(at time.Time) bool {
	if t.now.Before(at) {
		t.wake = at
		return false
	}
	return true
}

// mountedFor reports whether a Pod is there on whose node the file system can
// grow; offline growth wants one that started since the driver was done.
func (c *claimState) mountedFor(t *claimTurn) bool {
	for _, started := range t.users {
		if !t.rules.has(FaultGrowthOffline) || started.After(c.since) {
			return true
		}
	}
	return false
}

func (c *claimState) fail(t *claimTurn, wanted resource.Quantity, text string) {
	if c.stage == growthFailed && c.target.Cmp(wanted) == 0 {
		return
	}
	c.stage, c.target = growthFailed, wanted
	if text == "" {
		text = "the backend is out of space"
	}
	showGrowth(t, wanted, corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimControllerResizeError, text)
	t.events = append(t.events, event{
		corev1.EventTypeWarning, "VolumeResizeFailed",
		fmt.Sprintf("resize volume %q by resizer %q failed: %s", t.claim.Spec.VolumeName, Driver, text),
	})
}

// isResizeCondition reports whether a resizer writes conditions of that type.
func isResizeCondition(kind corev1.PersistentVolumeClaimConditionType) bool {
	switch kind {
	case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
		return true
	}
	return false
}

func showGrowth(t *claimTurn, wanted resource.Quantity, stage corev1.ClaimResourceStatus,
	kind corev1.PersistentVolumeClaimConditionType, text string,
) {
	clearGrowth(&t.status)
	t.status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: wanted}
	t.status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: stage}
	t.status.Conditions = append(t.status.Conditions, corev1.PersistentVolumeClaimCondition{
		Type: kind, Status: corev1.ConditionTrue, Message: text, LastTransitionTime: metav1.NewTime(t.now),
	})
}

func clearGrowth(s *corev1.PersistentVolumeClaimStatus) {
	var kept []corev1.PersistentVolumeClaimCondition
	for _, c := range s.Conditions {
		if !isResizeCondition(c.Type) {
			kept = append(kept, c)
		}
	}
	s.Conditions, s.AllocatedResourceStatuses = kept, nil
}

func (t *claimTurn) statusChanged() bool {
	return !equality.Semantic.DeepEqual(t.status, t.claim.Status)
}

// volumeFor is the volume that satisfies a claim.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Annotations: map[string]string{annotationProvisionedBy: class.Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			PersistentVolumeReclaimPolicy: reclaim,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: string(claim.UID)},
			},
		},
	}
}
