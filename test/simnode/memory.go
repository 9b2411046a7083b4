package simnode

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// mountRecord is a running Pod's use of a claim.
type mountRecord struct {
	uid     types.UID
	started time.Time
}

// remember keeps what the processes of a Pod have read, and which claims they
// use, for those who ask.
func (s *Simulator) remember(key types.NamespacedName, m *machine, t *turn) {
	var mounted []types.NamespacedName
	s.mu.Lock()
	if len(t.started) > 0 {
		s.mounted[key] = maps.Clone(m.volumes)
		if s.processes[key] == nil {
			s.processes[key] = map[string]Process{}
		}
	}
	for _, p := range t.started {
		s.processes[key][p.Container] = p
	}
	if m.mainStarted() && !t.remove {
		mounted = s.useClaims(key, t)
	}
	s.mu.Unlock()
	for _, claim := range mounted {
		s.claims.Add(claim)
	}
}

// useClaims notes the claims that a Pod uses and returns those it did not use
// before. It needs the lock.
func (s *Simulator) useClaims(key types.NamespacedName, t *turn) []types.NamespacedName {
	var added []types.NamespacedName
	for _, claim := range claimsOf(t.pod) {
		if s.mounts[claim] == nil {
			s.mounts[claim] = map[types.NamespacedName]mountRecord{}
		}
		if s.mounts[claim][key].uid != t.pod.UID {
			s.mounts[claim][key] = mountRecord{t.pod.UID, t.now}
			added = append(added, claim)
		}
	}
	return added
}

func claimsOf(pod *corev1.Pod) []types.NamespacedName {
	var claims []types.NamespacedName
	for i := range pod.Spec.Volumes {
		if c := pod.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
			claims = append(claims, types.NamespacedName{Namespace: pod.Namespace, Name: c.ClaimName})
		}
	}
	return claims
}

// forget drops a Pod that is gone, unless it is the one with that UID.
func (s *Simulator) forget(key types.NamespacedName, except types.UID) {
	m := s.drop(key, except)
	if m == nil || s.opts.OnStop == nil {
		return
	}
	for _, c := range m.containers {
		if c.state == running { // deleted without grace: its processes end all the same
			s.opts.OnStop(c.process)
		}
	}
}

func (s *Simulator) drop(key types.NamespacedName, except types.UID) *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[key]
	if m == nil || m.uid == except {
		return nil
	}
	delete(s.machines, key)
	delete(s.mounted, key)
	delete(s.processes, key)
	for claim, users := range s.mounts {
		delete(users, key)
		if len(users) == 0 {
			delete(s.mounts, claim)
		}
	}
	for ref, pods := range s.waiters {
		delete(pods, key)
		if len(pods) == 0 {
			delete(s.waiters, ref)
		}
	}
	if m.at.pod != m.at.host {
		s.addresses.free(m.at.pod)
	}
	return m
}

func (s *Simulator) nodeIP(node string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ip, ours := s.nodeIPs[node]
	return ip, ours
}

func (s *Simulator) enqueueAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.machines {
		s.pods.Add(key)
	}
	for _, obj := range s.informers.claim.GetStore().List() {
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
			s.claims.Add(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
}

func keyOf(obj any) (types.NamespacedName, bool) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	return types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, err == nil
}
