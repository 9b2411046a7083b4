package doris

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/overrides"
)

// ObservedName returns the name of the ConfigMap with what the operator has observed of
// the running nodes of a cluster. There are names of settings in it, and no values.
func ObservedName(cluster string) string { return cluster + "-observed" }

// largestRecord bounds that of a component: an object of the API server has room for a
// little more than the three that there are. One that would be larger stays as it was.
const largestRecord = 300 << 10

// observedOf is the record of a component in that ConfigMap.
func observedOf(cm *corev1.ConfigMap, kind dorisv1.ComponentType) overrides.Record {
	if cm == nil {
		return overrides.Record{}
	}
	return overrides.Read(cm.Data[string(kind)])
}

// Observed is what is known of the changed settings of a component.
func Observed(w World, cluster string, kind dorisv1.ComponentType) overrides.Record {
	return observedOf(w.OwnMaps[ObservedName(cluster)], kind)
}

// observed plans the ConfigMap: what it holds, and what the nodes have said since.
func (p planner) observed() {
	name := ObservedName(p.dc.Name)
	was, data := p.world.OwnMaps[name], map[string]string{}
	for _, kind := range polled {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		record := observedOf(was, kind)
		if polls := p.world.Polls[kind]; len(polls) > 0 && set != nil {
			n := expected(p.dc, kind, set)
			now := overrides.Fold(record, overrides.Component{
				Image: mainImage(set.Spec.Template.Spec, kind), Nodes: n,
				Exists: func(pod string) bool { return ordinalOf(pod) < n },
			}, polls)
			if len(now.String()) <= largestRecord {
				record = now
			}
		}
		if len(record.Nodes) > 0 && specOf(p.dc, kind) != nil {
			data[string(kind)] = record.String()
		}
	}
	if was == nil && (len(data) == 0 || !apimeta.IsStatusConditionTrue(p.dc.Status.Conditions, meta.ConditionReady)) {
		return // a cluster that comes up has not been changed by anybody, and costs no write for it
	}
	record, there := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: objectMeta(p.dc, name, map[string]string{dorisv1.LabelOwner: p.dc.Name}),
		Data:       data,
	}, live(p.world.OwnMaps, name)
	p.build.Want(plan.Want{
		Rendered: record, Live: there, Cause: p.causeOf(record, there), Silent: true,
		Reason: "which settings were changed in running nodes",
	})
}

// reportOverrides counts in the status what was changed in running nodes.
func (p planner) reportOverrides(out *dorisv1.RuntimeConfigStatus) {
	out.ChangedSettings, out.ChangedNodes, out.ContradictedSettings = 0, 0, 0
	for _, kind := range polled {
		record := Observed(p.world, p.dc.Name, kind)
		if record.Changed() == 0 || specOf(p.dc, kind) == nil {
			continue
		}
		contradicted := map[string]bool{}
		for _, e := range p.explain(kind) {
			contradicted[e.Key] = contradicted[e.Key] || e.Contradicts
		}
		maps.DeleteFunc(contradicted, func(_ string, is bool) bool { return !is })
		out.ContradictedSettings += int32(len(contradicted)) //nolint:gosec // numbers of settings
		out.ChangedSettings += int32(len(record.Keys()))     //nolint:gosec // numbers of settings
		out.ChangedNodes += int32(record.Changed())          //nolint:gosec // numbers of nodes
	}
}
