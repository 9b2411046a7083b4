package doris

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/rollout"
)

// What was rolled is on the set, in the annotation AnnotationHistory. An entry begins
// in the write that changes the Pod template, and ends in the one that forgets what the
// roll would go back to, or puts that back: whatever is cut short, neither is there
// without the other. Only a roll that somebody else began in the set is noted by itself,
// before its first Pod goes. The status of the resource repeats what is on the sets, and
// keeps it when a set is gone.

const (
	// keptOfSet and keptOfCluster bound how many rolls are remembered.
	keptOfSet     = 8
	keptOfCluster = 20
	// longestMessage bounds what is said of one of them.
	longestMessage = 300
)

// historyOf are the rolls of a component, the newest first.
func (p planner) historyOf(kind dorisv1.ComponentType) []dorisv1.RollRecord {
	return historyOf(p.dc, kind, p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)])
}

// historyOf reads the rolls of a component from its set, or, where that says nothing,
// from the status of the resource.
func historyOf(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType, set *appsv1.StatefulSet) []dorisv1.RollRecord {
	var out []dorisv1.RollRecord
	if set != nil && json.Unmarshal([]byte(set.Annotations[meta.AnnotationHistory]), &out) == nil {
		return out
	}
	out = nil
	for _, r := range dc.Status.History {
		if r.Component == kind {
			out = append(out, r)
		}
	}
	return out
}

// historyNow is what the status says of all components, the newest first.
func historyNow(dc *dorisv1.DorisCluster, w World) []dorisv1.RollRecord {
	var out []dorisv1.RollRecord
	for _, kind := range rendered {
		out = append(out, historyOf(dc, kind, w.StatefulSets[StatefulSetName(dc.Name, kind)])...)
	}
	slices.SortStableFunc(out, func(a, b dorisv1.RollRecord) int {
		return cmp.Or(b.Began.Compare(a.Began.Time), strings.Compare(string(a.Component), string(b.Component)))
	})
	return out[:min(len(out), keptOfCluster)]
}

// rememberHistory notes on a set what happens to its Pods by the write that is planned.
func (p planner) rememberHistory(w workload, target *appsv1.StatefulSet) {
	history := p.historyOf(w.kind)
	switch {
	case w.live == nil || w.lost:
	case w.back != nil:
		history = p.stop(history, w)
	case w.changes:
		history = p.begin(history, p.beginning(w))
	default:
		history, _ = p.end(history, w)
	}
	if len(history) > 0 {
		target.Annotations[meta.AnnotationHistory] = encoded(history)
	}
}

// underWay tells whether the newest roll is not over.
func underWay(history []dorisv1.RollRecord) bool {
	return len(history) > 0 && history[0].Outcome == dorisv1.RollUnderWay
}

func (p planner) begin(history []dorisv1.RollRecord, one dorisv1.RollRecord) []dorisv1.RollRecord {
	history = slices.Clone(history)
	if underWay(history) {
		history[0].Outcome, history[0].Ended = dorisv1.RollOvertaken, p.second()
	}
	history = slices.Insert(history, 0, one)
	return history[:min(len(history), keptOfSet)]
}

// stop notes that a roll has stopped.
func (p planner) stop(history []dorisv1.RollRecord, w workload) []dorisv1.RollRecord {
	if !underWay(history) {
		return history
	}
	history = slices.Clone(history)
	one := &history[0]
	one.Outcome, one.Ended, one.Pods = dorisv1.RollStopped, p.second(), int32(len(p.world.Pods[string(w.kind)])) //nolint:gosec // a number of Pods
	if w.failed.Rollback {
		one.Outcome = dorisv1.RollRolledBack
	}
	one.Message = "the roll of another component has stopped"
	if w.failed.Pod != "" {
		one.Message = fmt.Sprintf("%s did not come up (%s)", w.failed.Pod, w.failed.Why)
	}
	one.Message = one.Message[:min(len(one.Message), longestMessage)]
	return history
}

// end notes that a roll is over.
func (p planner) end(history []dorisv1.RollRecord, w workload) (now []dorisv1.RollRecord, ended bool) {
	if !underWay(history) || !p.rolled(w) || p.restarting(w) || notedAlone(history[0]) {
		return history, false
	}
	return p.ended(history, w.kind), true
}

// restarting tells whether Pods are still to go since somebody asked kubectl for it:
// their template is the same but for that.
func (p planner) restarting(w workload) bool {
	recorded, _ := readAccepted(w.live)
	asked := w.live.Spec.Template.Annotations[restartKubectl]
	return slices.ContainsFunc(p.world.Pods[string(w.kind)], func(pod corev1.Pod) bool {
		if stampOf(w.live) == "" {
			return restartAsked(w.live, &pod, recorded.Restart)
		}
		return asked != "" && pod.Annotations[restartKubectl] != asked
	})
}

func (p planner) ended(history []dorisv1.RollRecord, kind dorisv1.ComponentType) []dorisv1.RollRecord {
	history = slices.Clone(history)
	history[0].Outcome, history[0].Ended = dorisv1.RollDone, p.second()
	history[0].Pods = int32(len(p.world.Pods[string(kind)])) //nolint:gosec // a number of Pods
	return history
}

