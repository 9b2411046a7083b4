package doris

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// A set whose claim templates shall be larger is made again, since they never change:
//
//	claims grow ─▶ the set is written down ─▶ it is deleted, its Pods stay ─▶ it is
//	made again, word for word but for the sizes ─▶ the note of it is deleted
//
// What is written down is all there is of the set: its template with what others
// edited in it, the records, which fields are ours. So whatever is cut short, the next
// plan finds the set as it was, or the note from which it comes back.

// againKey is the key of the note in its ConfigMap.
const againKey = "statefulset.json"

// AgainName returns the name of the ConfigMap that holds a StatefulSet while it is
// made again.
func AgainName(cluster string, c dorisv1.ComponentType) string {
	return StatefulSetName(cluster, c) + "-made-again"
}

// again is a set that is made again.
type again struct {
	// Was is the set that goes, and Set the one that comes.
	Was types.UID           `json:"was"`
	Set *appsv1.StatefulSet `json:"set"`
	// Owned are the fields that are ours, as an apply of ours would say them.
	Owned map[string]any `json:"owned,omitempty"`
	// Pods are those that stay.
	Pods []types.UID `json:"pods"`
}

// restoredBy owns what is not ours in a set that was made again.
const restoredBy = FieldManager + "-made-again"

// readAgain reads the note of a set that is made again.
func (w World) readAgain(cluster string, c dorisv1.ComponentType) (a again, found bool) {
	cm := w.OwnMaps[AgainName(cluster, c)]
	if cm == nil || json.Unmarshal([]byte(cm.Data[againKey]), &a) != nil || a.Set == nil {
		return again{}, false
	}
	return a, true
}

// standIns returns the world with the sets that are just being made again, so that
// their Pods count as what they are.
func (w World) standIns(dc *dorisv1.DorisCluster) World {
	for _, c := range rendered {
		name := StatefulSetName(dc.Name, c)
		a, found := w.readAgain(dc.Name, c)
		if !found || w.StatefulSets[name] != nil {
			continue
		}
		sets := map[string]*appsv1.StatefulSet{name: a.Set}
		maps.Copy(sets, w.StatefulSets)
		w.StatefulSets = sets
	}
	return w
}

// makeAgain goes on with sets that are being made again, and tells whether nothing
// else is to be done until that is over.
func (p planner) makeAgain() (busy bool) {
	for _, c := range rendered {
		a, found := p.world.readAgain(p.dc.Name, c)
		live := p.world.StatefulSets[StatefulSetName(p.dc.Name, c)]
		switch {
		case !found || live != nil && live.UID == a.Was && live.DeletionTimestamp == nil:
			// There is nothing to go on with.
		case live == nil:
			p.bringBack(c, a)
			busy = true
		case live.DeletionTimestamp != nil:
			p.waitAgain(live, "its Pods are let go, and it is made again")
			busy = true
		default:
			p.settleAgain(c, a, live)
			busy = true
		}
	}
	return busy
}

// bringBack makes a set that was deleted.
func (p planner) bringBack(c dorisv1.ComponentType, a again) {
	set := a.Set.DeepCopy()
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	p.withPassword(set)
	p.build.Step(plan.Change{
		Object: plan.RefOf(set), To: "created", Cause: plan.CauseUser, Effect: plan.EffectRecreate, Verdict: plan.VerdictApply,
		Reason: meta.ReasonRecreated, Message: "made again with larger claims; the " + pluralOf(c) + " go on running",
	}, plan.Create{Object: set, Manager: restoredBy, Reason: "made again as it was, with larger claims"})
}

// settleAgain sees to a set that was made again until it is as the former one was.
func (p planner) settleAgain(c dorisv1.ComponentType, a again, live *appsv1.StatefulSet) {
	ours, err := p.engine.Owned(live, FieldManager)
	if err == nil && len(ours) == 0 && len(a.Owned) > 0 {
		p.build.Step(plan.Change{
			Object: plan.RefOf(live), Path: "metadata.managedFields", Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
			Reason: meta.ReasonRecreated, Message: "the fields of the former set that were ours are ours again",
		}, plan.Adopt{Object: live, Rendered: &unstructured.Unstructured{Object: a.Owned}, Manager: FieldManager, Reason: "own again what was ours"})
		return
	}
	if live.Status.ObservedGeneration != live.Generation || slices.ContainsFunc(p.world.Pods[string(c)], func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && metav1.GetControllerOf(&pod) == nil
	}) {
		p.waitAgain(live, "the StatefulSet controller takes the Pods back")
		return
	}
	p.delete(copyRef(p.world.OwnMaps[AgainName(p.dc.Name, c)]), "StatefulSet "+live.Name+" is there again")
}

