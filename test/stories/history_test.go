package stories

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// history is all that happened to the Pods, StatefulSets and claims of one
// namespace. Resource versions put it in order across kinds, so that it can be
// replayed and held against what must never happen:
//
//   - a StatefulSet of backends appears before a frontend was ever ready;
//   - a Pod goes while another is missing or not ready, unless the one that
//     goes cannot serve itself;
//   - a StatefulSet gets fewer replicas;
//   - a claim is deleted.
type history struct {
	scene *scene
	// deletes, set by a story that deletes the cluster itself, says that what
	// goes from now on goes by that; ownDoing holds Pods that the story takes away.
	mu       sync.Mutex
	events   []happening
	deletes  int64
	ownDoing map[string]bool

	stop  context.CancelFunc
	kinds sync.WaitGroup
}

type happening struct {
	version int64
	kind    watch.EventType
	object  client.Object
}

func watchHistory(s *scene) *history {
	ctx, cancel := context.WithCancel(context.Background())
	h := &history{scene: s, stop: cancel, ownDoing: map[string]bool{}}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}} {
		w, err := s.client.Watch(ctx, list, client.InNamespace(s.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
		if err != nil {
			s.Fatal(err)
		}
		h.kinds.Go(func() {
			defer w.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case e, open := <-w.ResultChan():
					if !open {
						return
					}
					h.note(e)
				}
			}
		})
	}
	s.Cleanup(func() {
		time.Sleep(200 * time.Millisecond) // the last events are on their way
		h.stop()
		h.kinds.Wait()
		for _, broken := range h.replay() {
			s.Errorf("promise broken: %s", broken)
		}
	})
	return h
}

func (h *history) note(e watch.Event) {
	o, ok := e.Object.(client.Object)
	if !ok {
		return
	}
	version, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, happening{version: version, kind: e.Type, object: o})
}

// deleting says that the story itself deletes its cluster from here on.
func (h *history) deleting() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deletes = int64(len(h.events))
}

// takes says that the story itself takes a Pod away.
func (h *history) takes(pod string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ownDoing[pod] = true
}

// evicted lists the Pods that went, in order.
func (h *history) went() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	seen := map[string]bool{}
	for _, e := range h.sorted() {
		if p, ok := e.object.(*corev1.Pod); ok && p.DeletionTimestamp != nil && !seen[string(p.UID)] {
			seen[string(p.UID)] = true
			names = append(names, p.Name)
		}
	}
	return names
}

func (h *history) sorted() []happening {
	events := slices.Clone(h.events)
	slices.SortStableFunc(events, func(a, b happening) int { return int(a.version - b.version) })
	return events
}

// replayed is the world at one moment of the history.
type replayed struct {
	pods     map[string]*corev1.Pod
	replicas map[string]int32
	served   map[string]bool // clusters of which a frontend was ever ready
	broken   []string
}

func (h *history) replay() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	if h.deletes > 0 {
		h.events = events[:h.deletes]
	}
	w := replayed{pods: map[string]*corev1.Pod{}, replicas: map[string]int32{}, served: map[string]bool{}}
	for _, e := range h.sorted() {
		switch o := e.object.(type) {
		case *corev1.Pod:
			w.pod(e.kind, o, h.ownDoing[o.Name])
		case *appsv1.StatefulSet:
			w.set(e.kind, o)
		case *corev1.PersistentVolumeClaim:
			if e.kind == watch.Deleted {
				w.say("claim %s was deleted", o.Name)
			}
		}
	}
	h.events = events
	return w.broken
}

func (w *replayed) say(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func (w *replayed) pod(kind watch.EventType, p *corev1.Pod, ownDoing bool) {
	before := w.pods[p.Name]
	going := p.DeletionTimestamp != nil && (before == nil || before.UID != p.UID || before.DeletionTimestamp == nil)
	if going && before != nil && !ownDoing {
		w.mayGo(before)
	}
	if kind == watch.Deleted {
		delete(w.pods, p.Name)
		return
	}
	w.pods[p.Name] = p
	if p.Labels[dorisv1.LabelComponent] == string(dorisv1.ComponentFE) && podReady(p) {
		w.served[p.Labels[dorisv1.LabelCluster]] = true
	}
}

// mayGo holds that a Pod went while all others of its cluster were there and
// ready, or could not serve itself.
func (w *replayed) mayGo(p *corev1.Pod) {
	cluster := p.Labels[dorisv1.LabelCluster]
	present := map[string]int32{}
	var others []string
	for _, o := range w.pods {
		if o.Labels[dorisv1.LabelCluster] != cluster {
			continue
		}
		present[cluster+"-"+o.Labels[dorisv1.LabelComponent]]++
		if o.Name != p.Name && o.DeletionTimestamp != nil {
			w.say("%s went while %s was going", p.Name, o.Name)
		}
		if o.Name != p.Name && !podReady(o) {
			others = append(others, o.Name)
		}
	}
	if !podReady(p) {
		return
	}
	for set, replicas := range w.replicas {
		if strings.HasPrefix(set, cluster+"-") && present[set] < replicas {
			others = append(others, fmt.Sprintf("%d of %d Pods of %s", present[set], replicas, set))
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		w.say("%s went although it served and these did not: %v", p.Name, others)
	}
}

func (w *replayed) set(kind watch.EventType, set *appsv1.StatefulSet) {
	if kind == watch.Deleted {
		delete(w.replicas, set.Name)
		return
	}
	n := int32(1)
	if set.Spec.Replicas != nil {
		n = *set.Spec.Replicas
	}
	before, known := w.replicas[set.Name]
	if known && n < before {
		w.say("%s went from %d to %d replicas", set.Name, before, n)
	}
	w.replicas[set.Name] = n
	cluster, isBackend := strings.CutSuffix(set.Name, "-be")
	if !known && isBackend && !w.served[cluster] && set.Annotations["test/external-frontends"] == "" {
		w.say("%s was made before a frontend served", set.Name)
	}
}
