package doris

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// workload is a StatefulSet while it is decided what becomes of it.
type workload struct {
	kind dorisv1.ComponentType
	live *appsv1.StatefulSet
	// revision is the version of the rendering that the set uses.
	revision int
	// found tells that another operator made the set and that this is not noted on
	// it yet; untouched that its template was never rendered by us.
	found, untouched bool
	// lost tells that the record is gone from a set whose template we rendered: who
	// edited a field is then judged by its owner.
	lost bool
	// again tells that the set is gone, and that it is remembered what it was.
	again bool
	// recorded is what the template was last rendered from, and now what it would
	// be rendered from.
	recorded, now accepted
	// edited are the differences between the two renderings.
	edited      []diff.Field
	editedCause func(path string) plan.Cause
	// secrets is what becomes of changed Secrets.
	secrets secrets
	// target is what is rendered in the end, at which revision, and whether that
	// changes the template on purpose.
	target   accepted
	at       int
	changes  bool
	approved bool
	// offered are the differences of a newer rendering that a person consented to.
	offered []diff.Field
	restart plan.Effect
	// sizes say what the process makes of edits that reach it by a resize.
	sizes []string
	// back is the template that is put back, and failed why.
	back   *lastGood
	failed failedChange
}

// workloadOf reads from a set what it is and what it was rendered from.
func (p planner) workloadOf(kind dorisv1.ComponentType, settings Settings, has content) workload {
	live := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
	w := workload{kind: kind, live: live, revision: p.pinnedRevision(kind, live)}
	w.found = live != nil && !pinned(live)
	w.untouched = live != nil && stampOf(live) == ""
	recorded, known := readAccepted(p.remembers(kind))
	w.again = live == nil && known
	if has.lost && known {
		settings = recorded.settings(kind)
	}
	w.now = accepting(p.dc, kind, settings, has.copies)
	w.now.Live, w.now.Runtime = has.live, p.runtime[kind]
	w.secrets = p.secretsOfPods(kind, live, recorded)
	w.now.Secrets = w.secrets.now
	if !known {
		w.now.Restart = foundRestart(p.dc, kind, live)
		w.recorded = w.now
		w.lost = live != nil && !w.found && !w.untouched
		w.changes = w.lost
		return w
	}
	w.recorded = recorded
	w.now.Restart = p.nextRestart(kind, recorded.Restart)
	return w
}

// dataInCompute tells whether there are compute nodes that were never made compute
// nodes by their configuration.
func (p planner) dataInCompute() bool {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentCN)]
	recorded, known := readAccepted(set)
	return set != nil && (!known || !recorded.Backend.Computation)
}

// bootstrapped tells whether the frontends have served: the record says so, or
// one of them serves now, or the set was made by somebody else before us, or the
// claims of several are there, which are made only then. (The claims outlive the
// resource: one that is made again must start all of them, since a majority of
// those that knew each other has to meet.)
func (p planner) bootstrapped() bool {
	if p.world.FrontendClaims > 1 {
		return true
	}
	if p.world.OwnMaps[BootstrapConfigMapName(p.dc.Name)] != nil || servingFrontends(p.world) > 0 {
		return true
	}
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentFE)]
	return set != nil && !pinned(set)
}

// pinned tells whether a set was rendered or taken over by us. One that was not is
// taken over as it is. Should somebody take our annotations away, the template
// that we rendered and the ownership of its fields tell it too.
func pinned(set *appsv1.StatefulSet) bool {
	if set.Annotations[meta.AnnotationRevision] != "" {
		return true
	}
	owns := slices.ContainsFunc(set.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == FieldManager && m.Operation == metav1.ManagedFieldsOperationApply
	})
	return owns && stampOf(set) != ""
}

// pinnedRevision is the version of the rendering that a set uses: what is noted
// on it; for one that is gone, what the status of the resource says; that of the
// existing operator for a set that it made; the newest for a new one.
func (p planner) pinnedRevision(kind dorisv1.ComponentType, live *appsv1.StatefulSet) int {
	if live != nil && stampOf(live) == "" && !pinned(live) {
		return 0
	}
	if live != nil {
		if n, err := strconv.Atoi(live.Annotations[meta.AnnotationRevision]); err == nil && n >= 0 {
			return n
		}
	}
	for _, pin := range p.dc.Status.Workloads {
		if pin.Name == StatefulSetName(p.dc.Name, kind) {
			return int(pin.Revision)
		}
	}
	if live != nil && !pinned(live) {
		return 0
	}
	return LatestRevision
}

