package stories

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

func watchHistory(s *scene) *history {
	ctx, cancel := context.WithCancel(context.Background())
	h := &history{stop: cancel}
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
	h.deletes = len(h.events)
}

// went lists the Pods that went, in order.
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
			w.pod(e.kind, o)
		case *appsv1.StatefulSet:
			w.set(e.kind, o)
		case *corev1.PersistentVolumeClaim:
			if e.kind == watch.Deleted {
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
	if going && before != nil {
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
			w.sayf("%s went while %s was going", p.Name, o.Name)
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
		w.sayf("%s went although it served and these did not: %v", p.Name, others)
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
		w.sayf("%s went from %d to %d replicas", set.Name, before, n)
	}
	w.replicas[set.Name] = n
	cluster, isBackend := strings.CutSuffix(set.Name, "-be")
	if !known && isBackend && !w.served[cluster] && set.Annotations["test/external-frontends"] == "" {
		w.sayf("%s was made before a frontend served", set.Name)
	}
}

// TestHistoryIsHeldAgainstThePromises holds that a broken promise is seen.
func TestHistoryIsHeldAgainstThePromises(t *testing.T) {
	pod := func(name string, ready, going bool) *corev1.Pod {
		p := &corev1.Pod{}
		p.Name, p.UID = name, types.UID(name)
		p.Labels = map[string]string{dorisv1.LabelCluster: "doris", dorisv1.LabelComponent: name[6:8]}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		if ready {
			p.Status.Conditions[0].Status = corev1.ConditionTrue
		}
		if going {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return p
	}
	set := func(name string, replicas int32) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{}
		s.Name, s.Spec.Replicas = name, &replicas
		return s
	}
	tests := map[string]struct {
		objects []client.Object
		want    string
	}{
		"nothing broken": {[]client.Object{
			set("doris-fe", 1), pod("doris-fe-0", true, false), set("doris-be", 1), pod("doris-be-0", true, false), pod("doris-be-0", true, true),
		}, ""},
		"backends before frontends": {[]client.Object{set("doris-fe", 1), set("doris-be", 1)}, "before a frontend served"},
		"fewer replicas":            {[]client.Object{set("doris-fe", 3), set("doris-fe", 2)}, "from 3 to 2"},
		"two at once": {[]client.Object{
			set("doris-fe", 2), pod("doris-fe-0", true, false), pod("doris-fe-1", true, false), pod("doris-fe-1", true, true), pod("doris-fe-0", true, true),
		}, "while doris-fe-1 was going"},
		"one while another does not serve": {[]client.Object{
			set("doris-fe", 2), pod("doris-fe-0", false, false), pod("doris-fe-1", true, false), pod("doris-fe-1", true, true),
		}, "these did not: [doris-fe-0]"},
		"one while another is missing": {[]client.Object{
			set("doris-fe", 2), pod("doris-fe-1", true, false), pod("doris-fe-1", true, true),
		}, "1 of 2 Pods of doris-fe"},
		"the broken one itself": {[]client.Object{
			set("doris-fe", 2), pod("doris-fe-0", false, false), pod("doris-fe-1", true, false), pod("doris-fe-0", false, true),
		}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			for i, o := range tc.objects {
				h.events = append(h.events, happening{version: int64(i), kind: watch.Modified, object: o})
			}
			got := strings.Join(h.replay(), "; ")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("broken promises are %q, want %q", got, tc.want)
			}
		})
	}
}
