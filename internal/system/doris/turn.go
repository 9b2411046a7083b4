package doris

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// A Pod that is lost comes back on the newest template of its set. Frontends go last in
// a roll, so their template is written last: a frontend that is lost while backends are
// replaced must not be the first of the new version.

// reasonOutdated is the reason of what goes by itself when its turn comes.
const reasonOutdated = "Outdated"

// ahead is what a template is planned from.
type ahead struct {
	settings Settings
	contents map[dorisv1.ComponentType]content
	// lacking are the components that refer to what is not there: they wait for a person.
	lacking map[dorisv1.ComponentType]bool
}

// goesBefore names the component whose Pods are replaced before the template of this one
// is changed; empty where there is none. lacks tells that those wait for a person, who has
// to make what they refer to. Frontends that cannot run wait for nobody, since the change
// may be what mends them; one that is on its way back does. Nor do they wait for such a
// person, but for another version, which backends have first.
func (p planner) goesBefore(w workload) (before string, lacks bool) {
	if w.kind != dorisv1.ComponentFE || w.live == nil || w.restart == plan.EffectResizeOrRestart || p.cannotRun(w.kind) {
		return "", false
	}
	for _, kind := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		if kind == w.kind || specOf(p.dc, kind) == nil || set == nil || !pinned(set) {
			continue
		}
		if rolls, lacks := p.rollsBefore(w, kind, set); rolls {
			return pluralOf(kind), lacks
		}
	}
	return "", false
}

// rollsBefore tells whether another component is replaced before, and lacks something.
func (p planner) rollsBefore(w workload, kind dorisv1.ComponentType, set *appsv1.StatefulSet) (rolls, lacks bool) {
	if p.rollsNow(kind, set) {
		return true, false
	}
	lacks = p.ahead.lacking[kind]
	return (!lacks || p.anotherVersion(w)) && p.rollsNext(kind, set), lacks
}

// cannotRun tells whether a Pod of a component does not come up.
func (p planner) cannotRun(kind dorisv1.ComponentType) bool {
	return slices.ContainsFunc(p.world.Pods[string(kind)], func(pod corev1.Pod) bool { _, failed := p.fails(kind, &pod); return failed })
}

// anotherVersion tells whether the spec asks for another version than a set has.
func (p planner) anotherVersion(w workload) bool {
	return tagOf(specOf(p.dc, w.kind).Image) != tagOf(mainImage(w.live.Spec.Template.Spec, w.kind))
}

// rollsNow tells whether a component has Pods that a roll has yet to replace, or that are
// not back. One that has stopped waits for a person, and nobody waits for it. Members that
// shall leave are not replaced any more.
func (p planner) rollsNow(kind dorisv1.ComponentType, set *appsv1.StatefulSet) bool {
	if _, stopped := p.stopped(kind); stopped || set.Annotations[meta.AnnotationFailed] != "" {
		return false
	}
	stay := ptr.Deref(set.Spec.Replicas, 1)
	if p.leaves(kind, set) {
		stay = min(stay, wantedOf(p.dc, kind))
	}
	staying := slices.DeleteFunc(slices.Clone(p.world.Pods[string(kind)]), func(pod corev1.Pod) bool { return ordinalOf(pod.Name) >= int(stay) })
	if _, rolling := readLastGood(set); rolling {
		return !allRolled(set, staying, stay)
	}
	return slices.ContainsFunc(staying, func(pod corev1.Pod) bool { return outdated(set, &pod, true) })
}

// rollsNext tells whether the template of a component changes by this very plan.
func (p planner) rollsNext(kind dorisv1.ComponentType, set *appsv1.StatefulSet) bool {
	has, planned := p.ahead.contents[kind]
	if !planned || ptr.Deref(set.Spec.Replicas, 1) == 0 {
		return false
	}
	trial := p
	trial.build, trial.asked = plan.NewBuilder(p.engine, FieldManager), nil
	trial.build.Approve(p.dc.Annotations[meta.AnnotationApprove])
	trial.mustGo, trial.rechecks, trial.later = maps.Clone(p.mustGo), maps.Clone(p.rechecks), map[dorisv1.ComponentType]bool{}
	w := trial.workloadOf(kind, p.ahead.settings, has)
	if w.found || w.revision > p.latest || trial.decide(&w, has.approved || w.secrets.approved) != nil {
		return false
	}
	return w.changes && w.back == nil && w.restart != plan.EffectResizeOrRestart
}
