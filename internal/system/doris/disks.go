package doris

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// The StatefulSet controller makes the claim of each Pod from a template whose size
// never changes. A larger size in the spec reaches the claims that exist by patches:
// of volumes with the provisioner Operator at once, of others when a person accepts
// that their set is made again with a larger template (recreate.go). No claim is ever
// made smaller, and no Pod is replaced for the sake of a disk.

// disk is a volume of a component with the claims of its Pods.
type disk struct {
	placedVolume
	// template is the size of the claims that the set makes, and size that which the
	// spec asks for.
	template, size resource.Quantity
	claims         []*corev1.PersistentVolumeClaim
}

// disks are the volumes of a component that its set makes claims for.
func (p planner) disks(w workload) []disk {
	if w.live == nil {
		return nil
	}
	templates := map[string]resource.Quantity{}
	for _, t := range w.live.Spec.VolumeClaimTemplates {
		templates[t.Name] = storageOf(t.Spec.Resources.Requests)
	}
	var out []disk
	for _, c := range components(p.dc, Inputs{}, w.now.settings(w.kind)) {
		if c.kind != w.kind {
			continue
		}
		for _, pv := range c.persistentVolumes() {
			template, made := templates[pv.Name]
			if !made {
				continue
			}
			d := disk{placedVolume: pv, template: template, size: storageOf(pv.PersistentVolumeClaimSpec.Resources.Requests)}
			for n := range int(ptr.Deref(w.live.Spec.Replicas, 1)) {
				if claim := p.world.OwnClaims[pv.Name+"-"+w.live.Name+"-"+strconv.Itoa(n)]; claim != nil && claim.DeletionTimestamp == nil {
					d.claims = append(d.claims, claim)
				}
			}
			out = append(out, d)
		}
	}
	return out
}

func storageOf(list corev1.ResourceList) resource.Quantity { return list[corev1.ResourceStorage] }

func (d disk) operated() bool { return maker(&d.PersistentVolume) == dorisv1.PVCProvisionerOperator }

// sized tells whether every claim that exists has asked for the size of the spec.
func (d disk) sized() bool {
	for _, claim := range d.claims {
		if asked := storageOf(claim.Spec.Resources.Requests); asked.Cmp(d.size) < 0 {
			return false
		}
	}
	return true
}

// growDisks lets the claims that the operator looks after follow the spec, and says
// how far those are that grow.
func (p planner) growDisks(disks []disk) {
	for _, d := range disks {
		if d.operated() {
			p.grow(d)
			p.annotate(d)
		}
		p.follow(d)
	}
}

// grow asks for the larger size in every claim of a disk that is smaller.
func (p planner) grow(d disk) {
	for _, claim := range d.claims {
		asked := storageOf(claim.Spec.Resources.Requests)
		if asked.Cmp(d.size) >= 0 {
			continue
		}
		c := plan.Change{
			Object: claimRef(claim), Path: claimSize, From: asked.String(), To: d.size.String(), Cause: plan.CauseUser,
			Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: meta.ReasonDiskGrowing, Message: "the disk grows while the Pod runs",
		}
		if claim.Status.Phase != corev1.ClaimBound { // the API server lets only bound ones grow
			c.Verdict, c.Message = plan.VerdictWait, "it grows when it is bound to a volume"
			p.build.Note(c)
			p.leave.waits = append(p.leave.waits, plan.Wait{On: c.Object, Reason: meta.ReasonDiskGrowing, Message: claim.Name + " is to become " + c.To + ": " + c.Message})
			continue
		}
		p.build.Step(c, plan.Patch{
			Object: claim, Manager: FieldManager, Reason: "grow from " + c.From + " to " + c.To, Apart: true,
			Fields: map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{string(corev1.ResourceStorage): c.To}}}},
		})
	}
}

// claimSize is the path of the size that a claim asks for.
const claimSize = "spec.resources.requests.storage"

// annotate gives the claims of a disk the annotations that the spec has for them.
func (p planner) annotate(d disk) {
	for _, claim := range d.claims {
		wanted := &corev1.PersistentVolumeClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: claim.Namespace, Annotations: d.Annotations},
		}
		p.build.Want(plan.Want{Rendered: wanted, Live: claim, Cause: p.causeByOwner(claim), Exact: true, Reason: "annotations of the disk"})
	}
}

