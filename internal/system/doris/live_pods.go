package doris

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// behindOf lists the Pods of a component whose processes are not known to have a
// content, of those that mount what the record says.
func (p planner) behindOf(kind dorisv1.ComponentType, recorded accepted) (list []syncing, started, file settingsFile) {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
	wanted := recorded.newest()
	started, file = p.fileOf(kind, p.contentNamed(recorded.Content)), p.fileOf(kind, p.contentNamed(wanted))
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		if set == nil || !current(set, &pods[i]) {
			continue
		}
		if s := syncOf(&pods[i], wanted, started, file); s.behind {
			list = append(list, s)
		}
	}
	return list, started, file
}

// reload plans what brings the running processes of a component to the content
// that was accepted. A set whose Pods are about to be replaced is left to that.
func (p planner) reload(w workload) {
	if w.live == nil || w.found || w.changes {
		return
	}
	behind, started, file := p.behindOf(w.kind, w.target)
	for _, s := range behind {
		p.reloadOne(w, s, started, file)
	}
}

// reloadOne plans the next thing for one process: to record what it is about to
// get, to set it, or to record that it has it.
func (p planner) reloadOne(w workload, s syncing, started, file settingsFile) {
	change := plan.Change{
		Object: plan.RefOf(s.pod), Path: livePath, Cause: plan.CauseConfig, Effect: plan.EffectReload, Verdict: plan.VerdictWait,
	}
	report, ok := p.report(w.kind, s.pod, w.target.newest())
	if !ok {
		if change.Reason = report.Reason; report.Reason == reasonNotAsked {
			change.Effect = plan.EffectReloadOrRestart
		}
		change.Message = "settings of the accepted configuration are set when it answers: " + report.Message
		p.pending(change, report.Reason != meta.ReasonMembersNotReady)
		return
	}
	of := setting.Of(s.input(report, started, file))
	if stuck := slices.Concat(of.Restart, of.Invalid); len(stuck) > 0 {
		p.startsAgain(w, change, stuck[0])
		return
	}
	keys := keysOf(of.Live)
	record := liveRecord{
		Content: w.target.newest(), Start: startOf(s.pod), Done: len(keys) == 0,
		Keys: slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(s.record.Keys), keys...)))),
	}
	if record.String() != s.record.String() {
		p.build.Step(plan.Change{
			Object: change.Object, Path: `metadata.annotations["` + meta.AnnotationLive + `"]`, Cause: plan.CauseConfig,
			Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: "Recorded", Message: "which settings the running process has got",
		}, recordLive(s.pod, record))
	}
	if record.Done {
		return
	}
	open := slices.DeleteFunc(of.Live, func(c setting.Change) bool { _, refused := report.Refused[c.Key]; return refused })
	if len(open) == 0 {
		key := slices.Sorted(maps.Keys(report.Refused))[0]
		change.Reason, change.Message = reasonRefused, fmt.Sprintf("the node does not take %s: %s", key, report.Refused[key])
		p.pending(change, true)
		return
	}
	change.Verdict, change.Reason, change.Message = plan.VerdictApply, reasonConfigUpdatePolicy, "set in the running process and read back: "+listed(keysOf(open))
	p.build.Step(change, plan.Call{
		On: change.Object, Reason: "set " + listed(keysOf(open)),
		Operation: setSettings{at: p.address(w.kind, s.pod), changes: open},
	})
}

// acceptLive records in a set that is kept as it was found what its processes are
// told.
func (p planner) acceptLive(w workload) {
	if w.found || w.recorded.same(w.target) {
		return
	}
	p.write(note{
		on: w.live, key: meta.AnnotationAccepted, is: w.target.String(), cause: plan.CauseConfig,
		reason: "record which content the processes have", message: recordedHere,
	})
}

// compareContents compares the records, and returns the content that the processes
// have, or get, if the template stays as it is. A new template mounts what was
// accepted last.
func (p planner) compareContents(w *workload) (reloaded map[string]string, err error) {
	if err := p.compareRecords(w); err != nil {
		return nil, err
	}
	reloaded = w.reloaded()
	if len(w.edited) == 0 || len(w.now.Live) == 0 {
		return reloaded, nil
	}
	w.now = w.now.mounting()
	return reloaded, p.compareRecords(w)
}

