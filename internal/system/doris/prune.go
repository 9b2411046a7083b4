package doris

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Copies of ConfigMaps that nothing names any more are taken away, and so are the
// ControllerRevisions of templates that no Pod has: under the update strategy
// OnDelete the StatefulSet controller keeps the one that a set began with for ever,
// with all that it contains. Both only while nothing is on its way: every Pod of
// the cluster is there, ready and on the newest template.

// atRest tells whether every Pod of every set is there, ready and on the newest
// template.
func atRest(w World) bool {
	pods := map[string][]*corev1.Pod{}
	for _, list := range w.Pods {
		for i := range list {
			if owner := metav1.GetControllerOf(&list[i]); owner != nil {
				pods[owner.Name] = append(pods[owner.Name], &list[i])
			}
		}
	}
	for name, set := range w.StatefulSets {
		if !pinned(set) || unseen(set) || set.Annotations[meta.AnnotationFailed] != "" || len(pods[name]) != int(ptr.Deref(set.Spec.Replicas, 1)) {
			return false
		}
		if slices.ContainsFunc(pods[name], func(p *corev1.Pod) bool { return !ready(p) || behind(set, p) }) {
			return false
		}
	}
	return len(w.StatefulSets) > 0
}

// unnamed lists the copies that no record, template or Pod names, sorted.
func unnamed(dc *dorisv1.DorisCluster, w World) []string {
	named := map[string]bool{}
	note := func(content map[string]string) {
		for _, copied := range content {
			named[copied] = true
		}
	}
	for _, pin := range dc.Status.Workloads {
		note(pin.Content)
	}
	var texts []string
	for _, set := range w.StatefulSets {
		recorded, _ := readAccepted(set)
		good, _ := readLastGood(set)
		for _, a := range []accepted{recorded, good.Accepted} {
			note(a.Content)
			note(a.Live)
		}
		texts = append(texts, encoded(set.Spec.Template.Spec))
	}
	var candidates []string
	for name, cm := range w.OwnMaps {
		if cm.Annotations[labelCopy] != "" && cm.DeletionTimestamp == nil && !named[name] {
			candidates = append(candidates, name)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	for _, pods := range w.Pods {
		for i := range pods {
			texts = append(texts, encoded(pods[i].Spec), pods[i].Annotations[meta.AnnotationLive])
		}
	}
	slices.Sort(candidates)
	return slices.DeleteFunc(candidates, func(name string) bool { return namedIn(texts, name) })
}

// namedIn tells whether one of the texts, each JSON, has a name as a value.
func namedIn(texts []string, name string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, strconv.Quote(name)) })
}

// observeRevisions asks for the ControllerRevisions of the sets: when a roll has
// just ended, or a copy may be one that nothing names. An account that may not ask
// knows of none.
func observeRevisions(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster, w *World) error {
	if !atRest(*w) {
		return nil
	}
	rolled := slices.ContainsFunc(slices.Collect(maps.Values(w.StatefulSets)), func(set *appsv1.StatefulSet) bool {
		return set.Annotations[meta.AnnotationLastGood] != ""
	})
	if !rolled && len(unnamed(dc, *w)) == 0 {
		return nil
	}
	revisions := map[string][]appsv1.ControllerRevision{}
	for _, name := range sortedKeys(w.StatefulSets) {
		list, err := r.Revisions(ctx, w.StatefulSets[name])
		if apierrors.IsForbidden(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the revisions of StatefulSet %q: %w", name, err)
		}
		revisions[name] = list
	}
	w.Revisions = revisions
	return nil
}

// prune plans the deletion of what nothing names any more.
func (p planner) prune(contents map[dorisv1.ComponentType]content) {
	if p.world.Revisions == nil {
		return
	}
	wanted := map[string]bool{}
	for _, has := range contents {
		for _, names := range []map[string]string{has.copies, has.live} {
			for _, name := range names {
				wanted[name] = true
			}
		}
	}
	var texts []string
	for _, name := range sortedKeys(p.world.Revisions) {
		for i := range p.world.Revisions[name] {
			revision := &p.world.Revisions[name][i]
			if revision.Name == p.world.StatefulSets[name].Status.UpdateRevision {
				texts = append(texts, string(revision.Data.Raw))
				continue
			}
			p.build.Step(plan.Change{
				Object: plan.Ref{Kind: "ControllerRevision", Namespace: p.dc.Namespace, Name: revision.Name}, From: "a template of " + name, Cause: plan.CauseUser,
				Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: reasonUnused, Message: "no Pod has this template, and the roll is over",
			}, plan.Delete{Object: revisionRef(revision), Unwatched: true, Reason: "no Pod has this template any more"})
		}
	}
	for _, name := range unnamed(p.dc, p.world) {
		cm := p.world.OwnMaps[name]
		if wanted[name] || namedIn(texts, name) {
			continue
		}
		p.build.Step(plan.Change{
			Object: plan.RefOf(copyRef(cm)), From: "a copy of ConfigMap " + cm.Annotations[labelCopy], Cause: plan.CauseUser,
			Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: reasonUnused, Message: "no Pod, template or record names it",
		}, plan.Delete{Object: copyRef(cm), Reason: "no Pod mounts this content any more"})
	}
}

// reasonUnused says that nothing names an object any more.
const reasonUnused = "Unused"

func revisionRef(revision *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	out := &appsv1.ControllerRevision{ObjectMeta: revision.ObjectMeta}
	out.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
	return out
}

func copyRef(cm *corev1.ConfigMap) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: cm.ObjectMeta}
}
