package doris

import (
	"maps"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// What the operator remembers of a set is in annotations of the set, where it changes
// in one write with what it is about. The status of the resource repeats it, since a
// set may be deleted by hand, or on purpose: it gets back what was remembered of it.

// remembered are the annotations of a set that the status of the resource repeats. One
// more is repeated by adding it here.
var remembered = []string{
	meta.AnnotationAccepted, meta.AnnotationLastGood, meta.AnnotationFailed, meta.AnnotationConsents, meta.AnnotationTemplate,
	meta.AnnotationRolling, meta.AnnotationBalanceStopped, meta.AnnotationMetadataDump, meta.AnnotationEndpoints,
}

// patched are those of them that are written by themselves, beside what is applied: an
// apply says them only in a set that was made with them, or they would go with it.
var patched = []string{meta.AnnotationRolling, meta.AnnotationBalanceStopped, meta.AnnotationMetadataDump, meta.AnnotationEndpoints}

// carry keeps what a set was made with until it is patched away.
func (p planner) carry(target *appsv1.StatefulSet) {
	found := p.found[target.Name]
	if found == nil {
		return
	}
	// Looked up only for a set that has such a record: it costs more than the rest of the plan.
	owned := sync.OnceValues(func() (map[string]any, error) { return p.engine.Owned(found, FieldManager) })
	for _, key := range patched {
		value := found.Annotations[key]
		if value == "" { // somebody took it away, and the status of the resource has it
			if set := p.world.StatefulSets[target.Name]; set != nil && set.Annotations[key] != "" {
				target.Annotations[key] = set.Annotations[key]
			}
			continue
		}
		if ours, err := owned(); err == nil && holds(ours, "metadata.annotations["+strconv.Quote(key)+"]") {
			target.Annotations[key] = value
		}
	}
}

// recordsOf are the records of a set as the status has them.
func recordsOf(set *appsv1.StatefulSet) map[string]string {
	out := map[string]string{}
	for _, key := range remembered {
		value := set.Annotations[key]
		if key == meta.AnnotationTemplate { // the stamp is in the template, so that Pods have it
			value = set.Spec.Template.Annotations[key]
		}
		if value != "" {
			out[strings.TrimPrefix(key, meta.Prefix)] = value
		}
	}
	return out
}

// inStatus are the records of a set that the status of a resource has, as annotations,
// and the revision of its rendering.
func inStatus(dc *dorisv1.DorisCluster, set string) (records map[string]string, revision string) {
	for _, pin := range dc.Status.Workloads {
		if pin.Name != set {
			continue
		}
		out := map[string]string{}
		for key, value := range pin.Records {
			out[meta.Prefix+key] = value
		}
		return out, strconv.Itoa(int(pin.Revision))
	}
	return nil, ""
}

// recordsBack gives those of our sets back what somebody took from their records. What
// a set says is what is true, since it changes in the same write as its template, and
// the status of the resource may be a write behind. It is not believed where our writes
// cannot have made it so.
func recordsBack(dc *dorisv1.DorisCluster, sets map[string]*appsv1.StatefulSet) map[string]*appsv1.StatefulSet {
	out, copied := sets, false
	for _, name := range sortedKeys(sets) {
		back := spoilt(dc, sets[name])
		if len(back) == 0 {
			continue
		}
		if !copied {
			out, copied = maps.Clone(sets), true
		}
		out[name] = withRecords(sets[name], back)
	}
	return out
}

// withRecords is a set with other annotations.
func withRecords(set *appsv1.StatefulSet, with map[string]string) *appsv1.StatefulSet {
	out := *set
	out.Annotations = maps.Clone(set.Annotations)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	maps.Copy(out.Annotations, with)
	return &out
}

// spoilt are the records of a set that none of our writes can have left so, as the
// status of the resource repeats them: the main one cannot be read; fewer consents are
// used up than were; or the template is the one that the status knows, and is said to
// be rendered at another revision or from something else.
func spoilt(dc *dorisv1.DorisCluster, set *appsv1.StatefulSet) map[string]string {
	records, revision := inStatus(dc, set.Name)
	stamp := records[meta.AnnotationTemplate]
	delete(records, meta.AnnotationTemplate)
	was, known := acceptedIn(records[meta.AnnotationAccepted])
	if !known || !pinned(set) {
		return nil
	}
	is, readable := readAccepted(set)
	if !readable {
		maps.DeleteFunc(records, func(key, _ string) bool { return key != meta.AnnotationAccepted && set.Annotations[key] != "" })
		return records
	}
	back := map[string]string{}
	used := plan.ConsentsIn(records[meta.AnnotationConsents])
	if used > plan.Consents(set) {
		back[meta.AnnotationConsents] = records[meta.AnnotationConsents]
	}
	if stamp != stampOf(set) || used < plan.Consents(set) { // it is ahead of the status
		return back
	}
	if said := set.Annotations[meta.AnnotationRevision]; said != revision {
		back[meta.AnnotationRevision] = revision
	}
	if !(accepted{Spec: is.Spec}).same(accepted{Spec: was.Spec}) { // what renders the same needs no new record
		back[meta.AnnotationAccepted] = records[meta.AnnotationAccepted]
	}
	return back
}

// sayRecords tells that what is remembered of a set was not what it said.
func (p planner) sayRecords(w workload) {
	if w.live == nil || p.found[w.live.Name] == nil {
		return
	}
	var keys []string
	found := p.found[w.live.Name]
	for _, key := range append([]string{meta.AnnotationRevision}, remembered...) {
		if found.Annotations[key] != w.live.Annotations[key] {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		p.build.Find(plan.Finding{
			Severity: plan.Warning, Field: "StatefulSet " + w.live.Name, Reason: reasonRecordsRestored,
			Message: "somebody else changed what the operator remembers of it (" + strings.Join(keys, ", ") + "): what status.workloads repeats is right, and counts",
		})
	}
}

// reasonRecordsRestored says that records of a set were changed by somebody else.
const reasonRecordsRestored = "RecordsRestored"

// remembers is the set of a component as far as its records go: that of one that is
// gone has what the status of the resource repeats. It is nil where nothing is known.
func (p planner) remembers(kind dorisv1.ComponentType) *appsv1.StatefulSet {
	name := StatefulSetName(p.dc.Name, kind)
	if set := p.world.StatefulSets[name]; set != nil {
		return set
	}
	records, _ := inStatus(p.dc, name)
	if len(records) == 0 {
		return nil
	}
	gone := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.dc.Namespace, Name: name, Annotations: records}}
	gone.Spec.Template.Annotations = map[string]string{meta.AnnotationTemplate: records[meta.AnnotationTemplate]}
	delete(records, meta.AnnotationTemplate)
	return gone
}

// asRemembered puts what is remembered of a set that is gone on the one that is made in
// its place: it is rendered from the record, and what has changed since then goes its
// ordinary way afterwards. Its claims are those that are asked for now.
func (p planner) asRemembered(w workload, target *appsv1.StatefulSet) {
	if !w.again {
		return
	}
	was := p.remembers(w.kind)
	for _, key := range remembered {
		if value := was.Annotations[key]; value != "" && target.Annotations[key] == "" {
			target.Annotations[key] = value
		}
	}
	if history := p.historyOf(w.kind); len(history) > 0 {
		target.Annotations[meta.AnnotationHistory] = encoded(history)
	}
	if stamp := stampOf(was); stamp != "" {
		annotateTemplate(target, meta.AnnotationTemplate, stamp)
	}
	asked := p.rendered(w, w.now, w.at).Spec.VolumeClaimTemplates
	for i := range target.Spec.VolumeClaimTemplates {
		for j := range asked {
			if asked[j].Name == target.Spec.VolumeClaimTemplates[i].Name {
				target.Spec.VolumeClaimTemplates[i] = asked[j]
			}
		}
	}
}
