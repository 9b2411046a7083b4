package doris

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// takeOver notes on a set that another operator made what it is rendered from,
// and lets no Pod of it go any more unless we say so. Its template, its number of
// replicas and everything else stay as they are.
func (p planner) takeOver(w workload) {
	from := string(w.live.Spec.UpdateStrategy.Type)
	annotations := map[string]any{meta.AnnotationRevision: strconv.Itoa(w.revision), meta.AnnotationAccepted: w.recorded.String()}
	if before, _ := inStatus(p.dc, w.live.Name); before != nil {
		// It was handed back, or made by somebody else in the place of ours: with one
		// consent more, what the status still says of that does not count.
		annotations[meta.AnnotationConsents] = strconv.Itoa(plan.ConsentsIn(before[meta.AnnotationConsents]) + 1)
	}
	p.build.Carry([]plan.Change{{
		Object: plan.RefOf(w.live), Path: "spec.updateStrategy", From: from, To: string(appsv1.OnDeleteStatefulSetStrategyType),
		Cause: plan.CauseRevision, Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: meta.ReasonTakenOver,
		Message: "made by another operator and kept as it is; from now on Pods are replaced one at a time, through the Eviction API",
	}}, plan.Patch{
		Object: w.live, Manager: FieldManager, Reason: "take over as it is",
		Fields: map[string]any{
			"metadata": map[string]any{"annotations": annotations},
			"spec":     map[string]any{"updateStrategy": onDelete()},
		},
	})
}

// asItIs plans for a set whose template was never rendered by us and is not
// changed now: its differences are named, and only the number of replicas may be
// another one.
func (p planner) asItIs(w workload, target *appsv1.StatefulSet, replicas int32) error {
	fields, err := p.engine.Compare(target, withClaims(w.live, target), FieldManager)
	if err != nil {
		return err
	}
	var held []plan.Change
	for _, f := range fields {
		if !plan.InTemplate(f.Path) || f.Path == templateStamp {
			continue
		}
		held = append(held, plan.Change{
			Object: plan.RefOf(target), Path: f.Path, From: f.From, To: f.To,
			Cause: plan.CauseRevision, Effect: w.restart, Reason: meta.ReasonTakenOver,
			Message: "it was found like this; it stays until a person accepts",
		})
	}
	if p.build.Hold(plan.Consents(w.live), held) {
		w.changes, w.approved = true, true
		w.mark(target)
		return p.apply(w, target, func(string) plan.Cause { return plan.CauseUser }, replicas)
	}
	p.keepStrategy(w)
	if has := ptr.Deref(w.live.Spec.Replicas, 1); replicas != has {
		p.build.Step(plan.Change{
			Object: plan.RefOf(target), Path: replicasPath, From: strconv.Itoa(int(has)), To: strconv.Itoa(int(replicas)),
			Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
		}, plan.Patch{
			Object: w.live, Manager: FieldManager, Reason: "scale to " + strconv.Itoa(int(replicas)),
			Fields: map[string]any{"spec": map[string]any{"replicas": int64(replicas)}},
		})
	}
	p.retain(w, target.Spec.PersistentVolumeClaimRetentionPolicy)
	return nil
}

// retain has a set that is as it was found do with claims as the spec asks, which replaces
// no Pod. Where the spec says nothing it stays as somebody else has it.
func (p planner) retain(w workload, asked *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy) {
	const path = "spec.persistentVolumeClaimRetentionPolicy"
	has := ptr.Deref(w.live.Spec.PersistentVolumeClaimRetentionPolicy, *retention(&dorisv1.ClaimRetention{}))
	if asked == nil || has == *asked {
		return
	}
	text := func(r appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy) string {
		return fmt.Sprintf("whenScaled %s, whenDeleted %s", r.WhenScaled, r.WhenDeleted)
	}
	p.build.Step(plan.Change{
		Object: plan.RefOf(w.live), Path: path, From: text(has), To: text(*asked), Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
	}, plan.Patch{
		Object: w.live, Manager: FieldManager, Reason: "what becomes of claims: " + text(*asked),
		Fields: map[string]any{"spec": map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{
			"whenScaled": string(asked.WhenScaled), "whenDeleted": string(asked.WhenDeleted),
		}}},
	})
}

// keepStrategy puts the update strategy back that the takeover had set: with
// another one somebody else would replace Pods.
func (p planner) keepStrategy(w workload) {
	if w.live.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return
	}
	p.build.Step(plan.Change{
		Object: plan.RefOf(w.live), Path: "spec.updateStrategy", From: string(w.live.Spec.UpdateStrategy.Type), To: string(appsv1.OnDeleteStatefulSetStrategyType),
		Cause: plan.CauseDrift, Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: "Restored", Message: "somebody else edited an owned field",
	}, plan.Patch{
		Object: w.live, Manager: FieldManager, Reason: "update spec.updateStrategy",
		Fields: map[string]any{"spec": map[string]any{"updateStrategy": onDelete()}},
	})
}

// onDelete is the update strategy for a merge patch.
func onDelete() map[string]any {
	return map[string]any{
		"type": string(appsv1.OnDeleteStatefulSetStrategyType),
		// Its former owner may be an updating client: an apply could not take
		// the field away.
		"rollingUpdate": nil,
	}
}

// templateStamp is the path of our digest in a template.
const templateStamp = `spec.template.metadata.annotations["` + meta.AnnotationTemplate + `"]`

