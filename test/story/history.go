package story

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
	"github.com/fairlead-dev/fairlead/api/meta"
)

// History is all that happened to the Pods, StatefulSets and claims of one
// namespace. Resource versions put it in order across kinds, so that it can be
// replayed and held against what must never happen:
//
//   - a StatefulSet of backends appears before a frontend was ever ready;
//   - a Pod goes while another is missing or not ready, unless the one that
//     goes cannot serve itself;
//   - a StatefulSet gets fewer replicas, and does not say of a Pod that goes that
//     its member has left;
//   - a claim is deleted.
type History struct {
	mu     sync.Mutex
	events []happening
	// deletes is how long the history was when the story itself deleted its
	// cluster; zero if it does not.
	deletes int

	stop  context.CancelFunc
	kinds sync.WaitGroup
}

type happening struct {
	version int64
	kind    watch.EventType
	object  client.Object
}

// Watch writes the history of a namespace until it is ended.
func Watch(c client.WithWatch, namespace string) (*History, error) {
	ctx, cancel := context.WithCancel(context.Background())
	h := &History{stop: cancel}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}} {
		w, err := c.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
		if err != nil {
			h.stop()
			return nil, fmt.Errorf("watching %T in %q: %w", list, namespace, err)
		}
		h.kinds.Go(func() { h.follow(ctx, w) })
	}
	return h, nil
}

func (h *History) follow(ctx context.Context, w watch.Interface) {
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
}

// End ends the history and returns the promises that were broken.
func (h *History) End() []string {
	time.Sleep(200 * time.Millisecond) // the last events are on their way
	h.stop()
	h.kinds.Wait()
	return h.replay()
}

func (h *History) note(e watch.Event) {
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

// Deleting says that the story itself deletes its cluster from here on.
func (h *History) Deleting() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deletes = len(h.events)
}

// Went lists the Pods that went, in order.
func (h *History) Went() []string {
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

// Made counts how many Pods of each name there have been.
func (h *History) Made() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out, seen := map[string]int{}, map[string]bool{}
	for _, e := range h.events {
		if p, ok := e.object.(*corev1.Pod); ok && !seen[string(p.UID)] {
			seen[string(p.UID)] = true
			out[p.Name]++
		}
	}
	return out
}

func (h *History) sorted() []happening {
	events := slices.Clone(h.events)
	slices.SortStableFunc(events, func(a, b happening) int { return int(a.version - b.version) })
	return events
}

// replayed is the world at one moment of the history.
type replayed struct {
	pods     map[string]*corev1.Pod
	replicas map[string]int32
	leaving  map[string]string // what sets say of members that leave
	served   map[string]bool   // clusters of which a frontend was ever ready
	broken   []string
}

func (h *History) replay() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	if h.deletes > 0 {
		h.events = events[:h.deletes]
	}
	w := replayed{pods: map[string]*corev1.Pod{}, replicas: map[string]int32{}, leaving: map[string]string{}, served: map[string]bool{}}
	for _, e := range h.sorted() {
		switch o := e.object.(type) {
		case *corev1.Pod:
			w.pod(e.kind, o)
		case *appsv1.StatefulSet:
			w.set(e.kind, o)
		case *corev1.PersistentVolumeClaim:
			// One that was to go with its Pod or its set has an owner: somebody asked for it.
			if e.kind == watch.Deleted && len(o.OwnerReferences) == 0 {
				w.sayf("claim %s was deleted", o.Name)
			}
		}
	}
	h.events = events
	return w.broken
}

func (w *replayed) sayf(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func (w *replayed) pod(kind watch.EventType, p *corev1.Pod) {
	before := w.pods[p.Name]
	going := p.DeletionTimestamp != nil && (before == nil || before.UID != p.UID || before.DeletionTimestamp == nil)
	if going && before != nil && !w.hasLeft(before) {
		w.mayGo(before)
	}
	if kind == watch.Deleted {
		delete(w.pods, p.Name)
		return
	}
	w.pods[p.Name] = p
	if p.Labels[dorisv1.LabelComponent] == string(dorisv1.ComponentFE) && PodReady(p) {
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
			w.sayf("%s went while %s was going", p.Name, o.Name)
		}
		if o.Name != p.Name && !PodReady(o) {
			others = append(others, o.Name)
		}
	}
	if !PodReady(p) {
		return
	}
	for set, replicas := range w.replicas {
		if strings.HasPrefix(set, cluster+"-") && present[set] < replicas {
			others = append(others, fmt.Sprintf("%d of %d Pods of %s", present[set], replicas, set))
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		w.sayf("%s went although it served and these did not: %v", p.Name, others)
	}
}

// hasLeft tells whether the set of a Pod has become too small for it.
func (w *replayed) hasLeft(p *corev1.Pod) bool {
	set, ordinal := p.Labels[dorisv1.LabelCluster]+"-"+p.Labels[dorisv1.LabelComponent], 0
	wanted, known := w.replicas[set]
	_, err := fmt.Sscanf(p.Name, set+"-%d", &ordinal)
	return err == nil && known && int32(ordinal) >= wanted
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
	for i := n; known && i < before; i++ {
		if !strings.Contains(w.leaving[set.Name], fmt.Sprintf(`"%s-%d":`, set.Name, i)) {
			w.sayf("%s went from %d to %d replicas", set.Name, before, n)
			break
		}
	}
	w.replicas[set.Name], w.leaving[set.Name] = n, set.Annotations[meta.AnnotationLeaving]
	cluster, isBackend := strings.CutSuffix(set.Name, "-be")
	if !known && isBackend && !w.served[cluster] && set.Annotations["test/external-frontends"] == "" {
		w.sayf("%s was made before a frontend served", set.Name)
	}
}