// second is the time of the planning as it is written.
func (p planner) second() *metav1.Time {
	return new(metav1.NewTime(p.now.Truncate(time.Second)).Rfc3339Copy())
}

// beginning is the roll that begins with the change of a template.
func (p planner) beginning(w workload) dorisv1.RollRecord {
	r := dorisv1.RollRecord{
		Component: w.kind, Began: *p.second(), Outcome: dorisv1.RollUnderWay, Cause: string(plan.CauseUser), Effect: string(w.restart),
		Changes: whatChanged(w.recorded, w.target, w.revision, w.at),
	}
	if len(w.edited) == 0 {
		r.Cause = string(plan.CauseRevision)
	} else if !slices.ContainsFunc(paths(w.edited), func(path string) bool { return w.editedCause(path) == plan.CauseUser }) {
		r.Cause = string(plan.CauseConfig)
	}
	if len(r.Changes) == 0 {
		r.Changes = []string{"the Pod template"}
	}
	asked := specPaths(w.recorded.Spec, w.target.Spec)
	if w.recorded.Restart.Seen != w.target.Restart.Seen {
		asked = append(asked, []string{"metadata", "annotations", restartKey(w.kind)})
	}
	r.By = authors(p.dc.ManagedFields, asked)
	if w.approved {
		for _, who := range authors(p.dc.ManagedFields, [][]string{{"metadata", "annotations", meta.AnnotationApprove}}) {
			r.By = append(r.By, who+" (approved)")
		}
	}
	return r
}

// What a roll was that no write of ours began.
const (
	// lostDefault is why a Pod is replaced whose template is right.
	lostDefault     = "a setting is gone from the configuration, and only a start brings its default back"
	backToGood      = "back to what ran before the change that failed"
	restartedBySet  = "kubectl rollout restart at "
	restOfTakenOver = "the rest of a roll that was found when the cluster was taken over"
	editedInSet     = "the Pod template, in the StatefulSet"
)

// notedAlone tells whether a roll was noted by itself, and so ends by itself: not with
// what is applied, which knows the Pods by what was rendered alone, but when none is to
// be replaced any more.
func notedAlone(r dorisv1.RollRecord) bool {
	return len(r.Changes) == 1 && (slices.Contains([]string{lostDefault, backToGood, restOfTakenOver, editedInSet}, r.Changes[0]) ||
		strings.HasPrefix(r.Changes[0], restartedBySet))
}

// noteHistory notes a roll that no write of ours began, before the first Pod of it goes.
// It tells what is still to come.
func (p planner) noteHistory(r rolling, name string) (first string) {
	set, kind, pod := r.sets[name], r.kinds[name], r.pods[name]
	history := p.historyOf(kind)
	failed, hasFailed := readFailed(set)
	if underWay(history) || hasFailed && madeFrom(pod, failed.Template) {
		return ""
	}
	const waits = "what is rolled to be written down"
	if r.busy[set.Name] {
		return waits
	}
	one := dorisv1.RollRecord{
		Component: kind, Began: *p.second(), Outcome: dorisv1.RollUnderWay, Cause: string(plan.CauseDrift), Effect: string(plan.EffectRestartPod),
		Changes: []string{editedInSet},
	}
	restarted := set.Spec.Template.Annotations[restartKubectl]
	switch {
	case p.mustGo[name]:
		one.Cause, one.Changes = string(plan.CauseConfig), []string{lostDefault}
	case len(history) > 0 && history[0].Outcome == dorisv1.RollStopped:
		one.Cause, one.Changes = string(plan.CauseUser), []string{backToGood}
	case restarted != "" && pod.Annotations[restartKubectl] != restarted:
		one.Cause, one.Changes = string(plan.CauseUser), []string{restartedBySet + restarted}
	case set.Annotations[meta.AnnotationRoll] == set.Status.UpdateRevision:
		one.Cause, one.Changes = string(plan.CauseRevision), []string{restOfTakenOver}
	}
	p.writeHistory(set, p.begin(history, one), "a roll begins")
	return waits
}

func (p planner) writeHistory(set *appsv1.StatefulSet, history []dorisv1.RollRecord, reason string) {
	p.write(note{on: set, key: meta.AnnotationHistory, is: encoded(history), cause: plan.CauseUser, reason: reason, message: recordedHere})
}

// endHistory ends what is over and is in no other write: of a set that is kept as it was
// found.
func (p planner) endHistory(w workload) {
	if history, ended := p.end(p.historyOf(w.kind), w); ended {
		p.writeHistory(w.live, history, "a roll is over")
	}
}

// endNoted ends rolls that were noted by themselves.
func (p planner) endNoted(r rolling) {
	for _, kind := range rendered {
		set, history := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)], p.historyOf(kind)
		if set == nil || r.busy[set.Name] || !underWay(history) || !notedAlone(history[0]) || len(p.world.Pods[string(kind)]) < int(ptr.Deref(set.Spec.Replicas, 1)) {
			continue
		}
		if !slices.ContainsFunc(r.members, func(m rollout.Member) bool { return m.Group == string(kind) && (m.Outdated || !m.Ready || m.Leaving) }) {
			p.writeHistory(set, p.ended(history, kind), "a roll is over")
		}
	}
}
