package doris

import (
	"fmt"

	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// approval is a person's approval of a migration of settings, as far as it counts for the
// components that exist and do not keep theirs. It counts when what it speaks of is as it
// was then. That is found out once and noted on the resource: afterwards Pods go, sets are
// others and the spec is edited again, and the copies on the volumes are what they were.
func (p planner) approval(policy runtimeconfig.Policy, had map[dorisv1.ComponentType]*runtimeconfig.Record) (runtimeconfig.Approval, []plan.Finding) {
	var none runtimeconfig.Approval
	text := p.dc.Annotations[dorisv1.AnnotationRuntimeConfigMigration]
	open := p.notKept(had)
	if policy != runtimeconfig.Enabled || text == "" || len(open) == 0 {
		return none, nil
	}
	approved, err := runtimeconfig.ReadApproval(text)
	if err != nil {
		return none, []plan.Finding{invalidApproval(fmt.Sprintf(
			"it is no approval of a migration (%v): nothing was changed. Remove it, or have `kubectl fairlead runtime-config migrate` write it again", err))}
	}
	if p.dc.Annotations[meta.AnnotationMigrationAccepted] == approved.ID {
		return approved, nil
	}
	if findings := approved.Check(dorisv1.AnnotationRuntimeConfigMigration, string(p.dc.UID), p.dc.Generation, open); len(findings) > 0 {
		return none, findings
	}
	p.write(note{
		on: p.dc, key: meta.AnnotationMigrationAccepted, is: approved.ID, to: approved.ID, cause: plan.CauseUser,
		reason:  "note that the approval of the migration " + approved.ID + " is right",
		message: "which migration of settings is carried out",
	})
	return approved, nil
}

// invalidApproval refuses what the annotation says.
func invalidApproval(message string) plan.Finding {
	return plan.Finding{
		Severity: plan.Refusal, Field: fmt.Sprintf("metadata.annotations[%q]", dorisv1.AnnotationRuntimeConfigMigration), Reason: runtimeconfig.ReasonMigrationInvalid, Message: message,
	}
}

// notKept are the workloads of components that exist and do not keep their settings.
func (p planner) notKept(had map[dorisv1.ComponentType]*runtimeconfig.Record) []runtimeconfig.Workload {
	var out []runtimeconfig.Workload
	for _, kind := range keepers {
		if r := had[kind]; specOf(p.dc, kind) == nil || !p.exists(kind) || r != nil && r.State != runtimeconfig.Unavailable {
			continue
		}
		w := runtimeconfig.Workload{Kind: runtimeconfig.Kind(kind), Name: "StatefulSet " + StatefulSetName(p.dc.Name, kind)}
		if set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]; set != nil {
			w.UID, w.Generation, w.Replicas = string(set.UID), set.Generation, ptr.Deref(set.Spec.Replicas, 1)
		}
		out = append(out, w)
	}
	return out
}
