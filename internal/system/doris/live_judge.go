package doris

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// road is what a new content of a component asks for.
type road int

const (
	// reloads: what is changed can be set in the running processes.
	reloads road = iota
	// restarts: something of it is read at the start only.
	restarts
	// asks: no node could be asked yet.
	asks
	// refuses: a node would not start with it.
	refuses
)

// judgement is how the nodes of a component stand to a content.
type judgement struct {
	road road
	// why says of settings, by their names, why they need a restart or are refused.
	why map[string]string
	// unheard says of Pods, by their names, why they could not be asked.
	unheard map[string]NodeReport
}

// question is a node that has to be asked before it can be decided.
type question struct {
	pod  *corev1.Pod
	kind dorisv1.ComponentType
	// about is what is to be decided; another one is asked at once.
	about string
}

// report is what is known of a Pod's node. That it was looked for is noted: see
// System.questions.
func (p planner) report(kind dorisv1.ComponentType, pod *corev1.Pod, about map[string]string) (NodeReport, bool) {
	start := startOf(pod)
	if start == "" {
		return NodeReport{Reason: meta.ReasonMembersNotReady, Message: "its container does not run"}, false
	}
	if p.asked != nil {
		p.asked[pod.Name] = question{pod: pod, kind: kind, about: fmt.Sprint(about, ready(pod))}
	}
	r, known := p.world.Nodes[pod.Name]
	if !known || r.Start != start {
		return NodeReport{Reason: reasonNotAsked, Message: "it was not asked yet"}, false
	}
	return r, r.Items != nil
}

// reasonNotAsked says that nobody has asked a node: the plugin never does.
const reasonNotAsked = "NotAsked"

// hearing is what the nodes of a component say to a content, one after the other.
type hearing struct {
	kind dorisv1.ComponentType
	set  *appsv1.StatefulSet
	// names are the copies of the content, accepted tells that it is what all
	// processes shall have already.
	names    map[string]string
	accepted bool
	// started is what the template mounts, file is the content.
	started, file settingsFile

	heard            int
	unheard          map[string]NodeReport
	invalid, restart []setting.Change
}

// judge decides how the Pods of a set get to a content.
func (p planner) judge(kind dorisv1.ComponentType, set *appsv1.StatefulSet, recorded accepted, wanted map[string]*corev1.ConfigMap, names map[string]string) judgement {
	mounted := p.contentNamed(recorded.Content)
	h := hearing{
		kind: kind, set: set, names: names, accepted: maps.Equal(names, recorded.newest()), unheard: map[string]NodeReport{},
		started: p.fileOf(kind, mounted), file: p.fileOf(kind, wanted),
	}
	if why := p.beyondSettings(kind, mounted, wanted, h.started, h.file); len(why) > 0 || ptr.Deref(set.Spec.Replicas, 1) == 0 {
		return judgement{road: restarts, why: why}
	}
	for i := range p.world.Pods[string(kind)] {
		p.hear(&h, &p.world.Pods[string(kind)][i])
	}
	silent := h.heard == 0 && (len(h.unheard) > 0 || !h.accepted && !h.started.sameAs(h.file))
	j := judgement{unheard: h.unheard}
	switch {
	case len(h.invalid) > 0:
		j.road, j.why = refuses, reasons(h.invalid)
	case len(h.restart) > 0, silent && !h.accepted && p.nothingToLose(kind):
		j.road, j.why = restarts, reasons(h.restart)
	case silent:
		j.road = asks
	}
	return j
}

// hear adds what the node of one Pod says. One that is to be replaced is asked
// about a content that is not accepted yet, as if it had started already.
func (p planner) hear(h *hearing, pod *corev1.Pod) {
	isCurrent, s := current(h.set, pod), syncOf(pod, h.names, h.started, h.file)
	switch {
	case isCurrent && !s.behind:
		h.heard++
		return
	case !isCurrent && (h.accepted || h.started.sameAs(h.file)):
		return
	}
	report, ok := p.report(h.kind, pod, h.names)
	if !ok {
		h.unheard[pod.Name] = report
		return
	}
	if !isCurrent {
		report.Items, s.record = asStarted(report.Items, h.started), liveRecord{}
	}
	h.heard++
	of := setting.Of(s.input(report, h.started, h.file))
	h.invalid = append(h.invalid, of.Invalid...)
	for _, c := range of.Restart {
		if !sameIn(h.started, h.file, c.Key) {
			h.restart = append(h.restart, c)
		}
	}
}

// sameIn tells whether two files say the same of a setting. A process that needs a
// start all the same, since something else was set in it, gets that by starting
// again with the file that its Pod mounts.
func sameIn(a, b settingsFile, key string) bool {
	was, had := a.values[key]
	is, has := b.values[key]
	return had == has && was == is
}

func reasons(changes []setting.Change) map[string]string {
	out := map[string]string{}
	for _, c := range changes {
		out[c.Key] = string(c.Reason)
	}
	return out
}

// nothingToLose tells that no Pod of a component serves, and the process of one
// ends again and again: it may need the very content that is to be decided about.
func (p planner) nothingToLose(kind dorisv1.ComponentType) bool {
	fails := false
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		if ready(&pods[i]) {
			return false
		}
		for _, c := range pods[i].Status.ContainerStatuses {
			fails = fails || c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
		}
	}
	return fails
}

