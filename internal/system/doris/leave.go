package doris

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// leaveRecord remembers a member that is being taken out of the database. It is
// written before the first statement, on the Pod and on the set: a Pod that is
// replaced meanwhile has lost it, and the backend is no less on its way.
type leaveRecord struct {
	// Member is how the database names it, host and port; empty for a Pod that the
	// database did not know.
	Member string `json:"member,omitempty"`
	// Since says when it began to leave.
	Since metav1.Time `json:"since"`
	// How says whether its tablets are moved away first.
	How dorisv1.ScaleInPolicy `json:"how"`
	// Pod is the UID of the Pod that left.
	Pod string `json:"pod,omitempty"`
	// MovedFrom is the UID of the Pod that is replaced, or was last, so that it is
	// master no longer, and Moves how many were.
	MovedFrom string `json:"movedFrom,omitempty"`
	Moves     int    `json:"moves,omitempty"`
}

// node is the member as it is named in statements.
func (r leaveRecord) node() client.Node {
	i := strings.LastIndexByte(r.Member, ':')
	if i < 0 {
		return client.Node{}
	}
	port := int32(0)
	_, _ = fmt.Sscan(r.Member[i+1:], &port)
	return client.Node{Host: strings.Trim(r.Member[:i], "[]"), Port: port}
}

// leaveRecords are the members of a set that are on their way out, by their Pods.
func leaveRecords(set *appsv1.StatefulSet, pods []corev1.Pod) map[string]leaveRecord {
	out := map[string]leaveRecord{}
	for i := range pods {
		var r leaveRecord
		if text := pods[i].Annotations[meta.AnnotationLeaving]; text != "" && json.Unmarshal([]byte(text), &r) == nil {
			out[pods[i].Name] = r
		}
	}
	if set != nil {
		maps.Copy(out, recordedOnSet(set))
	}
	return out
}

func recordedOnSet(set *appsv1.StatefulSet) map[string]leaveRecord {
	var of map[string]leaveRecord
	if text := set.Annotations[meta.AnnotationLeaving]; text == "" || json.Unmarshal([]byte(text), &of) != nil {
		return nil
	}
	return of
}

// leaver is one member that shall go, or that was to go and stays.
type leaver struct {
	name    string
	ordinal int
	pod     *corev1.Pod
	record  leaveRecord
	// recorded tells that there is a record of it as it is now.
	recorded bool
	// row is what the database says of it; nil when it does not know it.
	row *client.Backend
	// frontend is the same for a frontend.
	frontend *client.Frontend
	// unclear tells that two rows are of the Pod.
	unclear bool
}

// address is how the database names it; empty when it does not know it.
func (l leaver) address() string {
	switch {
	case l.row != nil:
		return addressOf(l.row)
	case l.frontend != nil:
		return frontendAddress(l.frontend)
	}
	return ""
}

// gone tells that the database does not know it (any more).
func (l leaver) gone() bool { return l.row == nil && l.frontend == nil }

// leaverOf reads what is known of one member.
func (p planner) leaverOf(kind dorisv1.ComponentType, set *appsv1.StatefulSet, ordinal int) leaver {
	l := leaver{name: fmt.Sprintf("%s-%d", set.Name, ordinal), ordinal: ordinal}
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		if pods[i].Name == l.name {
			l.pod = &pods[i]
		}
	}
	l.record, l.recorded = leaveRecords(set, pods)[l.name]
	if db := p.world.Database; db != nil && db.Known {
		name := p.nameOf(kind, l.name, l.pod)
		if kind == dorisv1.ComponentFE {
			l.frontend, l.unclear = db.frontend(name, l.record.Member)
		} else {
			l.row, l.unclear = db.backend(name, l.record.Member)
		}
		if address := l.address(); address != "" && address != l.record.Member {
			l.recorded = false // it is registered by another name now
		}
	}
	return l
}

// writeLeaving plans the records of members, on the set and on their Pods, and takes
// those of others away. It tells whether something is to be written.
func (p planner) writeLeaving(kind dorisv1.ComponentType, set *appsv1.StatefulSet, records map[string]leaveRecord, consented bool) bool {
	wrote := p.writeOnSet(kind, set, records, consented)
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		wanted, differs := p.onPod(&pods[i], records)
		if !differs {
			continue
		}
		p.recordLeaving(plan.RefOf(&pods[i]), plan.Patch{
			Object: &pods[i], Manager: FieldManager, Reason: "record that it leaves the database, or stays",
			Fields: map[string]any{"metadata": map[string]any{"annotations": map[string]any{meta.AnnotationLeaving: wanted}}},
		})
		wrote = true
	}
	return wrote
}