// foundRestart is the request for a restart that counts as done: the one that
// was there when the set was made or taken over.
func foundRestart(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType, live *appsv1.StatefulSet) restart {
	r := restart{Seen: dc.Annotations[restartKey(kind)]}
	if live != nil {
		r.Rendered = live.Spec.Template.Annotations[restartKey(kind)]
		r.Kubectl = live.Spec.Template.Annotations[restartKubectl]
	}
	return r
}

// nextRestart is the request to act on: a value that differs from the one that
// was last acted on.
func (p planner) nextRestart(kind dorisv1.ComponentType, was restart) restart {
	key := restartKey(kind)
	value := p.dc.Annotations[key]
	if value == "" || value == was.Seen {
		return was
	}
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		p.build.Find(plan.Finding{
			Severity: plan.Warning, Field: "metadata.annotations[" + strconv.Quote(key) + "]", Reason: reasonRestartTimeInvalid,
			Message: "it is not a time such as 2026-01-31T12:00:00Z, so nothing is restarted: set it to the present time",
		})
		return was
	}
	return restart{Seen: value, Rendered: value, Kubectl: was.Kubectl}
}

// reasonRestartTimeInvalid is the word of the existing operator.
const reasonRestartTimeInvalid = "RestartTimeInvalid"

// compareRecords fills in what the user and the configuration changed.
func (p planner) compareRecords(w *workload) error {
	w.editedCause = func(string) plan.Cause { return plan.CauseUser }
	if w.live == nil || w.recorded.same(w.now) {
		p.passwordEdited(w)
		return nil
	}
	base, same := p.rendered(*w, w.recorded, w.revision), p.rendered(*w, w.now, w.revision)
	fields, err := p.engine.Between(base, same)
	if err != nil {
		return err
	}
	w.edited = append(append(templateFields(fields), w.contentAtZero()...), w.secrets.inTemplate()...)
	config := w.recorded
	config.Frontend, config.Backend, config.Broker, config.Content = w.now.Frontend, w.now.Backend, w.now.Broker, w.now.Content
	byConfig, err := p.engine.Between(base, p.rendered(*w, config, w.revision))
	if err != nil {
		return err
	}
	p.passwordEdited(w)
	w.editedCause = func(path string) plan.Cause {
		if touches(byConfig, path) || len(w.secrets.followed) > 0 && diff.Overlap(path, templateStamp) {
			return plan.CauseConfig
		}
		return plan.CauseUser
	}
	return nil
}

// passwordEdited notes an edit of the password that revision 0 puts in plain text
// into the template. It is in no record, so it is compared with what is live.
func (p planner) passwordEdited(w *workload) {
	if w.live == nil || w.found || w.revision != 0 || p.dc.Spec.AdminUser == nil {
		return
	}
	for _, c := range w.live.Spec.Template.Spec.Containers {
		for _, e := range c.Env {
			if c.Name == string(w.kind) && e.Name == envPassword && e.Value != p.dc.Spec.AdminUser.Password {
				w.edited = append(w.edited, diff.Field{
					Path: fmt.Sprintf("spec.template.spec.containers[name=%q].env[name=%q].value", c.Name, e.Name),
					From: "(withheld)", To: "(withheld)",
				})
			}
		}
	}
}

// envPassword is the variable in which revision 0 hands over the password.
const envPassword = "PASSWD"

// rendered is the set of a workload as a record renders it.
func (p planner) rendered(w workload, from accepted, revision int) *appsv1.StatefulSet {
	set := from.render(p.dc, w.kind, rendering{
		revision: min(revision, LatestRevision), bootstrapped: p.bootstrapped(), configMaps: p.contentNamed(from.Content),
	}).StatefulSet
	if revision > LatestRevision && p.future != nil {
		p.future(set)
		set.Annotations[meta.AnnotationRevision] = strconv.Itoa(revision)
	}
	return set
}

