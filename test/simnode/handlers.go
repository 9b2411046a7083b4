package simnode

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func (s *Simulator) handlePod() cache.ResourceEventHandler {
	add := func(obj any) {
		if key, ok := keyOf(obj); ok {
			s.pods.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				add(obj)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(*corev1.Pod)
			pod, ok2 := after.(*corev1.Pod)
			if ok && ok2 && pod.Spec.NodeName != "" && relevant(old, pod) {
				add(after)
			}
		},
		DeleteFunc: add,
	}
}

func (s *Simulator) handleClaim() cache.ResourceEventHandler {
	add := func(obj any) {
		if key, ok := keyOf(obj); ok {
			s.claims.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.claimStates, claim.UID)
			}
		},
	}
}

// handleVolume deletes volumes whose claim is gone, as their driver does.
func (s *Simulator) handleVolume(ctx context.Context) cache.ResourceEventHandler {
	release := func(obj any) {
		volume, ok := obj.(*corev1.PersistentVolume)
		if !ok || volume.Annotations[annotationProvisionedBy] != Driver || volume.DeletionTimestamp != nil ||
			volume.Status.Phase != corev1.VolumeReleased ||
			volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			return
		}
		err := s.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &volume.UID},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			s.opts.Log.Warn("released volume not deleted", "volume", volume.Name, "error", err)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: release, UpdateFunc: func(_, obj any) { release(obj) }}
}

// handleContent wakes the Pods that wait for a ConfigMap or Secret.
func (s *Simulator) handleContent(kind string) cache.ResourceEventHandler {
	wake := func(obj any) {
		name, ok := keyOf(obj)
		if !ok {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for pod := range s.waiters[waitKey{name.Namespace, reference{kind, name.Name}}] {
			s.pods.Add(pod)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, obj any) { wake(obj) }}
}

// handleNode keeps the addresses and the faults of the nodes.
func (s *Simulator) handleNode() cache.ResourceEventHandler {
	note := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok {
			s.noteNode(node)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) },
		DeleteFunc: func(obj any) {
			if key, ok := keyOf(obj); ok {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.nodeIPs, key.Name)
				delete(s.nodeRules, key.Name)
			}
		},
	}
}

func (s *Simulator) noteNode(node *corev1.Node) {
	found, err := rulesOfNode(node)
	if err != nil {
		s.opts.Log.Warn("request not understood", "node", node.Name, "error", err)
	}
	ip := node.Name
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			ip = a.Address
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := !equalRules(s.nodeRules[node.Name], found)
	s.nodeIPs[node.Name], s.nodeRules[node.Name] = ip, found
	if !changed {
		return
	}
	for key := range s.machines {
		s.pods.Add(key)
	}
}

func equalRules(a, b rules) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// syncClaim gives a claim its volume, or lets it grow.
func (s *Simulator) syncClaim(ctx context.Context, key types.NamespacedName) error {
	claim, err := s.informers.claimLister.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	class := s.informers.class(claim)
	if class == nil {
		return nil
	}
	t := s.claimTurn(key, claim)
	t.class = class
	state := s.claimState(claim)
	next := *state
	next.step(t)
	if err := s.writeClaim(ctx, t); err != nil {
		return err
	}
	*state = next
	for _, e := range t.events {
		s.recorder.Event(eventTarget("PersistentVolumeClaim", claim.ObjectMeta), e.kind, e.reason, e.message)
	}
	if !t.wake.IsZero() {
		s.claims.AddAfter(key, t.wake.Sub(t.now))
	}
	return nil
}

func (s *Simulator) claimTurn(key types.NamespacedName, claim *corev1.PersistentVolumeClaim) *claimTurn {
	own, err := rulesOfObject(claim.Annotations)
	if err != nil {
		s.opts.Log.Warn("request not understood", "claim", key, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &claimTurn{claim: claim, now: s.opts.Clock.Now(), opts: &s.opts, rules: append(own, s.rulesFor(key, "")...)}
	for _, m := range s.mounts[key] {
		t.users = append(t.users, m.started)
	}
	return t
}

// claimState is used by the worker that holds the claim's key alone.
func (s *Simulator) claimState(claim *corev1.PersistentVolumeClaim) *claimState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.claimStates[claim.UID]
	if state == nil {
		state = &claimState{rand: s.random("claim "+claim.Namespace+"/"+claim.Name, 0)}
		s.claimStates[claim.UID] = state
	}
	return state
}

// writeClaim makes or grows the volume first, then tells of it.
func (s *Simulator) writeClaim(ctx context.Context, t *claimTurn) error {
	if t.provision {
		_, err := s.client.CoreV1().PersistentVolumes().Create(ctx, volumeFor(t.claim, t.class), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if !t.grown.IsZero() {
		patch := []byte(`{"spec":{"capacity":{"storage":"` + t.grown.String() + `"}}}`)
		_, err := s.client.CoreV1().PersistentVolumes().Patch(ctx, t.claim.Spec.VolumeName, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return err
		}
	}
	if !t.statusChanged() {
		return nil
	}
	claim := t.claim.DeepCopy()
	claim.Status = t.status
	_, err := s.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
