package doris

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
)

// knownSettings are what the nodes of the double know: with their defaults.
var knownSettings = map[dorisv1.ComponentType][]setting.Item{
	dorisv1.ComponentFE: {
		{Key: "qe_slow_log_ms", Value: "5000", Type: "long", Mutable: true},
		{Key: "disable_balance", Value: "false", Type: "boolean", Mutable: true, MasterOnly: true},
		{Key: "max_agent_task_threads_num", Value: "4096", Type: "int"},
	},
	dorisv1.ComponentBE: backendSettings,
	dorisv1.ComponentCN: backendSettings,
}

var backendSettings = []setting.Item{
	{Key: "max_tablet_version_num", Value: "2000", Type: "int32_t", Mutable: true},
	{Key: "sys_log_level", Value: "INFO", Type: "std::string", Mutable: true},
	{Key: "brpc_num_threads", Value: "256", Type: "int32_t"},
}

// process is one start of a node.
type process struct {
	uid    string
	number int
	// started is the file that it has read, values is what it has now.
	started, values map[string]string
	// set are the keys that were set since the start.
	set map[string]bool
}

// nodesDouble is a test double of the nodes of the simulated cluster: each reads
// its file when it starts, and lets some settings be changed.
type nodesDouble struct {
	world *world
	procs map[string]*process
	// down do not answer; refusing take nothing; dying take one setting and then
	// answer no more.
	down, refusing, dying map[string]bool
	asking                sync.Mutex
	asked, sets           int
	crashes               bool // broken Pods run, and end again and again
	// mounts are the files that templates mounted at any time.
	mounts map[dorisv1.ComponentType][]map[string]string
	// otherFiles tells that a file beside the configuration file was edited.
	otherFiles bool
}

// withNodes gives the cluster nodes that can be asked.
func (w *world) withNodes() *world {
	w.nodes = &nodesDouble{
		world: w, procs: map[string]*process{}, down: map[string]bool{}, refusing: map[string]bool{}, dying: map[string]bool{},
		mounts: map[dorisv1.ComponentType][]map[string]string{},
	}
	w.system = w.system.Reaching(w.nodes, func() time.Time { return w.now })
	return w
}

func (n *nodesDouble) Settings(_ context.Context, at nodeAddress) ([]setting.Item, error) {
	n.asking.Lock() // several nodes are asked at the same time
	defer n.asking.Unlock()
	n.asked++
	p, err := n.at(at)
	if err != nil {
		return nil, err
	}
	items := slices.Clone(knownSettings[at.kind])
	for i := range items {
		items[i].Value = p.values[items[i].Key]
	}
	return items, nil
}

func (n *nodesDouble) at(at nodeAddress) (*process, error) {
	p := n.procs[at.pod]
	if p == nil || n.down[at.pod] || p.uid != string(at.uid) {
		return nil, errors.New("nobody answers")
	}
	return p, nil
}

func (n *nodesDouble) Set(_ context.Context, at nodeAddress, c setting.Change) error {
	p, err := n.at(at)
	if err != nil {
		return err
	}
	n.sets++
	pod := object(n.world, at.pod, &corev1.Pod{})
	if r := liveRecordOf(pod); r.Start == startName(p) && (r.Done || !slices.Contains(r.Keys, c.Key)) {
		n.world.Errorf("%s is set on %s before it is recorded: %s", c.Key, at.pod, pod.Annotations[meta.AnnotationLive])
	}
	item, known := setting.Find(knownSettings[at.kind], c.Key)
	if !known || !item.Mutable || n.refusing[at.pod] {
		return &refusedError{reason: "not this one"}
	}
	p.values[item.Key], p.set[item.Key] = c.Value, true
	if n.dying[at.pod] {
		n.down[at.pod] = true
		return errors.New("the answer got lost")
	}
	return nil
}

func startName(p *process) string { return fmt.Sprintf("containerd://%s-%d", p.uid, p.number) }

// runs is the kubelet's part: a Pod that runs has a process.
func (n *nodesDouble) runs(w *world, pod *corev1.Pod) {
	if n == nil {
		return
	}
	p := n.procs[pod.Name]
	if p == nil || p.uid != string(pod.UID) {
		p = &process{uid: string(pod.UID)}
		n.procs[pod.Name] = p
		n.starts(w, pod)
	}
	pod.Status.PodIP = "10.0.0.1"
	c := &pod.Status.ContainerStatuses[0]
	c.ContainerID, c.State.Running = startName(p), &corev1.ContainerStateRunning{}
}

