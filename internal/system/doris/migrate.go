package doris

import (
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// Migration is what there is to do so that a cluster that ran without keeping its settings
// keeps them. The kubectl plugin carries it out: the operator runs nothing in Pods.
type Migration struct {
	Components []MigrationComponent
	// Findings are what it cannot be done for now.
	Findings []plan.Finding
}

// MigrationComponent is one component of it.
type MigrationComponent struct {
	Kind dorisv1.ComponentType
	// Set and Pods are those that there are; the Pods in the order of their ordinals.
	Set  *appsv1.StatefulSet
	Pods []corev1.Pod
	// Record is where its settings are kept or, with Kept false, would be.
	Record *runtimeconfig.Record
	Kept   bool
	// File is where a node has them as long as they are not kept.
	File string

	configured settingsFile
}

// Reasons for which the plugin does not migrate.
const (
	reasonNotAtRest     = "RuntimeConfigNotAtRest"
	reasonMemberMissing = "RuntimeConfigMembersDiffer"
)

// MigrationOf looks at a cluster as it is and as the plan for it says.
func MigrationOf(dc *dorisv1.DorisCluster, w World, planned plan.Plan) Migration {
	p := planner{dc: dc, world: w.standIns(dc), build: plan.NewBuilder(nil, FieldManager)}
	p.world.StatefulSets = recordsBack(dc, p.world.StatefulSets)
	m := Migration{Findings: p.unfit(planned)}
	objects, _ := Desired(dc, Inputs{Revision: LatestRevision, ConfigMaps: w.ConfigMaps, Secrets: w.Secrets, Claims: w.Claims, Bootstrapped: true})
	had := p.runtimesAsTheyAre()
	for _, kind := range keepers {
		built, has := objects.Component(kind)
		if !has {
			continue
		}
		c := MigrationComponent{
			Kind: kind, Set: p.world.StatefulSets[StatefulSetName(dc.Name, kind)], Pods: sortedPods(w.Pods[string(kind)]),
			configured: p.fileOf(kind, p.mountedNow(kind)),
		}
		asked := p.runtimeOf(built, had[kind], content{maps: p.mountedNow(kind)})
		c.File = path.Join(asked.Default, asked.Kind.CustomFile())
		if r := had[kind]; r != nil && r.State != runtimeconfig.Unavailable {
			c.Record, c.Kept = r, true
			m.Components = append(m.Components, c)
			continue
		}
		record, findings := asked.Place()
		c.Record = record
		m.Findings = slices.Concat(m.Findings, findings, c.atRest(fieldOf(kind)), c.claimsStay(dc), c.unmounted())
		m.Components = append(m.Components, c)
	}
	return m
}

// mountedNow is the content that the Pods of a component have mounted.
func (p planner) mountedNow(kind dorisv1.ComponentType) map[string]*corev1.ConfigMap {
	if recorded, known := readAccepted(p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]); known {
		if has := p.contentNamed(recorded.newest()); len(has) > 0 {
			return has
		}
	}
	return p.world.ConfigMaps
}

func sortedPods(pods []corev1.Pod) []corev1.Pod {
	return slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return ordinalOf(a.Name) - ordinalOf(b.Name) })
}

// Open tells whether there is a component whose settings are not kept.
func (m Migration) Open() bool {
	return slices.ContainsFunc(m.Components, func(c MigrationComponent) bool { return !c.Kept })
}

// unfit says why nothing is migrated in the cluster as a whole now.
func (p planner) unfit(planned plan.Plan) []plan.Finding {
	annotation := func(key string) string { return fmt.Sprintf("metadata.annotations[%q]", key) }
	var out []plan.Finding
	no := func(field, message string) {
		out = append(out, plan.Finding{Severity: plan.Refusal, Field: field, Reason: reasonNotAtRest, Message: message})
	}
	policy := p.dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy]
	if !p.dc.DeletionTimestamp.IsZero() {
		no("metadata.deletionTimestamp", "the resource is being deleted: there is nothing to migrate")
	}
	if released(p.dc) {
		no(annotation(meta.AnnotationRelease), "the workloads are handed back, so the operator would not go on: take them over first, with `kubectl fairlead release --undo`")
	}
	if meta.Paused(p.dc.Annotations) {
		no(annotation(meta.AnnotationPaused), "the resource is paused, so the operator would not go on: resume it first")
	}
	if policy == "" {
		no(annotation(dorisv1.AnnotationRuntimeConfigPolicy), "the operator has not looked at this resource yet: install or upgrade it first, with its custom resource definition, and wait until it is Ready")
	}
	return slices.Concat(out, p.underWay(planned))
}

