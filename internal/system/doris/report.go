package doris

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// Report fills the status that existing tools read (one block per component)
// and says how the cluster is.
func (s *System) Report(dc *dorisv1.DorisCluster, w World, p plan.Plan, now time.Time) status.Health {
	w = w.standIns(dc)
	health := map[dorisv1.ComponentType]members{}
	for _, c := range rendered {
		var block *dorisv1.ComponentStatus
		if specOf(dc, c) != nil {
			health[c], block = s.reportComponent(dc, w, p, c, now)
		}
		putStatus(dc, c, block)
	}
	reportScale(dc, w)
	dc.Status.Workloads = workloadsOf(dc, w)
	dc.Status.History, dc.Status.Roll = historyNow(dc, w), rollNow(dc)
	dc.Status.RuntimeConfig = planner{dc: dc, world: w}.reportRuntime()
	out := status.Health{
		Available: availability(dc, w, health),
		Complete:  completeness(dc, p, health),
		Extra:     extraConditions(dc, w, p, now),
	}
	if no, has := out.Extra[meta.ConditionMembersRegistered]; has && no.Reason == meta.ReasonNotRegistered && out.Complete.True {
		out.Complete = no // a Pod that is no member serves nobody
	}
	return out
}

func (s *System) reportComponent(dc *dorisv1.DorisCluster, w World, p plan.Plan, c dorisv1.ComponentType, now time.Time) (members, *dorisv1.ComponentStatus) {
	name := StatefulSetName(dc.Name, c)
	set := w.StatefulSets[name]
	m := membersOf(set, w.Pods[string(c)], name, expected(dc, c, set), set != nil && edited(p, set))
	out := dorisv1.ComponentStatus{
		AccessService:     AccessServiceName(dc.Name, c),
		RunningInstances:  m.running,
		CreatingInstances: m.creating,
		FailedInstances:   m.failed,
	}
	if c == dorisv1.ComponentBroker {
		out.AccessService = ""
	}
	if n := len(m.outdated); n > 0 {
		out.Rollout = &dorisv1.RolloutProgress{Updated: int32(max(m.wanted-n, 0)), Total: int32(m.wanted)} //nolint:gosec // numbers of Pods
	}
	var before dorisv1.ComponentCondition
	if was := blockOf(dc, c); was != nil {
		before = was.ComponentCondition
		// Written by the existing operator; kept as it is.
		out.CoreConfigMapHashValue = was.CoreConfigMapHashValue
	}
	out.ComponentCondition = componentCondition(before, name, m, set != nil, now)
	planner{dc: dc, world: w, now: now}.reportMembers(c, blockOf(dc, c), &out)
	return m, &out
}

// rollNow says how many Pods of each component that rolls are as they shall be.
func rollNow(dc *dorisv1.DorisCluster) string {
	var out []string
	for _, c := range rendered {
		if now := blockOf(dc, c); now != nil && now.Rollout != nil {
			out = append(out, fmt.Sprintf("%s %d/%d", c, now.Rollout.Updated, now.Rollout.Total))
		}
	}
	return strings.Join(out, ", ")
}

// expected is how many Pods a component shall have: those that the spec asks for,
// or those that its set has, where they may not go.
func expected(dc *dorisv1.DorisCluster, c dorisv1.ComponentType, set *appsv1.StatefulSet) int {
	n := int(wantedReplicas(dc, c))
	if autoscaled(set) {
		return int(*set.Spec.Replicas)
	}
	if set != nil && set.Spec.Replicas != nil {
		n = max(n, int(*set.Spec.Replicas))
	}
	return n
}

// workloadsOf records what the sets are rendered by. What was recorded of one that
// is not there, or lacks our annotations, stays until the component is gone from
// the spec.
func workloadsOf(dc *dorisv1.DorisCluster, w World) []dorisv1.WorkloadStatus {
	var out []dorisv1.WorkloadStatus
	w.StatefulSets = recordsBack(dc, w.StatefulSets)
	for _, c := range rendered {
		if specOf(dc, c) == nil {
			continue
		}
		name := StatefulSetName(dc.Name, c)
		pin, known := pinOf(w.StatefulSets[name])
		if !known {
			i := slices.IndexFunc(dc.Status.Workloads, func(p dorisv1.WorkloadStatus) bool { return p.Name == name })
			if i < 0 {
				continue
			}
			pin = dc.Status.Workloads[i]
		}
		out = append(out, pin)
	}
	return out
}

