package doris

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// An edit of nothing but CPU and memory reaches running containers in place, where the
// nodes can do that and the process makes something of it: the template gets it, so that
// new Pods have it, and each Pod is resized. When its node has carried that out, the Pod
// gets the name and the digest of the new template, and is as current as one that was
// made from it. What a node or the API server refuses, or puts off, is a replacement
// of the Pod as ever.

// resizing is which Pods of a set need no more than a resize, in the annotation
// AnnotationResize of the set.
type resizing struct {
	// To is the digest of the template that they are brought to.
	To string `json:"to"`
	// From are the templates that differ in nothing else, and their revisions.
	From map[string]string `json:"from"`
}

func readResizing(set *appsv1.StatefulSet) (r resizing, ok bool) {
	if set == nil || json.Unmarshal([]byte(set.Annotations[meta.AnnotationResize]), &r) != nil {
		return resizing{}, false
	}
	return r, r.To != "" && r.To == stampOf(set)
}

// takes tells what a process makes of another size of its container; ok is false when
// only a start brings it about.
func takes(kind dorisv1.ComponentType, what, resource string) (how string, ok bool) {
	java := kind == dorisv1.ComponentFE || kind == dorisv1.ComponentBroker
	switch {
	case resource != string(corev1.ResourceCPU) && resource != string(corev1.ResourceMemory):
		return "", false
	case what == "requests":
		return "where the Pod finds room; the process does not ask", true
	case resource == string(corev1.ResourceCPU) && java:
		return "the container sees it; the process has sized its pools when it started", true
	case resource == string(corev1.ResourceCPU):
		return "", false // backends count their cores when they start
	case java:
		return "the container sees it, the process does not: the heap is what JAVA_OPTS said when it started", true
	}
	return "the process asks again how much memory there is", true
}

// sizeField reads a path of a template as a size of a container.
func sizeField(path string) (container, what, resource string, ok bool) {
	rest, init := strings.CutPrefix(path, "spec.template.spec.initContainers[name=")
	if !init {
		var main bool
		if rest, main = strings.CutPrefix(path, "spec.template.spec.containers[name="); !main {
			return "", "", "", false
		}
	}
	name, rest, cut := strings.Cut(rest, "].resources.")
	if !cut {
		return "", "", "", false
	}
	what, resource, cut = strings.Cut(rest, ".")
	if !cut { // ["cpu"]
		what, resource, cut = strings.Cut(rest, "[")
		resource = strings.TrimSuffix(resource, "]")
	}
	if init {
		return "", what, unquote(resource), cut
	}
	return unquote(name), what, unquote(resource), cut
}

// resizable tells whether the edits of a template reach its Pods by a resize, and what
// the process makes of it.
func (p planner) resizable(w workload) (how []string, ok bool) {
	if w.live == nil || w.found || w.untouched || unseen(w.live) || w.restart != plan.EffectRestartPod {
		return nil, false
	}
	for _, f := range w.edited {
		says, ok := resizes(w.kind, f)
		if !ok {
			return nil, false
		}
		if says != "" && !slices.Contains(how, says) {
			how = append(how, says)
		}
	}
	to := p.rendered(w, w.now, w.revision)
	if len(how) == 0 || qosOf(&w.live.Spec.Template.Spec) != qosOf(&to.Spec.Template.Spec) {
		return nil, false
	}
	silent := slices.ContainsFunc(p.world.Pods[string(w.kind)], func(pod corev1.Pod) bool { return sizesOf(&pod, string(w.kind)) == nil })
	return how, !silent
}

// resizes tells whether an edit of a template reaches its Pods by a resize, and what the
// process makes of it; nothing of that of an init container, which has run.
func resizes(kind dorisv1.ComponentType, f diff.Field) (says string, ok bool) {
	container, what, resource, size := sizeField(f.Path)
	switch {
	case !size || f.To == "" || f.Order:
		return "", false
	case container == "":
		return "", true
	case container != string(kind):
		return "", false
	}
	says, ok = takes(kind, what, resource)
	return resource + " " + what + ": " + says, ok
}