// reloaded is the content that the processes have, or get, while the template stays
// as it is. One that is to be mounted by a new template is not among it until then.
func (w workload) reloaded() map[string]string {
	if len(w.now.Live) > 0 || maps.Equal(w.now.Content, w.recorded.Content) {
		return w.now.Live
	}
	return w.recorded.Live
}

// contentAtZero is the change of a content in a template that mounts ConfigMaps
// by their own names, as revision 0 does: nothing but the stamp of the template
// tells it.
func (w workload) contentAtZero() []diff.Field {
	if w.revision != 0 || w.found {
		return nil
	}
	for _, name := range sortedKeys(w.recorded.Content) {
		if is := w.now.Content[name]; is != "" && is != w.recorded.Content[name] {
			return []diff.Field{{Path: templateStamp, From: w.recorded.Content[name], To: is}}
		}
	}
	return nil
}

// startsAgain lets a Pod go whose process cannot be brought to what its file says:
// a setting that was set in it is gone from the file, and what holds then is not
// known before it starts.
func (p planner) startsAgain(w workload, change plan.Change, why setting.Change) {
	change.Effect, change.Reason, change.Message = w.restart, "Outdated", "it needs a restart: "+why.String()
	if w.restart == plan.EffectDataLoss {
		change.Verdict, change.Reason = plan.VerdictHold, meta.ReasonUnsafeChange
		change.Message += "; its data is on an emptyDir volume and would be lost, so it is left to you to delete it"
		p.build.Note(change)
		return
	}
	p.mustGo[change.Object.Name] = true
	p.build.Note(change)
}

// livePath stands for the settings of a running process in a change.
const livePath = "settings of the running process"

// reasonRefused says that a node did not take a setting.
const reasonRefused = "Refused"

func recordLive(pod *corev1.Pod, r liveRecord) plan.Patch {
	return plan.Patch{
		Object: pod, Manager: FieldManager, Reason: "record which settings the running process has got",
		Fields: map[string]any{"metadata": map[string]any{"annotations": map[string]any{meta.AnnotationLive: r.String()}}},
	}
}

// pending notes what is to be done when a node answers. Where no event tells when
// that is, it is looked at again.
func (p planner) pending(c plan.Change, recheck bool) {
	p.build.Note(c)
	if recheck {
		p.rechecks[c.Object] = c.Message
	}
}

// rechecked adds to a plan that something is to be looked at again: at most once
// a minute, and not by all clusters at the same moment.
func (p planner) rechecked(built plan.Plan) plan.Plan {
	if len(p.rechecks) == 0 || len(built.Refused()) > 0 {
		return built
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.dc.UID))
	after := askEvery + time.Duration(h.Sum32()%1000)*askEvery/10000
	refs := slices.SortedFunc(maps.Keys(p.rechecks), func(a, b plan.Ref) int { return strings.Compare(a.Name, b.Name) })
	built.Steps = slices.Clone(built.Steps)
	for i, s := range built.Steps {
		if w, waits := s.(plan.Wait); waits {
			if w.Recheck == 0 || w.Recheck > after {
				w.Recheck = after
			}
			built.Steps[i] = w
			return built
		}
	}
	built.Steps = append(built.Steps, plan.Wait{
		On: refs[0], Reason: meta.ReasonCannotReachSystem, Recheck: after,
		Message: fmt.Sprintf("%s: %s", refs[0], p.rechecks[refs[0]]),
	})
	return built
}

func keysOf(changes []setting.Change) []string {
	var keys []string
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	return keys
}

// listed names the first of many settings.
func listed(keys []string) string {
	const shown = 5
	if len(keys) <= shown {
		return strings.Join(keys, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(keys[:shown], ", "), len(keys)-shown)
}

// address is where the node of a Pod listens, by the settings that it mounts.
func (p planner) address(kind dorisv1.ComponentType, pod *corev1.Pod) nodeAddress {
	recorded, _ := readAccepted(p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)])
	return nodeAddress{
		cluster: p.dc, kind: kind, pod: pod.Name, uid: pod.UID, host: pod.Status.PodIP, tls: p.encryptionOf(kind, recorded),
		account: p.world.Account, query: recorded.Frontend.Query, http: map[dorisv1.ComponentType]int32{
			dorisv1.ComponentFE: recorded.Frontend.HTTP, dorisv1.ComponentBE: recorded.Backend.Web, dorisv1.ComponentCN: recorded.Backend.Web,
		}[kind],
	}
}
