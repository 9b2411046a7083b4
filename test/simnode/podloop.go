package simnode

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/util/workqueue"
)

// work takes keys from a queue until it is shut down.
func work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName],
	sync func(context.Context, types.NamespacedName) error, log *slog.Logger,
) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		err := sync(ctx, key)
		switch {
		case err == nil:
			queue.Forget(key)
		case ctx.Err() != nil:
		default:
			if !apierrors.IsConflict(err) {
				log.Warn("simulation step failed", "object", key, "error", err)
			}
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
}

// syncPod brings one Pod to where it is now. The queue sees to it that a Pod
// is never handled twice at the same time, so its machine needs no lock.
func (s *Simulator) syncPod(ctx context.Context, key types.NamespacedName) error {
	pod, err := s.informers.podLister.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		s.forget(key, "")
		return nil
	}
	if err != nil {
		return fmt.Errorf("get pod from the cache: %w", err)
	}
	hostIP, ours := s.nodeIP(pod.Spec.NodeName)
	if !ours {
		return nil
	}
	t := s.turn(key, pod)
	m, err := s.machine(key, t, hostIP)
	if err != nil {
		return err
	}
	err = s.step(ctx, m, t)
	s.publish(key, m, t)
	if err != nil {
		return err
	}
	if t.remove {
		return s.removePod(ctx, pod, m)
	}
	if err := s.writeStatus(ctx, pod, m, t.now); err != nil {
		return err
	}
	if !t.wake.IsZero() {
		s.pods.AddAfter(key, t.wake.Sub(t.now))
	}
	return nil
}

// turn gathers what a step needs.
func (s *Simulator) turn(key types.NamespacedName, pod *corev1.Pod) *turn {
	own, err := rulesOfObject(pod.Annotations)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &turn{
		pod: pod, now: s.opts.Clock.Now(), opts: &s.opts,
		rules:    append(own, s.rulesFor(key, pod.Spec.NodeName)...),
		commands: s.commands[key],
	}
	delete(s.commands, key)
	if err != nil {
		t.problems = append(t.problems, err)
	}
	return t
}

// rulesFor needs the lock.
func (s *Simulator) rulesFor(key types.NamespacedName, node string) rules {
	var all rules
	for _, rule := range s.injected {
		all = append(all, *rule)
	}
	return append(all.forObject(key.Namespace, key.Name, node), s.nodeRules[node]...)
}

// machine finds the Pod's machine or starts one.
func (s *Simulator) machine(key types.NamespacedName, t *turn, hostIP string) (*machine, error) {
	s.mu.Lock()
	m := s.machines[key]
	s.mu.Unlock()
	if m != nil && m.uid == t.pod.UID {
		return m, nil
	}
	s.forget(key, t.pod.UID)
	at := address{pod: hostIP, host: hostIP}
	if ip := t.pod.Status.PodIP; ip != "" {
		s.addresses.reserve(ip)
		at.pod = ip
	} else if !t.pod.Spec.HostNetwork {
		var err error
		if at.pod, err = s.addresses.take(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives[key]++
	m = newMachine(t, at, s.random(key.String(), s.lives[key]))
	m.adopt(t.pod, t.now)
	s.machines[key] = m
	return m, nil
}

// random makes the source of an object's draws: the same for the same seed,
// name and life, in whatever order objects are handled.
func (s *Simulator) random(name string, life uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s#%d", name, life)
	return rand.New(rand.NewPCG(s.opts.Seed, h.Sum64()))
}

// step steps the machine, again with the content of ConfigMaps and Secrets if
// it asks for them. Whoever waits for one is noted before it is read, so that
// its appearance in between is not missed.
func (s *Simulator) step(ctx context.Context, m *machine, t *turn) error {
	m.step(t)
	if !t.needContent {
		return nil
	}
	key, refs := types.NamespacedName{Namespace: t.pod.Namespace, Name: t.pod.Name}, references(t.pod)
	s.awaitContent(key, refs, true)
	var err error
	if t.content, err = s.readContent(ctx, t.pod.Namespace, refs); err != nil {
		return err
	}
	t.needContent, t.commands = false, nil
	m.step(t)
	if !t.blocked {
		s.awaitContent(key, refs, false)
	}
	return nil
}

func (s *Simulator) awaitContent(pod types.NamespacedName, refs []reference, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range refs {
		key := waitKey{pod.Namespace, ref}
		if waits {
			if s.waiters[key] == nil {
				s.waiters[key] = map[types.NamespacedName]bool{}
			}
			s.waiters[key][pod] = true
			continue
		}
		delete(s.waiters[key], pod)
		if len(s.waiters[key]) == 0 {
			delete(s.waiters, key)
		}
	}
}

func (s *Simulator) readContent(ctx context.Context, namespace string, refs []reference) (content, error) {
	found := content{}
	for _, ref := range refs {
		data, err := s.readOne(ctx, namespace, ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get %s %q: %w", ref.kind, ref.name, err)
		}
		found[ref] = data
	}
	return found, nil
}

func (s *Simulator) readOne(ctx context.Context, namespace string, ref reference) (map[string][]byte, error) {
	if ref.kind == secretKind {
		secret, err := s.client.CoreV1().Secrets(namespace).Get(ctx, ref.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return secret.Data, nil
	}
	configMap, err := s.client.CoreV1().ConfigMaps(namespace).Get(ctx, ref.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, configMap.BinaryData)
	return data, nil
}

// publish lets others know what a step did.
func (s *Simulator) publish(key types.NamespacedName, m *machine, t *turn) {
	for _, p := range t.stopped {
		if s.opts.OnStop != nil {
			s.opts.OnStop(p)
		}
	}
	s.remember(key, m, t)
	for _, p := range t.started {
		if s.opts.OnStart != nil {
			s.opts.OnStart(p)
		}
	}
	for _, e := range t.events {
		s.recorder.Event(eventTarget("Pod", t.pod.ObjectMeta), e.kind, e.reason, e.message)
	}
	for _, err := range t.problems {
		s.opts.Log.Warn("request not understood", "pod", key, "error", err)
	}
}

// writeStatus writes what differs from what was written before.
func (s *Simulator) writeStatus(ctx context.Context, pod *corev1.Pod, m *machine, now time.Time) error {
	if now.Before(m.startAt) && m.evicted == "" || m.removed || pod.DeletionTimestamp != nil {
		return nil
	}
	want := m.status(pod, now)
	if equality.Semantic.DeepEqual(want, m.written) {
		return nil
	}
	patch, err := statusPatch(pod.UID, m.written, want)
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patch status of pod: %w", err)
	}
	m.written = want
	return nil
}

// statusPatch changes our part of a status and no other; the UID keeps it
// from a later Pod of the same name.
func statusPatch(uid types.UID, from, to corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: from})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: to})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("compare status: %w", err)
	}
	return patch, nil
}

// removePod takes an ended Pod away, as a kubelet does.
func (s *Simulator) removePod(ctx context.Context, pod *corev1.Pod, m *machine) error {
	now := int64(0)
	err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove pod: %w", err)
	}
	m.removed = true
	return nil
}

// relevant reports whether an update of a Pod asks for a step: our own status
// writes do not.
func relevant(before, after *corev1.Pod) bool {
	return before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Generation != after.Generation ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!slices.EqualFunc(foreignConditions(before), foreignConditions(after), func(a, b corev1.PodCondition) bool {
			return a.Type == b.Type && a.Status == b.Status
		})
}