// underWay says what else is being done to the cluster, or asked of it and refused.
func (p planner) underWay(planned plan.Plan) []plan.Finding {
	var out []plan.Finding
	if enabled := runtimeEnabled(p.dc); enabled != nil && *enabled && p.dc.Annotations[dorisv1.AnnotationRuntimeConfigMigration] == "" {
		out = append(out, plan.Finding{
			Severity: plan.Refusal, Field: runtimeconfig.FieldEnabled, Reason: runtimeconfig.ReasonMigrationNeeded,
			Message: "it is true already, and nothing is copied: take the field out first; the migration sets it at its end",
		})
	}
	for _, f := range planned.Refused() {
		if f.Reason != runtimeconfig.ReasonMigrationNeeded {
			out = append(out, f)
		}
	}
	for _, c := range planned.Changes {
		if (c.Verdict == plan.VerdictApply || c.Verdict == plan.VerdictWait) && !plan.Bookkeeping(c.Path) {
			return append(out, plan.Finding{
				Severity: plan.Refusal, Field: c.Object.String(), Reason: reasonNotAtRest,
				Message: "something is being changed (" + strings.TrimSpace(c.Path+" "+c.Message) + "): wait until `kubectl fairlead plan` has nothing to do, or take the edit back",
			})
		}
	}
	return out
}

// atRest says why the members of a component are not those that they shall be.
func (c MigrationComponent) atRest(field string) []plan.Finding {
	name := "StatefulSet of " + string(c.Kind)
	no := func(reason, format string, args ...any) []plan.Finding {
		return []plan.Finding{{Severity: plan.Refusal, Field: name, Reason: reason, Message: fmt.Sprintf(format, args...)}}
	}
	set := c.Set
	if set == nil {
		return no(reasonMemberMissing, "it does not exist, and %s asks for it: wait until the cluster is Ready", field)
	}
	name = "StatefulSet " + set.Name
	_, rolling := readLastGood(set)
	_, failed := readFailed(set)
	replicas := int(ptr.Deref(set.Spec.Replicas, 1))
	switch {
	case !pinned(set):
		return no(reasonNotAtRest, "the operator has not taken it over yet: wait until the cluster is Ready")
	case unseen(set):
		return no(reasonNotAtRest, "its controller has not seen its newest template: wait a moment")
	case rolling, failed:
		return no(reasonNotAtRest, "its Pods are being replaced, or that has stopped: let the roll end, or mend what it stopped at")
	case len(c.Pods) != replicas:
		return no(reasonMemberMissing, "it has %d Pods and %d replicas: wait until all are there, and stop what scales it", len(c.Pods), replicas)
	}
	for i := range c.Pods {
		pod := &c.Pods[i]
		switch {
		case ordinalOf(pod.Name) != i || !metav1.IsControlledBy(pod, set):
			return no(reasonMemberMissing, "Pod %s is not the one that it is to have: wait until all its Pods are there", pod.Name)
		case !ready(pod):
			return no(reasonNotAtRest, "Pod %s is not ready: every member has to serve, so that what is in force can be read", pod.Name)
		case behind(set, pod):
			return no(reasonNotAtRest, "Pod %s is not on the newest template of its set: let the roll end, or approve what is held of it", pod.Name)
		}
	}
	return nil
}

// claimsStay refuses components whose claims go with their members: one that came back
// would look for its copy on a new claim.
func (c MigrationComponent) claimsStay(dc *dorisv1.DorisCluster) []plan.Finding {
	if !claimsGo(dc, c.Kind) {
		return nil
	}
	return []plan.Finding{{
		Severity: plan.Refusal, Field: fieldOf(c.Kind) + ".claimRetention.whenScaledIn", Reason: runtimeconfig.ReasonStorageUnavailable,
		Message: "claims of members that are scaled in are deleted, with what is copied to them, and such a member could not start when it comes back: set it to Retain, and leave it so",
	}}
}

