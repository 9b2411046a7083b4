package doris

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// changesClaims refuses edits of volumes that no claim can follow: a smaller
// size, and another one who makes the claims. What was so when the set was last
// rendered is left to the comparison with the set: it is nothing new.
func (p planner) changesClaims(w workload) []plan.Finding {
	spec := specOf(p.dc, w.kind)
	if w.live == nil || w.found || spec == nil {
		return nil
	}
	before := map[string]*dorisv1.PersistentVolume{}
	if recorded := specIn(&w.recorded.Spec, w.kind); recorded != nil {
		for i := range recorded.PersistentVolumes {
			before[recorded.PersistentVolumes[i].Name] = &recorded.PersistentVolumes[i]
		}
	}
	var findings []plan.Finding
	for i := range spec.PersistentVolumes {
		pv := &spec.PersistentVolumes[i]
		at := indexed(fieldOf(w.kind)+".persistentVolumes", i)
		was := before[pv.Name]
		if was == nil {
			continue
		}
		if maker(was) != maker(pv) {
			findings = append(findings, unsafe(at+".provisioner", "the claims of this volume are made by the %s, and that cannot change while they exist: put %q back", maker(was), was.Provisioner))
		}
		if size, is := shrinks(was, pv, w.live.Spec.VolumeClaimTemplates); is {
			findings = append(findings, unsafe(at+".persistentVolumeClaimSpec.resources.requests.storage", "no disk becomes smaller: set it to at least %s, which its claims have asked for. To use smaller disks, move the data to another cluster", size))
		}
	}
	return findings
}

// maker is who makes the claims of a volume.
func maker(pv *dorisv1.PersistentVolume) dorisv1.PVCProvisioner {
	if pv.Provisioner == dorisv1.PVCProvisionerOperator {
		return pv.Provisioner
	}
	return dorisv1.PVCProvisionerStatefulSet
}

// shrinks tells whether a volume was made smaller since it was last rendered,
// and smaller than a claim that exists; and the size of that.
func shrinks(was, is *dorisv1.PersistentVolume, live []corev1.PersistentVolumeClaim) (size string, smaller bool) {
	had := was.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
	wants := is.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
	if wants.Cmp(had) == 0 {
		return "", false
	}
	for _, c := range live {
		// One entry without a path makes a claim for each data directory.
		several := is.MountPath == "" && strings.HasPrefix(c.Name, is.Name+"-")
		if has := c.Spec.Resources.Requests[corev1.ResourceStorage]; (c.Name == is.Name || several) && wants.Cmp(has) < 0 {
			return has.String(), true
		}
	}
	return "", false
}

func unsafe(field, format string, args ...any) plan.Finding {
	return plan.Finding{Severity: plan.Refusal, Field: field, Reason: meta.ReasonUnsafeChange, Message: fmt.Sprintf(format, args...)}
}