// pinOf reads from a set what it is rendered by.
func pinOf(set *appsv1.StatefulSet) (pin dorisv1.WorkloadStatus, known bool) {
	recorded, readable := readAccepted(set)
	if !readable {
		return pin, false
	}
	revision, err := strconv.ParseInt(set.Annotations[meta.AnnotationRevision], 10, 32)
	if err != nil {
		return pin, false
	}
	return dorisv1.WorkloadStatus{Name: set.Name, Revision: int32(revision), Content: maps.Clone(recorded.Content), Records: recordsOf(set)}, true
}

// blockOf is the status of a component, nil when there is none yet.
func blockOf(dc *dorisv1.DorisCluster, c dorisv1.ComponentType) *dorisv1.ComponentStatus {
	switch c {
	case dorisv1.ComponentFE:
		return dc.Status.FeStatus
	case dorisv1.ComponentBE:
		return dc.Status.BeStatus
	case dorisv1.ComponentBroker:
		return dc.Status.BrokerStatus
	case dorisv1.ComponentCN:
		if dc.Status.CnStatus != nil {
			return &dc.Status.CnStatus.ComponentStatus
		}
	}
	return nil
}

// putStatus puts the status of a component into its place; nil takes it away.
func putStatus(dc *dorisv1.DorisCluster, c dorisv1.ComponentType, block *dorisv1.ComponentStatus) {
	switch c {
	case dorisv1.ComponentFE:
		dc.Status.FeStatus = block
	case dorisv1.ComponentBE:
		dc.Status.BeStatus = block
	case dorisv1.ComponentBroker:
		dc.Status.BrokerStatus = block
	case dorisv1.ComponentCN:
		if block == nil {
			dc.Status.CnStatus = nil
			return
		}
		if dc.Status.CnStatus == nil {
			dc.Status.CnStatus = &dorisv1.CnStatus{}
		}
		dc.Status.CnStatus.ComponentStatus = *block
	}
}

// reportScale fills in what an autoscaler reads of the compute nodes, and which one
// it is.
func reportScale(dc *dorisv1.DorisCluster, w World) {
	now := dc.Status.CnStatus
	if now == nil {
		return
	}
	now.Replicas, now.HorizontalScaler = 0, nil
	now.Selector = labels.SelectorFromSet(SelectorLabels(dc.Name, dorisv1.ComponentCN)).String()
	if set := w.StatefulSets[StatefulSetName(dc.Name, dorisv1.ComponentCN)]; set != nil {
		now.Replicas = set.Status.Replicas
	}
	policy, name := autoscalingPolicy(dc), AutoscalerName(dc.Name)
	if policy != nil && w.Autoscalers[name] != nil {
		now.HorizontalScaler = &dorisv1.HorizontalScaler{Name: name, Version: cmp.Or(policy.Version, dorisv1.AutoScalerV2)}
	}
}

// componentCondition names the phase in the words of the existing operator. The
// time moves only when the phase does.
func componentCondition(before dorisv1.ComponentCondition, set string, m members, exists bool, now time.Time) dorisv1.ComponentCondition {
	phase := phaseOf(before.Phase, m, exists)
	c := dorisv1.ComponentCondition{SubResourceName: set, Phase: phase, LastTransitionTime: before.LastTransitionTime}
	if phase != before.Phase || c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	}
	if phase != dorisv1.PhaseAvailable {
		c.Message = m.trouble
		if m.trouble != "" {
			c.Reason = meta.ReasonMembersNotReady
		}
	}
	if phase == dorisv1.PhaseHaveMemberFailed {
		c.Reason = meta.ReasonMemberFailed
	}
	return c
}

func phaseOf(before dorisv1.ComponentPhase, m members, exists bool) dorisv1.ComponentPhase {
	initial := before == "" || before == dorisv1.PhaseInitializing
	switch {
	case !exists:
		return dorisv1.PhaseInitializing
	case len(m.failed) > 0:
		return dorisv1.PhaseHaveMemberFailed
	case m.complete():
		return dorisv1.PhaseAvailable
	case initial:
		return dorisv1.PhaseInitializing
	case len(m.outdated) > 0:
		return dorisv1.PhaseUpgrading
	case before == dorisv1.PhaseUpgrading && len(m.creating) == 1:
		return dorisv1.PhaseUpgrading // the Pod that was just replaced is on its way
	case len(m.running)+len(m.creating) != m.wanted || before == dorisv1.PhaseScaling:
		return dorisv1.PhaseScaling
	}
	return dorisv1.PhaseReconciling
}

