package doris

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// A Pod that is replaced is made from the newest template of its set, whatever the
// update strategy says. So when a roll stops at a Pod that does not come up, the
// template goes back to what the other Pods run on: one that is lost meanwhile
// comes back on that. The Pod that failed stays, to be looked at, unless the spec says
// that all go back.

// lastGood is the template that the Pods of a set ran on before the roll that is
// under way. It is on the set, in the annotation AnnotationLastGood, from the write
// that changes the template until every Pod is there and ready on the new one.
type lastGood struct {
	Revision int `json:"revision"`
	// Template is the stamp of the template; empty where it was found without one.
	Template string   `json:"template,omitempty"`
	Accepted accepted `json:"accepted"`
	// Retried is the UID of the Pod on which the same template failed before, where a
	// person asked for another attempt. It is made again first, and what has become of
	// it so far does not count against that attempt.
	Retried string `json:"retried,omitempty"`
}

// retried tells whether a Pod is what is left of an earlier attempt, and has not come up
// after all.
func retried(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	good, rolling := readLastGood(set)
	return rolling && good.Retried != "" && good.Retried == string(pod.UID) && !ready(pod)
}

// failedChange is a change of a template that was taken back, in the annotation
// AnnotationFailed on the set. What failed once is not tried again before something
// of what it came from is different.
type failedChange struct {
	// Inputs is a digest of what the template came from.
	Inputs string `json:"inputs"`
	// Secrets is a digest of what the processes read of Secrets.
	Secrets string `json:"secrets,omitempty"`
	// Template is the stamp of the template that failed.
	Template string `json:"template"`
	// Pod did not come up, and Why.
	Pod string `json:"pod"`
	Why string `json:"why"`
	// Rollback tells that the Pods that were made from it are replaced.
	Rollback bool `json:"rollback,omitempty"`
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("record: %v", err)) // types of this package and of the API can be encoded
	}
	return string(text)
}

func readLastGood(set *appsv1.StatefulSet) (g lastGood, ok bool) {
	if set == nil || json.Unmarshal([]byte(set.Annotations[meta.AnnotationLastGood]), &g) != nil {
		return lastGood{}, false
	}
	return g, g.Accepted.Version == acceptedVersion && g.Revision >= 0 && g.Revision <= LatestRevision
}

func readFailed(set *appsv1.StatefulSet) (f failedChange, ok bool) {
	if set == nil || json.Unmarshal([]byte(set.Annotations[meta.AnnotationFailed]), &f) != nil {
		return failedChange{}, false
	}
	return f, f.Inputs != "" && f.Template != ""
}

// stampOf is the stamp of the template of a set; empty where it has none.
func stampOf(set *appsv1.StatefulSet) string {
	return set.Spec.Template.Annotations[meta.AnnotationTemplate]
}

// madeFrom tells whether a Pod was made from the template with a stamp.
func madeFrom(pod *corev1.Pod, stamp string) bool {
	return pod.Annotations[meta.AnnotationTemplate] == stamp
}

// kept tells whether a Pod was made from a template that failed and was put back:
// it stays until the spec is mended, or is not to be kept.
func kept(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	f, failed := readFailed(set)
	return failed && !f.Rollback && madeFrom(pod, f.Template) && stampOf(set) != f.Template
}

// inputsNow is a digest of all that the template of a component comes from now,
// followed or not.
func (p planner) inputsNow(kind dorisv1.ComponentType) string {
	content := map[string]string{}
	for _, name := range mountedMaps(p.dc, kind) {
		if cm := p.world.ConfigMaps[name]; cm != nil {
			content[name] = copyName(p.dc.Name, cm)
		}
	}
	sum := sha256.Sum256([]byte(encoded([]any{templateSpec(p.dc, kind), content, p.dc.Annotations[restartKey(kind)]})))
	return hex.EncodeToString(sum[:8])
}

// stopped is the change at which the roll of a component has stopped: it failed,
// nothing that it came from is different since, and the Pod has not come up after
// all.
func (p planner) stopped(kind dorisv1.ComponentType) (failedChange, bool) {
	f, failed := readFailed(p.remembers(kind))
	if !failed || specOf(p.dc, kind) == nil || f.Inputs != p.inputsNow(kind) || f.Secrets != "" && f.Secrets != p.secretsDigest(kind) {
		return failedChange{}, false
	}
	for i := range p.world.Pods[string(kind)] {
		pod := &p.world.Pods[string(kind)][i]
		if pod.Name == f.Pod && madeFrom(pod, f.Template) && ready(pod) {
			return failedChange{}, false
		}
	}
	f.Rollback = p.rollsBack()
	return f, true
}

