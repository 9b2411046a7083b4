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
)

// What the operator remembers of a set is in annotations of the set, where it changes
// in one write with what it is about. The status of the resource repeats it, since a
// set may be deleted by hand, or on purpose: it gets back what was remembered of it.

// remembered are the annotations of a set that the status of the resource repeats. One
// more is repeated by adding it here.
var remembered = []string{
	meta.AnnotationAccepted, meta.AnnotationLastGood, meta.AnnotationFailed, meta.AnnotationConsents, meta.AnnotationTemplate,
	meta.AnnotationRolling, meta.AnnotationBalanceStopped,
}

// patched are those of them that are written by themselves, beside what is applied: an
// apply says them only in a set that was made with them, or they would go with it.
var patched = []string{meta.AnnotationRolling, meta.AnnotationBalanceStopped}

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

// inStatus are the records of a set that the status of a resource has, as annotations.
func inStatus(dc *dorisv1.DorisCluster, set string) map[string]string {
	for _, pin := range dc.Status.Workloads {
		if pin.Name != set {
			continue
		}
		out := map[string]string{}
		for key, value := range pin.Records {
			out[meta.Prefix+key] = value
		}
		return out
	}
	return nil
}

// recordsBack gives those of our sets their records back from whose annotations the
// main one was taken away.
func recordsBack(dc *dorisv1.DorisCluster, sets map[string]*appsv1.StatefulSet) map[string]*appsv1.StatefulSet {
	out, copied := sets, false
	for _, name := range sortedKeys(sets) {
		set := sets[name]
		if _, readable := readAccepted(set); readable || !pinned(set) {
			continue
		}
		records := inStatus(dc, name)
		delete(records, meta.AnnotationTemplate)
		if records[meta.AnnotationAccepted] == "" {
			continue
		}
		if !copied {
			out, copied = maps.Clone(sets), true
		}
		back := *set
		back.Annotations = records
		maps.Copy(back.Annotations, set.Annotations)
		back.Annotations[meta.AnnotationAccepted] = records[meta.AnnotationAccepted]
		out[name] = &back
	}
	return out
}

// remembers is the set of a component as far as its records go: that of one that is
// gone has what the status of the resource repeats. It is nil where nothing is known.
func (p planner) remembers(kind dorisv1.ComponentType) *appsv1.StatefulSet {
	name := StatefulSetName(p.dc.Name, kind)
	if set := p.world.StatefulSets[name]; set != nil {
		return set
	}
	records := inStatus(p.dc, name)
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