// beyondSettings names what of a new content no running process can be told:
// files beside the configuration file, and settings that Pods are made from.
func (p planner) beyondSettings(kind dorisv1.ComponentType, mounted, wanted map[string]*corev1.ConfigMap, started, file settingsFile) map[string]string {
	why := map[string]string{}
	for _, key := range unionKeys(started.others, file.others) {
		if was, is := started.others[key], file.others[key]; was != is {
			why[key] = "only the configuration file can be changed in a running process"
		}
	}
	if started.name != file.name || !started.known || !file.known {
		why[file.name+"/"+file.key] = "another file is read, or it is not known what the Pods have read"
	}
	if !maps.Equal(started.values, file.values) && p.shape(kind, mounted) != p.shape(kind, wanted) {
		why[file.key] = "the Pods are made from what it says"
	}
	return why
}

// shape is what of the configuration Pods are made from.
func (p planner) shape(kind dorisv1.ComponentType, mounted map[string]*corev1.ConfigMap) string {
	settings, findings := ReadSettings(p.dc, Inputs{Mounted: map[dorisv1.ComponentType]map[string]*corev1.ConfigMap{kind: mounted}})
	return digest([]any{settings, findings})
}

// followsLive decides about a changed content under the policy Auto. It tells
// whether the Pods shall have it, and whether by a new template.
func (p planner) followsLive(kind dorisv1.ComponentType, set *appsv1.StatefulSet, recorded accepted, now *content) (follow, mount bool) {
	now.judged = p.judge(kind, set, recorded, now.maps, now.copies)
	switch now.judged.road {
	case restarts:
		return true, true
	case reloads:
		return true, false
	case refuses:
		p.refuseSettings(p.fileOf(kind, now.maps), now.judged)
	case asks:
	}
	return false, false
}

// refuseSettings refuses a file that a node would not start with.
func (p planner) refuseSettings(file settingsFile, j judgement) {
	for _, key := range slices.Sorted(maps.Keys(j.why)) {
		p.build.Find(plan.Finding{
			Severity: plan.Refusal, Field: file.field, Reason: meta.ReasonInvalidConfiguration,
			Message: fmt.Sprintf("%s in ConfigMap %q: %s: %s. Mend the file; nothing is changed until then", file.key, file.name, key, j.why[key]),
		})
	}
}

// policyFor is what a changed file leads to for a component. One whose nodes
// cannot be asked gets no more than a person accepts.
func (p planner) policyFor(kind dorisv1.ComponentType, recorded accepted) dorisv1.ConfigUpdatePolicy {
	policy := updatePolicy(p.dc)
	if policy == dorisv1.ConfigUpdateAuto && kind == dorisv1.ComponentBroker {
		return dorisv1.ConfigUpdateRestart // it reads its file when it starts, and never else
	}
	if e := p.encryptionOf(kind, recorded); policy == dorisv1.ConfigUpdateAuto && e != nil && e.problem != "" {
		p.build.Find(plan.Finding{
			Severity: plan.Unsupported, Field: "spec.configUpdatePolicy", Reason: meta.ReasonMissingReference,
			Message: e.problem + ". Until then a changed file is held until a person accepts, as under Manual",
		})
		return dorisv1.ConfigUpdateManual
	}
	return policy
}

// sayContent lists, key by key, what a changed content does.
func (p planner) sayContent(w workload, has content) {
	if len(has.changed) == 0 || w.live == nil {
		return
	}
	if has.judged.road == restarts && !w.changes { // held with the template
		return
	}
	for _, c := range has.changed {
		_, key, _ := strings.Cut(c.Path, `"].`)
		c.Effect, c.Verdict, c.Reason = plan.EffectReload, plan.VerdictApply, reasonConfigUpdatePolicy
		c.Message = fmt.Sprintf("set in the running processes of %s, read back, and set again whenever one starts", w.kind)
		switch has.judged.road {
		case reloads:
		case restarts:
			if c.Effect = plan.EffectRestartPod; has.judged.why[key] != "" {
				c.Message = has.judged.why[key]
			} else {
				c.Message = "comes with the restart that other changes of the file need"
			}
		case asks:
			c.Effect, c.Verdict, c.Reason = plan.EffectReloadOrRestart, plan.VerdictWait, reasonNotAsked
			why := p.unheard(has.judged)
			c.Message = fmt.Sprintf("the nodes of %s are asked whether it can be changed while they run%s", w.kind, why)
			if has.judged.answersLater() {
				p.rechecks[c.Object] = c.Message
			}
		case refuses:
			c.Verdict, c.Reason, c.Message = plan.VerdictRefuse, meta.ReasonInvalidConfiguration, "the file is refused"
		}
		p.build.Note(c)
	}
}

// answersLater tells whether some node may answer without an event that says so.
func (j judgement) answersLater() bool {
	for _, r := range j.unheard {
		if r.Reason != meta.ReasonMembersNotReady {
			return true
		}
	}
	return false
}

// unheard says why the nodes could not be asked.
func (p planner) unheard(j judgement) string {
	for _, name := range slices.Sorted(maps.Keys(j.unheard)) {
		if r := j.unheard[name]; r.Reason != reasonNotAsked {
			return fmt.Sprintf("; %s could not be: %s", name, r.Message)
		}
	}
	return ""
}
