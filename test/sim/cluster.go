package sim

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is a Store on which stand-ins for the StatefulSet controller, the
// kubelet and the garbage collector work, one small move at a time.
type Cluster struct {
	*Store
	// Broken tells which Pods never become ready; nil for none.
	Broken func(*corev1.Pod) bool
}

var (
	setKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	podKind = corev1.SchemeGroupVersion.WithKind("Pod")
)

// Advance lets each stand-in make one move for each object. It tells whether
// anything changed.
func (c *Cluster) Advance() (bool, error) {
	changed := false
	for _, o := range c.Now().List(setKind, "") {
		set, ok := o.(*appsv1.StatefulSet)
		if !ok {
			continue
		}
		moved, err := c.syncSet(set)
		if err != nil {
			return false, err
		}
		changed = changed || moved
	}
	for _, move := range []func() (bool, error){c.runPods, c.collect} {
		moved, err := move()
		if err != nil {
			return false, err
		}
		changed = changed || moved
	}
	return changed, nil
}

// Settle lets the stand-ins work until nothing moves.
func (c *Cluster) Settle() error {
	for range 1000 {
		moved, err := c.Advance()
		if err != nil || !moved {
			return err
		}
	}
	return fmt.Errorf("the stand-ins do not come to rest")
}

// Revision is the name that the stand-in gives to a Pod template.
func Revision(set *appsv1.StatefulSet) (string, error) {
	raw, err := json.Marshal(set.Spec.Template)
	if err != nil {
		return "", err
	}
	h := fnv.New32a()
	_, _ = h.Write(raw)
	return fmt.Sprintf("%s-%08x", set.Name, h.Sum32()), nil
}

func (c *Cluster) syncSet(set *appsv1.StatefulSet) (bool, error) {
	revision, err := Revision(set)
	if err != nil {
		return false, err
	}
	pods := c.podsOf(set)
	moved, err := c.syncPods(set, revision, pods)
	if err != nil {
		return false, err
	}
	status := statusOf(set, revision, c.podsOf(set))
	before := set.Status
	set.Status = status
	if err := c.SetStatus(set); err != nil {
		return false, err
	}
	return moved || before.ObservedGeneration != status.ObservedGeneration || before.UpdateRevision != status.UpdateRevision ||
		before.Replicas != status.Replicas || before.ReadyReplicas != status.ReadyReplicas || before.UpdatedReplicas != status.UpdatedReplicas, nil
}

func statusOf(set *appsv1.StatefulSet, revision string, pods []*corev1.Pod) appsv1.StatefulSetStatus {
	s := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, UpdateRevision: revision, CurrentRevision: set.Status.CurrentRevision,
		Replicas: int32(len(pods)),
	}
	if s.CurrentRevision == "" {
		s.CurrentRevision = revision
	}
	for _, p := range pods {
		if Ready(p) {
			s.ReadyReplicas++
		}
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] == revision {
			s.UpdatedReplicas++
		}
	}
	return s
}

// syncPods makes one missing Pod, or removes one that is too many or, with the
// strategy RollingUpdate, one that is outdated.
func (c *Cluster) syncPods(set *appsv1.StatefulSet, revision string, pods []*corev1.Pod) (bool, error) {
	want := int(ptr.Deref(set.Spec.Replicas, 1))
	ordered := set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	for n := range want {
		i := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Name == fmt.Sprintf("%s-%d", set.Name, n) })
		if i < 0 {
			return true, c.makePod(set, n, revision)
		}
		if ordered && !Ready(pods[i]) {
			return false, nil
		}
	}
	return c.removePod(set, revision, want, pods)
}

// removePod removes one Pod from the end that is too many or, with the strategy
// RollingUpdate, outdated; it waits for whatever is leaving or not ready.
func (c *Cluster) removePod(set *appsv1.StatefulSet, revision string, want int, pods []*corev1.Pod) (bool, error) {
	slices.Reverse(pods)
	for _, p := range pods {
		tooMany := ordinal(p) >= want
		outdated := set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
			p.Labels[appsv1.ControllerRevisionHashLabelKey] != revision
		if p.DeletionTimestamp != nil && (tooMany || outdated) {
			return false, nil
		}
		if tooMany || outdated {
			return true, c.Delete(Key{podKind, client.ObjectKeyFromObject(p)}, p.UID, true)
		}
		if !Ready(p) {
			return false, nil
		}
	}
	return false, nil
}

func (c *Cluster) makePod(set *appsv1.StatefulSet, n int, revision string) error {
	template := set.DeepCopy().Spec.Template
	p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	p.Namespace, p.Name = set.Namespace, fmt.Sprintf("%s-%d", set.Name, n)
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	p.Labels[appsv1.StatefulSetPodNameLabel] = p.Name
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID, Controller: new(true)}}
	p.Status.Phase = corev1.PodPending
	_, err := c.Create(p, "kube-controller-manager")
	return err
}

func (c *Cluster) podsOf(set *appsv1.StatefulSet) []*corev1.Pod {
	var out []*corev1.Pod
	for _, o := range c.Now().List(podKind, set.Namespace) {
		if p, ok := o.(*corev1.Pod); ok && metav1.IsControlledBy(p, set) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return ordinal(a) - ordinal(b) })
	return out
}

func ordinal(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	if err != nil {
		return -1
	}
	return n
}

// Ready tells whether a Pod serves.
func Ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// runPods is the kubelet: Pods that are being deleted go, others become ready.
func (c *Cluster) runPods() (bool, error) {
	moved := false
	for _, o := range c.Now().List(podKind, "") {
		p, ok := o.(*corev1.Pod)
		if !ok {
			continue
		}
		ready := c.Broken == nil || !c.Broken(p)
		switch {
		case p.DeletionTimestamp != nil:
			if err := c.Delete(Key{podKind, client.ObjectKeyFromObject(p)}, p.UID, false); err != nil {
				return false, err
			}
		case ready == Ready(p):
			continue
		default:
			status := corev1.ConditionFalse
			if ready {
				status = corev1.ConditionTrue
			}
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
			if err := c.SetStatus(p); err != nil {
				return false, err
			}
		}
		moved = true
	}
	return moved, nil
}

// collect is the garbage collector: what belongs to something that is gone goes.
func (c *Cluster) collect() (bool, error) {
	now := c.Now()
	alive := map[types.UID]bool{}
	for _, o := range now.objects {
		alive[o.GetUID()] = true
	}
	moved := false
	for key, o := range now.objects {
		refs := o.GetOwnerReferences()
		if len(refs) == 0 || slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return alive[r.UID] }) || o.GetDeletionTimestamp() != nil {
			continue
		}
		if err := c.Delete(key, o.GetUID(), key.Kind == podKind); err != nil {
			return false, err
		}
		moved = true
	}
	return moved, nil
}