// sizesOf are the sizes that a node says a container has: only nodes that can resize
// say so.
func sizesOf(pod *corev1.Pod, container string) *corev1.ResourceRequirements {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container {
			return c.Resources
		}
	}
	return nil
}

// qosOf is the class of service of a Pod, which a resize may not change.
func qosOf(pod *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, none := true, true
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			r := list[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, limited := r.Limits[name]
				request, requested := r.Requests[name]
				none = none && limit.IsZero() && request.IsZero()
				guaranteed = guaranteed && limited && (!requested || request.Cmp(limit) == 0)
			}
		}
	}
	switch {
	case none:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// rememberResize notes on a set which of its Pods need no more than a resize.
func (p planner) rememberResize(w workload, target *appsv1.StatefulSet) {
	was, known := readResizing(w.live)
	switch {
	case w.live == nil || w.back != nil:
	case w.changes && w.restart == plan.EffectResizeOrRestart:
		r := resizing{To: stampOf(target), From: maps.Clone(was.From)}
		if !known || r.From == nil {
			r.From = map[string]string{}
		}
		r.From[stampOf(w.live)] = w.live.Status.UpdateRevision
		delete(r.From, r.To)
		target.Annotations[meta.AnnotationResize] = encoded(r)
	case known && !w.changes && slices.ContainsFunc(p.world.Pods[string(w.kind)], func(pod corev1.Pod) bool { return resizedTo(w.live, &pod) }):
		target.Annotations[meta.AnnotationResize] = w.live.Annotations[meta.AnnotationResize]
	}
}

// resizedTo tells whether a Pod differs from the template of its set in nothing but
// sizes.
func resizedTo(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	r, known := readResizing(set)
	revision := r.From[pod.Annotations[meta.AnnotationTemplate]]
	return known && revision != "" && revision == pod.Labels[appsv1.ControllerRevisionHashLabelKey] && pod.DeletionTimestamp == nil
}

// resizeNext goes on with Pods that are resized, one at a time, and tells whether there
// was one. Those that cannot be are left to the roll.
func (p planner) resizeNext(r *rolling) (busy bool) {
	for _, name := range r.outdated() {
		pod, set, kind := r.pods[name], r.sets[name], r.kinds[name]
		wanted := sizesIn(set, string(kind))
		if !resizedTo(set, pod) || p.mustGo[name] || resizeRefused(pod, wanted) {
			continue
		}
		has := sizesOf(pod, string(kind))
		switch {
		case wanted == nil || has == nil:
			continue
		case !sameSizes(specSizes(pod, string(kind)), wanted):
			p.resize(pod, kind, wanted)
		case !sameSizes(has, wanted) || conditionOf(pod, corev1.PodResizeInProgress).Status == corev1.ConditionTrue:
			p.build.Note(plan.Change{
				Object: plan.RefOf(pod), Path: "status.containerStatuses", Cause: plan.CauseUser, Effect: plan.EffectResizeOrRestart, Verdict: plan.VerdictWait,
				Reason: meta.ReasonResizing, Message: "its node resizes it",
			})
		default:
			p.upToDate(pod, set)
		}
		p.build.Wait(plan.Wait{On: plan.RefOf(set), Reason: meta.ReasonResizing, Message: "resizing Pods in place: " + name})
		return true
	}
	return false
}

func (p planner) resize(pod *corev1.Pod, kind dorisv1.ComponentType, wanted *corev1.ResourceRequirements) {
	fields := sizeFields(wanted)
	p.build.Step(plan.Change{
		Object: plan.RefOf(pod), Path: fmt.Sprintf("spec.containers[name=%q].resources", kind), From: encoded(specSizes(pod, string(kind))), To: encoded(fields),
		Cause: plan.CauseUser, Effect: plan.EffectResizeOrRestart, Verdict: plan.VerdictApply, Reason: meta.ReasonResizing, Message: "resized in place; replaced if its node cannot do it",
	}, plan.Patch{
		Object: pod, Manager: FieldManager, Subresource: "resize", Reason: "resize in place",
		Fields: map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": string(kind), "resources": fields}}}},
		Else:   map[string]any{"metadata": map[string]any{"annotations": map[string]any{meta.AnnotationResizeRefused: encoded(fields)}}},
	})
}

// sizeFields are sizes as a patch says them.
func sizeFields(wanted *corev1.ResourceRequirements) map[string]any {
	fields := map[string]any{}
	for what, list := range map[string]corev1.ResourceList{"requests": wanted.Requests, "limits": wanted.Limits} {
		sizes := map[string]any{}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if size, set := list[name]; set {
				sizes[string(name)] = size.String()
			}
		}
		if len(sizes) > 0 {
			fields[what] = sizes
		}
	}
	return fields
}