// stoppedElsewhere names the component whose roll has stopped, if it is another one.
func (p planner) stoppedElsewhere(kind dorisv1.ComponentType) string {
	for _, other := range rendered {
		if f, stopped := p.stopped(other); stopped && other != kind {
			return f.Pod + " does not come up (" + f.Why + ")"
		}
	}
	return ""
}

// waitsForAnother tells why the template of a component that runs well is not changed now:
// the cluster is in the middle of a roll that has stopped at another component.
func (p planner) waitsForAnother(w workload) string {
	if w.live == nil || slices.ContainsFunc(p.world.Pods[string(w.kind)], func(pod corev1.Pod) bool { return !ready(&pod) }) {
		return ""
	}
	return p.stoppedElsewhere(w.kind)
}

// mayChange decides whether the edits of a template are carried out now. content tells
// that a person consented to its content.
func (p planner) mayChange(w *workload, content bool) {
	failed, stopped := p.stopped(w.kind)
	waits := p.waitsForAnother(*w)
	before, lacks := p.goesBefore(*w)
	switch {
	case waits != "":
		for _, c := range w.editChanges() {
			c.Verdict, c.Reason, c.Message = plan.VerdictWait, meta.ReasonMemberFailed, "changed when the roll of the other component is over: "+waits
			p.build.Note(c)
		}
		return
	case stopped:
		changes := w.editChanges()
		for i := range changes {
			changes[i].Reason, changes[i].Message = meta.ReasonMemberFailed, failed.said()
		}
		w.approved = content || p.build.Hold(plan.Consents(w.live), changes)
	case w.restart == plan.EffectDataLoss:
		w.approved = p.build.Hold(plan.Consents(w.live), w.lossChanges())
	case lacks:
		for _, c := range w.editChanges() {
			c.Verdict, c.Reason, c.Message = plan.VerdictWait, meta.ReasonMissingReference, "changed after the "+before+", which get another version first and lack what the spec names"
			p.build.Note(c)
		}
		return
	case before != "":
		p.later[w.kind] = true
		for _, c := range w.editChanges() {
			c.Verdict, c.Reason, c.Message = plan.VerdictWait, reasonOutdated, "changed when its turn comes, after the "+before+": one that is lost before that comes back as it was"
			p.build.Note(c)
		}
		return
	default:
		w.changes = true
		return
	}
	w.changes = w.approved
}

// editChanges are the edits of a template as changes without a verdict.
func (w workload) editChanges() []plan.Change {
	changes := make([]plan.Change, 0, len(w.edited))
	for _, f := range w.edited {
		changes = append(changes, plan.Change{
			Object: plan.RefOf(w.live), Path: f.Path, From: f.From, To: f.To, Cause: w.editedCause(f.Path), Effect: w.restart,
		})
	}
	return changes
}

// said is what a person is told of a change that failed.
func (f failedChange) said() string {
	put := "the Pod template was put back"
	if f.Rollback {
		put = "it was rolled back"
	}
	return fmt.Sprintf("it was tried: %s did not come up (%s), and %s. Mend the spec or what it names; or approve, to try the same again", f.Pod, f.Why, put)
}

// goBack puts the template back where the roll of this component, or of another
// one, has stopped.
func (p planner) goBack(w *workload) error {
	good, known := readLastGood(w.live)
	if !known || w.found || w.changes || unseen(w.live) || good.Template == stampOf(w.live) {
		return nil
	}
	failed, proven := p.failedOn(*w)
	if failed.Pod == "" && (proven || p.stoppedElsewhere(w.kind) == "") {
		return nil
	}
	fields, err := p.engine.Between(p.rendered(*w, w.recorded, w.revision), p.rendered(*w, good.Accepted, good.Revision))
	if err != nil {
		return err
	}
	w.edited, w.editedCause = templateFields(fields), func(string) plan.Cause { return plan.CauseUser }
	w.target, w.at, w.changes, w.restart = good.Accepted, good.Revision, true, plan.EffectNone
	w.back, w.failed = &good, failed
	return nil
}

// failedOn is the Pod that does not come up on the newest template of its set;
// proven tells that another one did. Where all others did, nothing would be bound
// by putting the template back.
func (p planner) failedOn(w workload) (failed failedChange, proven bool) {
	stamp, older := stampOf(w.live), false
	for i := range p.world.Pods[string(w.kind)] {
		pod := &p.world.Pods[string(w.kind)][i]
		why, fails := p.fails(w.kind, pod)
		switch {
		case !madeFrom(pod, stamp), retried(w.live, pod):
			older = true
		case ready(pod):
			proven = true
		case fails && pod.DeletionTimestamp == nil && failed.Pod == "":
			failed = failedChange{Inputs: p.inputsNow(w.kind), Secrets: p.secretsDigest(w.kind), Template: stamp, Pod: pod.Name, Why: why, Rollback: p.rollsBack()}
		}
	}
	if proven && !older {
		return failedChange{}, true
	}
	return failed, proven
}