func (p planner) waitAgain(set *appsv1.StatefulSet, message string) {
	p.build.Wait(plan.Wait{On: plan.RefOf(set), Reason: meta.ReasonRecreated, Message: "StatefulSet " + set.Name + " is made again: " + message})
}

// recreates decides whether the set of a component is made again for the sake of
// larger claims, and begins it. Then nothing else is planned for the set.
func (p planner) recreates(w workload, disks []disk) (begun bool) {
	if w.live == nil || w.live.DeletionTimestamp != nil {
		return false
	}
	larger, held := p.larger(w, disks)
	// Consents that other changes of the set used up do not count: a disk grows to a size once.
	approved := len(held) > 0 && p.build.Hold(0, held)
	note := p.world.OwnMaps[AgainName(p.dc.Name, w.kind)]
	if !approved {
		if note != nil && note.DeletionTimestamp == nil {
			p.delete(copyRef(note), "StatefulSet "+w.live.Name+" is not made again")
		}
		return false
	}
	for _, d := range larger {
		p.grow(d)
	}
	for i := range held {
		held[i].Verdict, held[i].Reason, held[i].Message = plan.VerdictApply, meta.ReasonApproved, "a person consented"
	}
	return p.recreate(w, larger, held, note)
}

// recreate carries out what a person consented to: it waits, writes the set down, or
// deletes it. Then nothing else is planned for the set.
func (p planner) recreate(w workload, larger []disk, held []plan.Change, note *corev1.ConfigMap) (begun bool) {
	if why := p.notYet(w, larger); why != "" {
		for _, c := range held {
			c.Verdict, c.Reason, c.Message = plan.VerdictWait, meta.ReasonRecreated, "made again when "+why
			p.build.Note(c)
		}
		p.leave.waits = append(p.leave.waits, plan.Wait{On: plan.RefOf(w.live), Reason: meta.ReasonRecreated, Message: "StatefulSet " + w.live.Name + " is made again when " + why})
		return false
	}
	p.leave.wrote[w.kind] = true
	text := encoded(p.noteOf(w, larger))
	if note == nil || note.Data[againKey] != text {
		p.want(&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: objectMeta(p.dc, AgainName(p.dc.Name, w.kind), ObjectLabels(p.dc.Name, w.kind)),
			Data:       map[string]string{againKey: text},
		}, live(p.world.OwnMaps, AgainName(p.dc.Name, w.kind)), "StatefulSet "+w.live.Name+" as it is, to make it again")
		for _, c := range held {
			c.Verdict, c.Reason, c.Message = plan.VerdictWait, meta.ReasonRecreated, "made again when it is written down"
			p.build.Note(c)
		}
		return true
	}
	p.build.Carry(held, plan.Delete{Object: w.live, Orphan: true, Reason: "made again with larger claims; its Pods go on running"})
	return true
}

// larger are the disks whose claims are to be larger than those that the set makes,
// and the changes that this takes.
func (p planner) larger(w workload, disks []disk) (larger []disk, held []plan.Change) {
	for _, d := range disks {
		c := plan.Change{
			Object: plan.RefOf(w.live), Path: fmt.Sprintf("spec.volumeClaimTemplates[name=%q].%s", d.Name, claimSize),
			From: d.template.String(), To: d.size.String(), Cause: plan.CauseUser, Effect: plan.EffectRecreate,
		}
		switch cmp := d.size.Cmp(d.template); {
		case d.operated() || cmp == 0:
		case cmp < 0:
			c.Verdict, c.Reason, c.Message = plan.VerdictRefuse, meta.ReasonUnsafeChange, "no disk becomes smaller; it stays as it is"
			p.build.Note(c)
		default:
			c.Reason = meta.ReasonConsentNeeded
			c.Message = "the claims that exist grow, and the StatefulSet is deleted and made again, since its claim templates cannot change; the Pods go on running"
			larger, held = append(larger, d), append(held, c)
		}
	}
	return larger, held
}