// follow says of claims that grow how far they are.
func (p planner) follow(d disk) {
	for _, claim := range d.claims {
		asked, has := storageOf(claim.Spec.Resources.Requests), storageOf(claim.Status.Capacity)
		if claim.Status.Phase != corev1.ClaimBound || has.IsZero() || has.Cmp(asked) >= 0 {
			continue
		}
		state, failed := growth(claim)
		wait := plan.Wait{
			On: claimRef(claim), Reason: meta.ReasonDiskGrowing, Person: failed,
			Message: fmt.Sprintf("%s grows from %s to %s: %s", claim.Name, has.String(), asked.String(), state),
		}
		if failed {
			wait.Reason = meta.ReasonDiskNotGrown
			wait.Message = fmt.Sprintf("%s has %s and asks for %s: %s", claim.Name, has.String(), asked.String(), state)
		}
		p.build.Note(plan.Change{
			Object: wait.On, Path: "status.capacity.storage", From: has.String(), To: asked.String(), Cause: plan.CauseUser,
			Effect: plan.EffectNone, Verdict: plan.VerdictWait, Reason: wait.Reason, Message: state,
		})
		p.leave.waits = append(p.leave.waits, wait)
	}
}

// growth tells how far a claim is on its way to the size that it asks for, and whether
// it does not get any further.
func growth(claim *corev1.PersistentVolumeClaim) (state string, failed bool) {
	said := map[corev1.PersistentVolumeClaimConditionType]string{}
	for _, c := range claim.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			said[c.Type] = strings.TrimSpace(c.Message)
		}
	}
	const mend = ". Mend what keeps it from growing: a claim that asked for more cannot ask for less again, unless the storage offers that"
	for _, kind := range []corev1.PersistentVolumeClaimConditionType{corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError} {
		if message, is := said[kind]; is {
			return "the storage says " + cmp.Or(message, "that it failed") + mend, true
		}
	}
	switch claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible:
		return "the storage cannot make the volume larger" + mend, true
	case corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return "the node cannot make the file system larger" + mend, true
	case corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress:
	}
	if _, is := said[corev1.PersistentVolumeClaimFileSystemResizePending]; is {
		return "the volume is larger, and its node makes the file system larger next", false
	}
	if _, is := said[corev1.PersistentVolumeClaimResizing]; is {
		return "the storage makes the volume larger", false
	}
	return "asked for, and nothing has begun to make it larger yet", false
}

func claimRef(claim *corev1.PersistentVolumeClaim) plan.Ref {
	return plan.Ref{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name}
}

// explainClaim says in fields of the DorisCluster why a claim was not made larger.
func explainClaim(dc *dorisv1.DorisCluster, claim *corev1.PersistentVolumeClaim, err error) []plan.Finding {
	field, found := fieldOfClaim(dc, claim.Name)
	if !found {
		return nil
	}
	class := "its StorageClass"
	if name := ptr.Deref(claim.Spec.StorageClassName, ""); name != "" {
		class = "StorageClass " + name
	}
	return []plan.Finding{{
		Severity: plan.Refusal, Field: field + ".persistentVolumeClaimSpec.resources.requests.storage", Reason: meta.ReasonDiskCannotGrow,
		Message: fmt.Sprintf("Kubernetes does not let claim %s grow, and nothing was changed (%v). Volumes grow if %s has allowVolumeExpansion: true and its driver can do it, and quotas leave room; otherwise put the size back, and move the data to a cluster with larger disks", claim.Name, answerOf(err), class),
	}}
}

// fieldOfClaim is the entry of the spec that a claim comes from: claims are named
// after volume, set and ordinal.
func fieldOfClaim(dc *dorisv1.DorisCluster, claim string) (field string, found bool) {
	for _, kind := range rendered {
		spec := specOf(dc, kind)
		volume, ours := strings.CutSuffix(claim, "-"+StatefulSetName(dc.Name, kind)+"-"+strconv.Itoa(ordinalOf(claim)))
		if spec == nil || !ours {
			continue
		}
		longest := ""
		for i := range spec.PersistentVolumes {
			name := spec.PersistentVolumes[i].Name
			if (volume == name || strings.HasPrefix(volume, name+"-")) && len(name) >= len(longest) {
				field, longest, found = indexed(fieldOf(kind)+".persistentVolumes", i), name, true
			}
		}
	}
	return field, found
}

// keepTemplates leaves the sizes in claim templates as they are live, and the
// annotations in those of claims that the operator looks after itself: what becomes of
// them is decided here.
func keepTemplates(target, live *appsv1.StatefulSet, disks []disk) {
	for i := range target.Spec.VolumeClaimTemplates {
		t := &target.Spec.VolumeClaimTemplates[i]
		for _, d := range disks {
			if d.Name != t.Name {
				continue
			}
			t.Spec.Resources.Requests = resized(t.Spec.Resources.Requests, d.template)
			if d.operated() {
				t.Annotations = annotationsOf(live, t.Name)
			}
		}
	}
}

// annotationsOf are those of a claim template.
func annotationsOf(set *appsv1.StatefulSet, template string) map[string]string {
	for _, t := range set.Spec.VolumeClaimTemplates {
		if t.Name == template {
			return t.Annotations
		}
	}
	return nil
}

// answerOf is what the API server said, without what we were about to do.
func answerOf(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return answer.Status().Message
	}
	return err.Error()
}