// applied notes what a template mounts.
func (n *nodesDouble) applied(w *world, target string) {
	if n == nil || !strings.HasPrefix(target, "StatefulSet/doris-") {
		return
	}
	kind := dorisv1.ComponentType(strings.TrimPrefix(target, "StatefulSet/doris-"))
	recorded, _ := readAccepted(w.set("doris-" + string(kind)))
	if name := recorded.Content[string(kind)+"-conf"]; name != "" {
		n.mounts[kind] = append(n.mounts[kind], fileIs(object(w, name, &corev1.ConfigMap{}), kind))
	}
}

// starts reads the file that a Pod mounts.
func (n *nodesDouble) starts(w *world, pod *corev1.Pod) {
	p, kind := n.procs[pod.Name], dorisv1.ComponentType(pod.Labels[dorisv1.LabelComponent])
	p.number++
	p.values, p.set = map[string]string{}, map[string]bool{}
	file := fileThatIsMounted(w, pod, kind)
	p.started = file
	for _, item := range knownSettings[kind] {
		p.values[item.Key] = item.Value
		if value, has := file[item.Key]; has {
			p.values[item.Key] = value
		}
	}
}

func fileThatIsMounted(w *world, pod *corev1.Pod, kind dorisv1.ComponentType) map[string]string {
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap == nil || !strings.Contains(v.ConfigMap.Name, string(kind)+"-conf") {
			continue
		}
		return fileIs(object(w, v.ConfigMap.Name, &corev1.ConfigMap{}), kind)
	}
	return nil
}

func fileIs(cm *corev1.ConfigMap, kind dorisv1.ComponentType) map[string]string {
	return setting.Values(conf.Parse([]byte(cm.Data[string(kind)+".conf"])))
}

// restart kills the main container of a Pod; the kubelet starts it again.
func (n *nodesDouble) restart(w *world, name string) {
	pod, ok := w.store.Now().Get(keyOf(&corev1.Pod{ObjectMeta: objectMeta(w.dc, name, nil)})).(*corev1.Pod)
	if p := n.procs[name]; ok && p != nil && p.uid == string(pod.UID) {
		n.starts(w, pod)
	}
}

// goes holds that a Pod goes only when a start is needed, or its template is not
// that of its set for another reason than the content.
func (n *nodesDouble) goes(w *world, pod *corev1.Pod) {
	if n == nil {
		return
	}
	kind := dorisv1.ComponentType(pod.Labels[dorisv1.LabelComponent])
	set := w.set("doris-" + string(kind))
	recorded, _ := readAccepted(set)
	p := n.procs[pod.Name]
	is := fileIs(object(w, recorded.newest()[string(kind)+"-conf"], &corev1.ConfigMap{}), kind)
	others := pod.Spec.Containers[0].Image != set.Spec.Template.Spec.Containers[0].Image
	if others || p == nil || w.nodes.crashes || updatePolicy(w.dc) != dorisv1.ConfigUpdateAuto || w.nodes.otherFiles {
		return
	}
	maybe := maps.Clone(p.set)
	if maybe == nil {
		maybe = map[string]bool{}
	}
	for _, key := range liveRecordOf(pod).Keys { // who was killed after the record does not know whether it was set
		maybe[key] = true
	}
	for _, file := range append(n.mounts[kind], is) {
		if startNeeded(kind, p.started, file, maybe) {
			return
		}
	}
	w.Errorf("%s goes although nothing of its file needs a start: it has %v, set %v, and shall have %v", pod.Name, p.started, p.set, is)
}

func startNeeded(kind dorisv1.ComponentType, was, is map[string]string, set map[string]bool) bool {
	for _, key := range unionKeys(was, is) {
		item, known := setting.Find(knownSettings[kind], key)
		_, stays := is[key]
		if was[key] != is[key] && (!known || !item.Mutable || !stays) {
			return true
		}
	}
	for key := range maps.Keys(set) {
		if _, stays := is[key]; !stays {
			return true
		}
	}
	return false
}

func (n *nodesDouble) call(w *world, c plan.Call) error {
	if strings.Contains(fmt.Sprintf("%v %+v %#v %s", c.Operation, c.Operation, c.Operation, c.Operation.Describe()), "4711") {
		w.Errorf("a value is printed: %+v", c.Operation)
	}
	err := w.system.Execute(context.Background(), World{}, c.Operation)
	if _, notDone := errors.AsType[*plan.NotDoneError](err); notDone {
		return nil
	}
	return err
}