// notYet tells what a set that is to be made again waits for.
func (p planner) notYet(w workload, larger []disk) string {
	for _, d := range larger {
		if !d.sized() {
			return "every claim of " + d.Name + " has asked for " + d.size.String()
		}
	}
	pods := p.world.Pods[string(w.kind)]
	waiting := func(pod corev1.Pod) bool { return !ready(&pod) }
	switch {
	case unseen(w.live):
		return "the StatefulSet controller has seen its newest template"
	case len(leaveRecords(w.live, pods)) > 0:
		return "no member leaves"
	case len(pods) != int(ptr.Deref(w.live.Spec.Replicas, 1)):
		return fmt.Sprintf("all its Pods are there: %d of %d are", len(pods), ptr.Deref(w.live.Spec.Replicas, 1))
	case slices.ContainsFunc(pods, waiting):
		return pods[slices.IndexFunc(pods, waiting)].Name + " is ready"
	case p.passwordOf(w.live) != "" && p.passwordOf(w.live) != p.password():
		return "the password in its template is that of the spec"
	}
	return ""
}

// noteOf writes down a set as it is made again.
func (p planner) noteOf(w workload, larger []disk) again {
	set := w.live.DeepCopy()
	set.ObjectMeta = metav1.ObjectMeta{
		Name: set.Name, Namespace: set.Namespace, Labels: set.Labels, Annotations: set.Annotations,
		OwnerReferences: set.OwnerReferences, Finalizers: set.Finalizers,
	}
	set.Status = appsv1.StatefulSetStatus{}
	// No consent is counted as used: what was consented to cannot be wanted again, since no
	// disk becomes smaller, and other changes of the set may be approved at the same time.
	for i := range set.Spec.VolumeClaimTemplates {
		t := &set.Spec.VolumeClaimTemplates[i]
		if j := slices.IndexFunc(larger, func(d disk) bool { return d.Name == t.Name }); j >= 0 {
			t.Spec.Resources.Requests = resized(t.Spec.Resources.Requests, larger[j].size)
		}
		t.Status = corev1.PersistentVolumeClaimStatus{}
	}
	hidePassword(set)
	a := again{Was: w.live.UID, Set: set}
	if owned, err := p.engine.Owned(w.live, FieldManager); err == nil && len(owned) > 0 {
		owned["apiVersion"], owned["kind"] = "apps/v1", "StatefulSet"
		owned["metadata"] = named(owned["metadata"], w.live.Namespace, w.live.Name)
		withoutPasswords(owned)
		a.Owned = owned
	}
	for _, pod := range p.world.Pods[string(w.kind)] {
		a.Pods = append(a.Pods, pod.UID)
	}
	return a
}

func resized(requests corev1.ResourceList, size resource.Quantity) corev1.ResourceList {
	out := requests.DeepCopy()
	out[corev1.ResourceStorage] = size
	return out
}

func named(metadata any, namespace, name string) map[string]any {
	fields, ok := metadata.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	fields["namespace"], fields["name"] = namespace, name
	return fields
}

// The password that revision 0 puts into the template in plain text is written down
// nowhere else: it comes back from the spec.

func (p planner) password() string {
	if p.dc.Spec.AdminUser == nil {
		return ""
	}
	return p.dc.Spec.AdminUser.Password
}

func (p planner) passwordOf(set *appsv1.StatefulSet) string {
	password := ""
	eachPassword(set, func(e *corev1.EnvVar) { password = e.Value })
	return password
}

func (p planner) withPassword(set *appsv1.StatefulSet) {
	eachPassword(set, func(e *corev1.EnvVar) {
		if e.Value == passwordHere {
			e.Value = p.password()
		}
	})
}

// passwordHere stands where a password is left out.
const passwordHere = "(of the spec)" //nolint:gosec // it is none

func hidePassword(set *appsv1.StatefulSet) {
	eachPassword(set, func(e *corev1.EnvVar) { e.Value = passwordHere })
}

// eachPassword calls do with every variable of a template that holds a password.
func eachPassword(set *appsv1.StatefulSet, do func(*corev1.EnvVar)) {
	for _, list := range [][]corev1.Container{set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers} {
		for i := range list {
			for j := range list[i].Env {
				if e := &list[i].Env[j]; e.Name == envPassword && e.Value != "" {
					do(e)
				}
			}
		}
	}
}

// withoutPasswords leaves passwords out of fields: which fields there are counts, not
// what they say.
func withoutPasswords(tree any) {
	switch t := tree.(type) {
	case map[string]any:
		if _, holds := t["value"]; holds && t["name"] == envPassword {
			t["value"] = passwordHere
		}
		for _, v := range t {
			withoutPasswords(v)
		}
	case []any:
		for _, v := range t {
			withoutPasswords(v)
		}
	}
}
