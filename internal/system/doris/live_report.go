package doris

import (
	"fmt"
	"slices"
	"strings"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// reasonNotSet says that processes lack settings that were accepted.
const reasonNotSet = "SettingsPending"

// syncCondition adds the condition that tells whether every process has the
// settings that it shall have, for clusters whose processes are told any. It is
// computed from what was observed alone, so that a plan that was refused or not
// carried out hides nothing.
func syncCondition(dc *dorisv1.DorisCluster, w World, extra map[string]status.Verdict) {
	p := planner{dc: dc, world: w}
	verdict, concerned := status.Verdict{True: true, Reason: meta.ReasonReconciled, Message: "every process has the accepted settings"}, false
	var parts []string
	for _, kind := range rendered {
		recorded, known := readAccepted(w.StatefulSets[StatefulSetName(dc.Name, kind)])
		if !known || specOf(dc, kind) == nil {
			continue
		}
		auto := updatePolicy(dc) == dorisv1.ConfigUpdateAuto && len(mountedMaps(dc, kind)) > 0
		if !auto && len(recorded.Live) == 0 && !p.everLive(kind) {
			continue
		}
		concerned = true
		parts = append(parts, p.outOfSync(kind, recorded, auto)...)
	}
	if !concerned {
		return
	}
	if len(parts) > 0 {
		verdict = status.Verdict{Reason: reasonNotSet, Message: strings.Join(parts, "; ")}
	}
	extra[meta.ConditionConfigurationInSync] = verdict
}

// outOfSync says of a component what it lacks.
func (p planner) outOfSync(kind dorisv1.ComponentType, recorded accepted, auto bool) []string {
	var parts []string
	newest := recorded.newest()
	for _, name := range mountedMaps(p.dc, kind) {
		cm := p.world.ConfigMaps[name]
		if auto && cm != nil && newest[name] != "" && newest[name] != copyName(p.dc.Name, cm) {
			parts = append(parts, fmt.Sprintf("%s: the content of ConfigMap %s is not accepted yet", kind, name))
		}
	}
	behind, _, _ := p.behindOf(kind, recorded)
	for _, s := range behind {
		why := "it has not read the accepted settings back"
		report := p.world.Nodes[s.pod.Name]
		switch {
		case startOf(s.pod) == "":
			why = "its container does not run"
		case report.Message != "":
			why = report.Message
		case len(report.Refused) > 0:
			key := slices.Min(sortedKeys(report.Refused))
			why = fmt.Sprintf("it does not take %s: %s", key, report.Refused[key])
		}
		parts = append(parts, s.pod.Name+": "+why)
	}
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
	for i := range p.world.Pods[string(kind)] {
		if pod := &p.world.Pods[string(kind)][i]; !current(set, pod) {
			parts = append(parts, pod.Name+": it is to be replaced")
		}
	}
	return parts
}