// writeOnSet plans the records of all members on their set.
func (p planner) writeOnSet(kind dorisv1.ComponentType, set *appsv1.StatefulSet, records map[string]leaveRecord, consented bool) bool {
	text, wanted := set.Annotations[meta.AnnotationLeaving], ""
	annotations := map[string]any{meta.AnnotationLeaving: nil}
	if len(records) > 0 {
		wanted = encoded(records)
		annotations[meta.AnnotationLeaving] = wanted
	}
	if text == wanted {
		return false
	}
	if consented {
		annotations[meta.AnnotationConsents] = strconv.Itoa(plan.Consents(set) + 1)
	}
	p.recordLeaving(plan.RefOf(set), plan.Patch{
		Object: set, Manager: FieldManager, Reason: "record which members leave the database",
		Fields: map[string]any{"metadata": map[string]any{"annotations": annotations}},
	})
	p.leave.wrote[kind] = true
	return true
}

// onPod is what a Pod shall remember, nil for nothing, and whether it differs. One
// that is going is left alone.
func (p planner) onPod(pod *corev1.Pod, records map[string]leaveRecord) (wanted any, differs bool) {
	record, leaves := records[pod.Name]
	text := ""
	if leaves {
		text = encoded(record)
		wanted = text
	}
	return wanted, pod.DeletionTimestamp == nil && pod.Annotations[meta.AnnotationLeaving] != text
}

func (p planner) recordLeaving(on plan.Ref, patch plan.Patch) {
	p.build.Step(plan.Change{
		Object: on, Path: `metadata.annotations["` + meta.AnnotationLeaving + `"]`, Cause: plan.CauseUser,
		Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: "Recorded", Message: "which members leave the database",
	}, patch)
}

// membership stands for what the database knows of a Pod in a change.
const membership = "membership in the database"

// ask plans one statement about a member, unless the database refused it a moment
// ago. It tells what the database said then.
func (p planner) ask(l leaver, o changeMember, message string) (refused string) {
	on := plan.Ref{Kind: "Pod", Namespace: p.dc.Namespace, Name: l.name}
	o.pod = l.name
	o.at, _, _ = p.database()
	change := plan.Change{
		Object: on, Path: membership, To: strings.ToLower(string(o.change)), Cause: plan.CauseUser, Effect: plan.EffectNone,
		Verdict: plan.VerdictApply, Reason: meta.ReasonMembersLeaving, Message: message,
	}
	return p.tell(change, o, o.member.String(), meta.ReasonScaleInRefused)
}

// tell plans one statement to the database, unless it refused that a moment ago: then
// it says so by the reason. key is by what a refusal is remembered.
func (p planner) tell(change plan.Change, o plan.Operation, key, reason string) (refused string) {
	if refused = p.world.Database.Refused[key]; refused != "" {
		change.Verdict, change.Reason, change.Message = plan.VerdictWait, reason, refused
		p.build.Note(change)
		return refused
	}
	p.build.Step(change, plan.Call{On: change.Object, Operation: o, Reason: o.Describe()})
	return ""
}

// since is when a member that is to leave now began to.
func (p planner) since() metav1.Time { return metav1.NewTime(p.now.UTC().Truncate(time.Second)) }

// remade records the Pods in which frontends are that leave: one that was made again may
// have joined anew, and what it has on its volume is to be put aside as well.
func (s *scaling) remade() {
	for _, l := range s.leavers {
		if record := s.records[l.name]; l.frontend != nil && l.pod != nil && l.pod.DeletionTimestamp == nil && record.Pod != string(l.pod.UID) {
			record.Pod = string(l.pod.UID)
			s.records[l.name] = record
		}
	}
}

// recordOf is what is remembered of a member before the first statement about it.
func (p planner) recordOf(s *scaling, l leaver) leaveRecord {
	r := leaveRecord{Member: l.address(), Since: p.since(), How: s.policy}
	if !l.record.Since.IsZero() {
		r.Since = l.record.Since
	}
	if l.pod != nil {
		r.Pod = string(l.pod.UID)
	}
	return r
}