// remember notes on a set what a roll goes back to, and what has failed.
func (p planner) remember(w workload, target *appsv1.StatefulSet) {
	note := func(key, value string) {
		if value != "" {
			target.Annotations[key] = value
		}
	}
	if w.live != nil { // of which somebody may have taken some away
		note(meta.AnnotationConsents, w.live.Annotations[meta.AnnotationConsents])
	}
	switch {
	case w.live == nil || w.lost:
	case w.back != nil:
		if w.failed.Pod != "" {
			note(meta.AnnotationFailed, encoded(w.failed))
		}
	case w.changes:
		note(meta.AnnotationLastGood, p.goodNow(w))
	default:
		if f, stopped := p.stopped(w.kind); stopped {
			note(meta.AnnotationFailed, encoded(f))
		}
		if !p.rolled(w) {
			note(meta.AnnotationLastGood, w.live.Annotations[meta.AnnotationLastGood])
		}
	}
}

// goodNow is what a roll that begins now goes back to: where the last one went on to,
// if it is over, and what it would go back to, if it is not. A template on which no
// Pod has come up is nothing to go back to.
func (p planner) goodNow(w workload) string {
	_, putBack := readFailed(w.live)
	if _, rolling := readLastGood(w.live); rolling && !putBack {
		return w.live.Annotations[meta.AnnotationLastGood]
	}
	pods := p.world.Pods[string(w.kind)]
	if !putBack && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return ready(&pod) && current(w.live, &pod) }) {
		return ""
	}
	good := lastGood{Revision: w.revision, Template: stampOf(w.live), Accepted: w.recorded}
	if f, stopped := p.stopped(w.kind); stopped {
		for i := range pods {
			if pods[i].Name == f.Pod && madeFrom(&pods[i], f.Template) {
				good.Retried = string(pods[i].UID)
			}
		}
	}
	return encoded(good)
}

// rolled tells whether every Pod of a set is there and ready on its template.
func (p planner) rolled(w workload) bool {
	return allRolled(w.live, p.world.Pods[string(w.kind)], ptr.Deref(w.live.Spec.Replicas, 1))
}

// allRolled tells whether so many Pods of a set are there, and each is ready and made from
// its newest template.
func allRolled(set *appsv1.StatefulSet, pods []corev1.Pod, n int32) bool {
	return !unseen(set) && len(pods) >= int(n) &&
		!slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !ready(&pod) || !current(set, &pod) })
}

// forgetFailure takes away what a set that is kept as it was found remembers of a
// change that failed, when that is mended; or says what becomes of its Pods, when the
// spec says it differently now.
func (p planner) forgetFailure(w workload) {
	f, stopped := p.stopped(w.kind)
	was := w.live.Annotations[meta.AnnotationFailed]
	if was == "" || stopped && was == encoded(f) {
		return
	}
	var is any
	reason := "forget the change that failed: it is mended"
	if stopped {
		is, reason = encoded(f), "what becomes of the Pods that were made from the change that failed"
	}
	p.write(note{on: w.live, key: meta.AnnotationFailed, is: is, cause: plan.CauseUser, reason: reason, message: recordedHere})
}

// standstill says of the Pods that were made from a change that failed what becomes
// of them, and that nothing goes on until it is mended.
func (p planner) standstill() {
	for _, kind := range rendered {
		f, stopped := p.stopped(kind)
		if !stopped {
			continue
		}
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		for i := range p.world.Pods[string(kind)] {
			pod := &p.world.Pods[string(kind)][i]
			if !kept(set, pod) {
				continue
			}
			p.build.Note(plan.Change{
				Object: plan.RefOf(pod), Cause: plan.CauseUser, Effect: plan.EffectRestartPod, Verdict: plan.VerdictWait, Reason: meta.ReasonMemberFailed,
				Message: "made from the change that failed; it stays to be looked at and is replaced when the spec is mended. Should it be lost, it comes back as it was before that change",
			})
		}
		p.build.Wait(plan.Wait{
			On: plan.RefOf(set), Reason: meta.ReasonMemberFailed, Person: true,
			Message: fmt.Sprintf("replacing Pods: %s, since %s does not come up (%s). The Pod template is as it was before: mend the spec or what it names, or approve what is held to try the same again", f.stands(), f.Pod, f.Why),
		})
	}
}

// update says what the write of a set is for, where its fields do not tell.
func (w workload) update() string {
	switch {
	case w.failed.Pod != "":
		return fmt.Sprintf("put the Pod template back: %s does not come up (%s)", w.failed.Pod, w.failed.Why)
	case w.back != nil:
		return "put the Pod template back: the roll has stopped at another component"
	}
	return ""
}