func templateFields(fields []diff.Field) []diff.Field {
	var out []diff.Field
	for _, f := range fields {
		if plan.InTemplate(f.Path) {
			out = append(out, f)
		}
	}
	return out
}

func touches(fields []diff.Field, path string) bool {
	for _, f := range fields {
		if diff.Overlap(f.Path, path) {
			return true
		}
	}
	return false
}

// decide chooses what the template is rendered from and at which revision. What
// needs consent and has none stays as it was. content tells that a person consented
// to its content.
func (p planner) decide(w *workload, content bool) error {
	reloaded, err := p.compareContents(w)
	if err != nil {
		return err
	}
	w.restart = p.restartEffect(*w)
	w.target, w.at = w.now, w.revision
	if how, resizes := p.resizable(*w); resizes {
		w.restart, w.sizes = plan.EffectResizeOrRestart, how
	}
	if len(w.edited) > 0 {
		p.mayChange(w, content)
	}
	if w.live != nil && !w.changes {
		w.target = w.recorded // what renders the same needs no new record
		w.target.Live, w.target.Secrets = reloaded, w.secrets.quiet
	}
	if w.again {
		w.target = w.recorded
	}
	if err := p.offer(w); err != nil {
		return err
	}
	return p.goBack(w)
}

// offer holds what a newer rendering would change, or takes it into the target
// where a person consented.
func (p planner) offer(w *workload) error {
	if w.live == nil || w.found || w.revision >= p.latest {
		return nil
	}
	offered, err := p.engine.Between(p.rendered(*w, w.target, w.revision), p.rendered(*w, w.target, p.latest))
	if err != nil {
		return err
	}
	offered = templateFields(offered)
	if p.build.Hold(plan.Consents(w.live), p.offerChanges(*w, offered)) {
		w.at, w.offered, w.changes, w.approved = p.latest, offered, true, true
		if w.restart == plan.EffectResizeOrRestart { // not by sizes alone any more
			w.restart = plan.EffectRestartPod
		}
	}
	return nil
}

// lossChanges are the edits of a template whose Pods lose their data when they
// are replaced.
func (w workload) lossChanges() []plan.Change {
	changes := w.editChanges()
	for i := range changes {
		changes[i].Reason, changes[i].Message = meta.ReasonUnsafeChange, "the data of the Pods is on emptyDir volumes and is gone when they are replaced"
	}
	return changes
}

// offerChanges are what a newer rendering would change.
func (p planner) offerChanges(w workload, fields []diff.Field) []plan.Change {
	changes := make([]plan.Change, 0, len(fields))
	for _, f := range fields {
		changes = append(changes, plan.Change{
			Object: plan.RefOf(w.live), Path: f.Path, From: f.From, To: f.To,
			Cause: plan.CauseRevision, Effect: w.restart, Reason: meta.ReasonConsentNeeded,
			Message: "revision " + strconv.Itoa(p.latest) + " of the rendering; nothing moves until a person accepts",
		})
	}
	return changes
}

// restartEffect is what replacing a Pod of the set means. The data of a Pod on an
// emptyDir goes with it. That of a frontend is on the others too, if they are a
// majority without it, and it has it again when it is ready; whether every tablet
// of a backend has another healthy copy is not known here.
func (p planner) restartEffect(w workload) plan.Effect {
	if w.live == nil || ptr.Deref(w.live.Spec.Replicas, 1) == 0 {
		return plan.EffectRestartPod
	}
	dirs := w.recorded.Backend.StorageRoots
	if w.recorded.Backend.Computation {
		return plan.EffectRestartPod // they keep a cache
	}
	if w.kind == dorisv1.ComponentFE {
		if ptr.Deref(w.live.Spec.Replicas, 1) >= quorumOfThree {
			return plan.EffectRestartPod
		}
		dirs = []string{w.recorded.Frontend.MetaDir}
	}
	for _, dir := range dirs {
		if !onClaim(w.live, string(w.kind), dir) {
			return plan.EffectDataLoss
		}
	}
	return plan.EffectRestartPod
}

// quorumOfThree is the smallest number of frontends of which one may be lost.
const quorumOfThree = 3