// upToDate has a Pod that was resized counted as made from the newest template.
func (p planner) upToDate(pod *corev1.Pod, set *appsv1.StatefulSet) {
	p.build.Step(plan.Change{
		Object: plan.RefOf(pod), Path: "metadata", Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
		Reason: meta.ReasonResizing, Message: "it is as the newest template says",
	}, plan.Patch{
		Object: pod, Manager: FieldManager, Reason: "resized: it is as the newest template says",
		Fields: map[string]any{"metadata": map[string]any{
			"labels":      map[string]any{appsv1.ControllerRevisionHashLabelKey: set.Status.UpdateRevision},
			"annotations": map[string]any{meta.AnnotationTemplate: stampOf(set)},
		}},
	})
}

// resizeRefused tells whether the API server or the node of a Pod does not let it have
// the size that is wanted now. What was refused of another one says nothing about it: the
// Pod keeps the annotation of that until it is replaced or refused again.
func resizeRefused(pod *corev1.Pod, wanted *corev1.ResourceRequirements) bool {
	refused := pod.Annotations[meta.AnnotationResizeRefused]
	if refused != "" && wanted != nil && refused == encoded(sizeFields(wanted)) {
		return true
	}
	pending := conditionOf(pod, corev1.PodResizePending)
	return pending.Status == corev1.ConditionTrue && (pending.Reason == corev1.PodReasonInfeasible || pending.Reason == corev1.PodReasonDeferred)
}

func sizesIn(set *appsv1.StatefulSet, container string) *corev1.ResourceRequirements {
	return sizes(set.Spec.Template.Spec.Containers, container)
}

func specSizes(pod *corev1.Pod, container string) *corev1.ResourceRequirements {
	return sizes(pod.Spec.Containers, container)
}

func sizes(list []corev1.Container, container string) *corev1.ResourceRequirements {
	if c := containerOf(list, container); c != nil {
		return &c.Resources
	}
	return nil
}

// sameSizes compares what a resize can change. A request that is left out is the limit.
func sameSizes(a, b *corev1.ResourceRequirements) bool {
	if a == nil || b == nil {
		return false
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if !equality.Semantic.DeepEqual(a.Limits[name], b.Limits[name]) || !equality.Semantic.DeepEqual(requested(a, name), requested(b, name)) {
			return false
		}
	}
	return true
}

func requested(r *corev1.ResourceRequirements, name corev1.ResourceName) any {
	if request, set := r.Requests[name]; set {
		return request
	}
	return r.Limits[name]
}

// sizesSaid says of edits that reach Pods by a resize what the process makes of them.
func (w workload) sizesSaid() string {
	if w.restart != plan.EffectResizeOrRestart {
		return ""
	}
	return "resized in place; replaced if that is refused. " + strings.Join(w.sizes, "; ")
}
