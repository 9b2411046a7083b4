package doris

import (
	"encoding/json"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
)

// NodeReport is what the process of one Pod said of its settings, or why it said
// nothing. Values of settings may be secrets: they are in nothing that is
// printed, recorded or reported.
type NodeReport struct {
	// Start is the container that answered.
	Start string
	// Items are all settings of the node; nil when it could not be asked.
	Items []setting.Item
	// Reason and Message say why it could not be asked.
	Reason, Message string
	// Refused are the settings that the node did not take, and what it said.
	Refused map[string]string
}

// liveRecord is the annotation of a Pod that remembers what was set in its
// running process. It is written before the first call for a content, so that a
// key that was set is never forgotten, and again when all was read back.
type liveRecord struct {
	// Content names the copy of each ConfigMap whose settings the process has got
	// or is getting.
	Content map[string]string `json:"content"`
	// Start is the container of the process. Another one has started with what its
	// file says, and with nothing of this.
	Start string `json:"start"`
	// Keys are the settings that were set since that start.
	Keys []string `json:"keys,omitempty"`
	// Done tells that every setting was read back.
	Done bool `json:"done,omitempty"`
}

func (r liveRecord) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic("record of settings: " + err.Error()) // strings can be encoded
	}
	return string(text)
}

// liveRecordOf reads what was recorded of the process that runs now.
func liveRecordOf(pod *corev1.Pod) liveRecord {
	var r liveRecord
	if json.Unmarshal([]byte(pod.Annotations[meta.AnnotationLive]), &r) != nil || r.Start == "" || r.Start != startOf(pod) {
		return liveRecord{}
	}
	return r
}

// startOf names the running process of a Pod: the main container. It is empty
// while none runs.
func startOf(pod *corev1.Pod) string {
	main := pod.Labels[dorisv1.LabelComponent]
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == main && c.State.Running != nil && pod.DeletionTimestamp == nil {
			return c.ContainerID
		}
	}
	return ""
}

// current tells whether a Pod was made from the template that its set has, or is
// given now: then it mounts the same content. Any other is to be replaced.
func current(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && madeFrom(pod, stampOf(set))
}

// newest is the content that all Pods of the set shall have: what they mount, or what was
// accepted since then without a new template.
func (a accepted) newest() map[string]string {
	out := maps.Clone(a.Content)
	maps.Copy(out, a.Live)
	return out
}

// mounting is the record with the newest content as the one that is mounted.
func (a accepted) mounting() accepted {
	a.Content, a.Live = a.newest(), nil
	return a
}

// settingsFile is one content as the processes of a component read it.
type settingsFile struct {
	// field, name and key say where the configuration file is.
	field, name, key string
	values           map[string]string
	// others is all that is mounted besides the file, by ConfigMap and key.
	others map[string]string
	env    conf.Lookup
	// known tells that every ConfigMap of the content could be read.
	known bool
}

// fileOf reads the settings of a component from the ConfigMaps that it mounts.
func (p planner) fileOf(kind dorisv1.ComponentType, mounted map[string]*corev1.ConfigMap) settingsFile {
	spec := specOf(p.dc, kind)
	home, key := fileFor(kind)
	f := settingsFile{key: key, values: map[string]string{}, others: map[string]string{}, known: true}
	var text []byte
	for _, m := range configMapsOf(spec, fieldOf(kind)) {
		if found, has := fileIn(mounted[m.name], key); has && f.name == "" {
			text, f.name, f.field = found, m.name, m.field
		}
	}
	for _, name := range mountedMaps(p.dc, kind) {
		cm := mounted[name]
		if cm == nil {
			f.known = f.known && p.world.ConfigMaps[name] == nil
			continue
		}
		for k, v := range cm.Data {
			f.others[name+"/"+k] = v
		}
		for k, v := range cm.BinaryData {
			f.others[name+"/"+k] = string(v)
		}
	}
	delete(f.others, f.name+"/"+key)
	parsed := conf.Parse(text)
	f.env = placeholders(home, spec.EnvVars, parsed)
	if f.values = setting.BackendValues(text); kind == dorisv1.ComponentFE {
		f.values = setting.Values(parsed)
	}
	return f
}

// sameAs tells whether two contents mean the same to a process that starts.
func (f settingsFile) sameAs(other settingsFile) bool {
	return f.known && other.known && maps.Equal(f.values, other.values) && maps.Equal(f.others, other.others)
}

// syncing is one Pod whose process may lack settings that were accepted.
type syncing struct {
	pod    *corev1.Pod
	record liveRecord
	// behind tells that the process is not known to have the wanted content.
	behind bool
}

// syncOf tells how a Pod that mounts one content stands to the wanted one.
func syncOf(pod *corev1.Pod, wanted map[string]string, started, file settingsFile) syncing {
	s := syncing{pod: pod, record: liveRecordOf(pod)}
	switch {
	case s.record.Done && maps.Equal(s.record.Content, wanted):
	case len(s.record.Keys) == 0 && started.sameAs(file):
	default:
		s.behind = true
	}
	return s
}

// input is what is compared: what the node says, and the file that it shall
// run by.
func (s syncing) input(report NodeReport, started, file settingsFile) setting.Input {
	in := setting.Input{Reported: report.Items, Wanted: file.values, Touched: s.record.Keys, Env: file.env}
	if started.known {
		in.Started = started.values
	}
	return in
}

// asStarted is what a node will report when it has started with a file: what a
// Pod says that is to be replaced before it matters.
func asStarted(items []setting.Item, file settingsFile) []setting.Item {
	out := slices.Clone(items)
	for key, raw := range file.values {
		item, found := setting.Find(out, key)
		value, err := conf.ExpandText(raw, file.env)
		if !found || err != nil || item.Hidden() {
			continue
		}
		out[slices.IndexFunc(out, func(i setting.Item) bool { return i.Key == item.Key })].Value = value
	}
	return out
}