func availability(dc *dorisv1.DorisCluster, w World, health map[dorisv1.ComponentType]members) status.Verdict {
	frontends := w.StatefulSets[StatefulSetName(dc.Name, dorisv1.ComponentFE)] // they run on where an edit that drops them is refused
	if (dc.Spec.FeSpec != nil || frontends != nil) && servingFrontends(w) == 0 {
		return status.Verdict{Reason: meta.ReasonNotServing, Message: "no frontend serves" + because(health[dorisv1.ComponentFE])}
	}
	if asksForNothing(dc) && len(w.StatefulSets) == 0 {
		return status.Verdict{Reason: meta.ReasonNotServing, Message: nothingAsked}
	}
	runs, what := dorisv1.ComponentBE, "backend"
	if dc.Spec.BeSpec == nil { // a cluster that only computes
		runs, what = dorisv1.ComponentCN, "compute node"
	}
	if m := health[runs]; m.wanted > 0 && len(m.running) == 0 {
		return status.Verdict{Reason: meta.ReasonNotServing, Message: "no " + what + " serves" + because(m)}
	}
	if specOf(dc, runs) == nil {
		return status.Verdict{True: true, Reason: meta.ReasonServing, Message: "frontends serve, and there is nothing else"}
	}
	return status.Verdict{True: true, Reason: meta.ReasonServing, Message: "frontends and " + pluralOf(runs) + " serve"}
}

func completeness(dc *dorisv1.DorisCluster, p plan.Plan, health map[dorisv1.ComponentType]members) status.Verdict {
	missing := undone(p)
	for _, c := range rendered {
		m := health[c]
		if specOf(dc, c) == nil || m.complete() {
			continue
		}
		part := fmt.Sprintf("%s: %d of %d ready", c, len(m.running), m.wanted)
		if n := len(m.outdated); n > 0 {
			part += fmt.Sprintf(", %d to be replaced", n)
		}
		missing = append(missing, part+because(m))
	}
	if len(missing) > 0 {
		reason := meta.ReasonMembersNotReady
		if len(undone(p)) == len(missing) {
			reason = reasonCannotShrink
		}
		return status.Verdict{Reason: reason, Message: strings.Join(missing, "; ")}
	}
	return status.Verdict{True: true, Reason: meta.ReasonReconciled, Message: "every member is ready"}
}

// undone names what the spec asks for and this version does not do.
func undone(p plan.Plan) []string {
	var out []string
	for _, f := range p.Unsupported() {
		if f.Reason == reasonCannotShrink {
			out = append(out, f.String())
		}
	}
	return out
}

// reasonCannotShrink says that members would have to leave the database.
const reasonCannotShrink = "ScaleInNotSupported"

func because(m members) string {
	if m.trouble == "" {
		return ""
	}
	return " (" + m.trouble + ")"
}

// extraConditions are those that only some clusters have.
func extraConditions(dc *dorisv1.DorisCluster, w World, p plan.Plan, now time.Time) map[string]status.Verdict {
	extra := map[string]status.Verdict{}
	for _, f := range p.Findings {
		if f.Severity == plan.Warning && f.Reason == meta.ReasonDeprecatedField {
			extra[meta.ConditionPlaintextCredential] = status.Verdict{True: true, Reason: meta.ReasonDeprecatedField, Message: f.String()}
		}
	}
	if sets := plaintextIn(w); len(sets) > 0 {
		extra[meta.ConditionPlaintextCredential] = status.Verdict{
			True: true, Reason: meta.ReasonTakenOver,
			Message: "the Pod template of " + strings.Join(sets, ", ") + " holds a password in an environment variable, as the operator that made it does; the newer rendering that is offered mounts a Secret instead",
		}
	}
	if released(dc) && len(p.Waits()) == 0 {
		extra[meta.ConditionReleased] = status.Verdict{
			True: true, Reason: meta.ReasonReleasing,
			Message: "the workloads are handed back; nothing is done until the annotation " + meta.AnnotationRelease + " is gone",
		}
	}
	syncCondition(dc, w, extra)
	nodeCondition(w, extra)
	planner{dc: dc, world: w, now: now}.membersCondition(extra)
	planner{dc: dc, world: w, now: now, leave: newLeaving()}.endpointsCondition(extra)
	planner{dc: dc, world: w}.keptCondition(extra)
	planner{dc: dc, world: w, now: now}.lostCondition(extra)
	return extra
}

// plaintextIn names the sets whose template holds a password.
func plaintextIn(w World) []string {
	var names []string
	for _, name := range sortedKeys(w.StatefulSets) {
		for _, c := range w.StatefulSets[name].Spec.Template.Spec.Containers {
			if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == envPassword && e.Value != "" }) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}