// claimsGo tells whether the claims of a component go with members that are scaled in.
func claimsGo(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType) bool {
	asked := specOf(dc, kind).ClaimRetention
	return asked != nil && asked.WhenScaledIn == dorisv1.RetentionDelete
}

// copiesStay refuses that claims go with members that look for a copy on them.
func (p planner) copiesStay(kind dorisv1.ComponentType, record *runtimeconfig.Record) []plan.Finding {
	if record == nil || record.Migrated == "" || !claimsGo(p.dc, kind) {
		return nil
	}
	return []plan.Finding{{
		Severity: plan.Refusal, Field: fieldOf(kind) + ".claimRetention.whenScaledIn", Reason: runtimeconfig.ReasonStorageChanged,
		Message: "members that were there when the settings were migrated look for their copy on their claim, and would not start when they come back on a new one: set it to Retain, and delete by hand the claim of a member that will not come back",
	}}
}

// unmounted says which Pod does not mount the volume where its settings would be kept.
func (c MigrationComponent) unmounted() []plan.Finding {
	if c.Record == nil || c.Set == nil {
		return nil
	}
	var claims []string
	for i := range c.Set.Spec.VolumeClaimTemplates {
		claims = append(claims, c.Set.Spec.VolumeClaimTemplates[i].Name)
	}
	for i := range c.Pods {
		mounts := runtimeconfig.MountsOf(&c.Pods[i].Spec, string(c.Kind), claims)
		if slices.ContainsFunc(mounts, func(m runtimeconfig.Mount) bool {
			return m.Volume == c.Record.Volume && path.Clean(m.Path) == path.Clean(c.Record.MountPath) && m.SubPath == c.Record.SubPath && m.SubPathExpr == "" && m.Claim && !m.ReadOnly
		}) {
			continue
		}
		return []plan.Finding{{
			Severity: plan.Refusal, Field: "Pod " + c.Pods[i].Name, Reason: runtimeconfig.ReasonStorageUnavailable,
			Message: fmt.Sprintf("it does not mount volume %s at %s, where the settings would be kept: its template was edited by somebody else; approve that it is put back, or plan this by hand", c.Record.Volume, c.Record.MountPath),
		}}
	}
	return nil
}

// Kinds of settings beside what the ConfigMap says.
const (
	// SettingAlone is named by the file of the node alone.
	SettingAlone = "only in the node"
	// SettingRepeats is in the ConfigMap with the same value, SettingContradicts with
	// another one.
	SettingRepeats     = "repeats the ConfigMap"
	SettingContradicts = "contradicts the ConfigMap, and wins"
)

// Settings reads the file of a node, and says of each setting how it stands to the ConfigMap.
// The values stay here.
func (c MigrationComponent) Settings(file []byte) map[string]string {
	out := map[string]string{}
	parsed := conf.Parse(file)
	for _, e := range parsed.Entries() {
		value, _ := parsed.Get(e.Key)
		out[e.Key] = SettingAlone
		for key, has := range c.configured.values {
			if !sameName(key, e.Key) {
				continue
			}
			out[e.Key] = SettingContradicts
			if strings.TrimSpace(has) == value {
				out[e.Key] = SettingRepeats
			}
		}
	}
	return out
}

// Approves is the approval of a migration of what is there now.
func (m Migration) Approves(dc *dorisv1.DorisCluster, id string) runtimeconfig.Approval {
	a := runtimeconfig.Approval{ID: id, Cluster: string(dc.UID), Generation: dc.Generation, Components: map[runtimeconfig.Kind]runtimeconfig.Copied{}}
	for _, c := range m.Components {
		if c.Kept || c.Set == nil || c.Record == nil {
			continue
		}
		a.Components[runtimeconfig.Kind(c.Kind)] = runtimeconfig.Copied{
			UID: string(c.Set.UID), Generation: c.Set.Generation, Replicas: ptr.Deref(c.Set.Spec.Replicas, 1),
			Volume: c.Record.Volume, MountPath: c.Record.MountPath, SubPath: c.Record.SubPath,
		}
	}
	return a
}

// MarkOfCopy is the file beside the copy of a member by which it is known.
func MarkOfCopy(id string) string { return runtimeconfig.MarkOfCopy + id }

// Accepts tells whether the operator has found the approval of a migration to be right.
func Accepts(dc *dorisv1.DorisCluster, id string) bool {
	return dc.Annotations[meta.AnnotationMigrationAccepted] == id
}