// withClaims returns the live set with what an apply could not change as it is
// wanted, so that it is not compared.
func withClaims(live, wanted *appsv1.StatefulSet) *appsv1.StatefulSet {
	out := live.DeepCopy()
	out.Spec.VolumeClaimTemplates = wanted.Spec.VolumeClaimTemplates
	out.Spec.Selector, out.Spec.ServiceName, out.Spec.PodManagementPolicy = wanted.Spec.Selector, wanted.Spec.ServiceName, wanted.Spec.PodManagementPolicy
	return out
}

// adopts plans the move of the fields of a template to us, before it is first
// applied: an apply could not take away what an updating client wrote.
func (p planner) adopts(w workload, target *appsv1.StatefulSet) (bool, error) {
	if !w.untouched || w.revision != 0 {
		return false, nil
	}
	base := p.rendered(w, w.recorded, w.revision)
	compared, err := p.engine.Compare(target, withClaims(w.live, target), FieldManager)
	if err != nil {
		return false, err
	}
	except := slices.DeleteFunc(compared, func(f diff.Field) bool { return touches(w.edited, f.Path) || touches(w.offered, f.Path) })
	_, needed, err := p.engine.Adoption(base, w.live, FieldManager, "spec.template", except)
	if err != nil || !needed {
		return false, err
	}
	p.build.Carry([]plan.Change{{
		Object: plan.RefOf(w.live), Path: "spec.template", Cause: plan.CauseRevision, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
		Reason: meta.ReasonTakenOver, Message: "the fields of the template that are to change belong to the operator from now on",
	}}, plan.Adopt{
		Object: w.live, Rendered: base, Below: "spec.template", Except: except, Manager: FieldManager,
		Reason: "take over the fields of the Pod template",
	})
	return true, nil
}

// additions names what somebody else added to a template. It is not ours, so it
// is not taken away; new Pods have it.
func (p planner) additions(w workload, target *appsv1.StatefulSet) error {
	if w.live == nil || w.found {
		return nil
	}
	rendered, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&target.Spec.Template)
	if err != nil {
		return fmt.Errorf("converting the template of %s: %w", target.Name, err)
	}
	found, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&w.live.Spec.Template)
	if err != nil {
		return fmt.Errorf("converting the template of %s: %w", w.live.Name, err)
	}
	paths, err := p.engine.ExtraFields(rendered, found)
	if err != nil {
		return err
	}
	paths = append(paths, marks("labels", target.Spec.Template.Labels, w.live.Spec.Template.Labels)...)
	paths = append(paths, marks("annotations", target.Spec.Template.Annotations, w.live.Spec.Template.Annotations)...)
	for _, path := range paths {
		if touches(w.edited, path) {
			continue // taken away by an edit that is on its way
		}
		p.build.Note(plan.Change{
			Object: plan.RefOf(target), Path: path, Cause: plan.CauseDrift, Effect: plan.EffectNone, Verdict: plan.VerdictRefuse,
			Reason: reasonAddedElsewhere, Message: "somebody else added this to the Pod template; it is not the operator's and stays, and Pods made from now on have it",
		})
	}
	return nil
}

// marks lists the labels or annotations of a live template that are not rendered,
// nor those of a restart or of ours.
func marks(kind string, rendered, live map[string]string) []string {
	var paths []string
	for _, key := range sortedKeys(live) {
		if _, known := rendered[key]; known || key == restartKubectl || strings.HasPrefix(key, meta.Prefix) {
			continue
		}
		paths = append(paths, fmt.Sprintf("spec.template.metadata.%s[%q]", kind, key))
	}
	return paths
}

// reasonAddedElsewhere says that a field of a template is somebody else's.
const reasonAddedElsewhere = "AddedElsewhere"

// remaining plans for the Pods of a set that was taken over in the middle of a
// roll: whether they are brought to the newest template is for a person to say.
func (p planner) remaining(w workload) {
	if !w.untouched || w.found || unseen(w.live) || w.live.Annotations[meta.AnnotationRoll] == w.live.Status.UpdateRevision {
		return
	}
	var held []plan.Change
	for i := range p.world.Pods[string(w.kind)] {
		pod := &p.world.Pods[string(w.kind)][i]
		if !behind(w.live, pod) || !madeFrom(pod, "") || restartAsked(w.live, pod, w.recorded.Restart) {
			continue
		}
		held = append(held, plan.Change{
			Object: plan.RefOf(pod), From: pod.Labels[appsv1.ControllerRevisionHashLabelKey], To: w.live.Status.UpdateRevision,
			Cause: plan.CauseRevision, Effect: w.restart, Reason: meta.ReasonTakenOver,
			Message: "it was found on an older template, in the middle of a roll; it stays until a person accepts. Replaced for another reason, it would follow the template",
		})
	}
	if !p.build.Hold(plan.Consents(w.live), held) {
		return
	}
	p.build.Carry([]plan.Change{{
		Object: plan.RefOf(w.live), Path: `metadata.annotations["` + meta.AnnotationRoll + `"]`, To: w.live.Status.UpdateRevision,
		Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: meta.ReasonApproved, Message: "the remaining Pods follow the template",
	}}, plan.Patch{
		Object: w.live, Manager: FieldManager, Reason: "let the remaining Pods follow the template",
		Fields: map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			meta.AnnotationRoll:     w.live.Status.UpdateRevision,
			meta.AnnotationConsents: strconv.Itoa(plan.Consents(w.live) + 1),
		}}},
	})
}

// asFound lists the fields of an object that differed when it was taken over, in
// the annotation that remembers them.
func asFound(live annotated) []string {
	var paths []string
	if err := json.Unmarshal([]byte(live.GetAnnotations()[meta.AnnotationAsFound]), &paths); err != nil {
		return nil
	}
	return paths
}

type annotated interface{ GetAnnotations() map[string]string }
