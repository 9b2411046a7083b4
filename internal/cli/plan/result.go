package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/config"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/rollout"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// Result is the plan for one resource; it is what -o prints.
type Result struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Summary   string `json:"summary"`
	// Notes are what there is to know beside the plan.
	Notes     []string `json:"notes,omitempty"`
	plan.Plan `json:",inline"`
	// Sets are the held changes by what a person can approve.
	Sets []plan.Held `json:"heldSets,omitempty"`
	// Pods are those that the changes concern, in the order in which they go.
	Pods []Pod `json:"pods,omitempty"`
	// Claims are the claims, with the data on them, that would go.
	Claims []plan.Change `json:"claims,omitempty"`
	// IfLost are the Pods that nothing replaces now and that would come back
	// different from what they are.
	IfLost []Lost `json:"ifLost,omitempty"`
	// Next lists what the operator would do right away, up to the first thing
	// that it has to wait for.
	Next []string `json:"next,omitempty"`
	// Manifest tells that the plan is for a file that is not applied yet.
	Manifest bool `json:"manifest,omitempty"`
}

// Pod is what happens to one Pod.
type Pod struct {
	// Order is its place among those that are replaced, from 1; 0 when it stays.
	Order   int          `json:"order,omitempty"`
	Name    string       `json:"name"`
	Effect  plan.Effect  `json:"effect"`
	Cause   plan.Cause   `json:"cause"`
	Verdict plan.Verdict `json:"verdict"`
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
}

// Lost is a Pod that would come back different.
type Lost struct {
	Pod string `json:"pod"`
	// Has and Gets are revisions of the template of its set.
	Has  string `json:"has"`
	Gets string `json:"gets"`
	// Images are those that would be different, as "container: from -> to".
	Images []string `json:"images,omitempty"`
}

// Subject is one resource with all that its plan depends on.
type Subject struct {
	// Cluster is the resource as it is planned for.
	Cluster *dorisv1.DorisCluster
	World   doris.World

	system *doris.System
	now    time.Time
}

// Look reads what a plan for the resource depends on. c may answer for files that
// are not applied yet.
func Look(ctx context.Context, c client.Reader, dc *dorisv1.DorisCluster, now time.Time) (*Subject, error) {
	s := &Subject{Cluster: dc, system: doris.New(diff.New(kube.Scheme())).TunedBy(tuned()), now: now}
	var err error
	if s.World, err = s.system.Observe(ctx, kube.Observer(c, dc), dc); err != nil {
		return nil, fmt.Errorf("reading what DorisCluster %q in namespace %q is made of: %w", dc.Name, dc.Namespace, err)
	}
	return s, nil
}

// tuned decides the options of a resource as an operator without a configuration
// would. They say when something happens and never what, so the plan is the same;
// but faults of annotations are found.
func tuned() func(namespace string, annotations map[string]string) doris.Tuning {
	sources := config.Sources{
		Table: config.Table(nil), Defaults: config.Defaults([]string{"doriscluster"}),
		Changed: func(string) bool { return false }, Env: func(string) (string, bool) { return "", false },
	}
	e, _ := sources.Effective(nil) // nothing is given that could be at fault
	return func(namespace string, annotations map[string]string) doris.Tuning {
		return doris.Tuning(e.For(sources.Table, namespace, annotations))
	}
}

// Plan plans for the resource with other annotations: those that are nil are
// taken away.
func (s *Subject) Plan(annotations map[string]*string) (Result, error) {
	dc := s.Cluster
	if len(annotations) > 0 {
		dc = dc.DeepCopy()
		all := maps.Clone(dc.Annotations)
		if all == nil {
			all = map[string]string{}
		}
		for key, value := range annotations {
			delete(all, key)
			if value != nil {
				all[key] = *value
			}
		}
		dc.Annotations = all
	}
	p, err := s.system.Plan(dc, s.World, s.now)
	if err != nil {
		return Result{}, fmt.Errorf("planning DorisCluster %q in namespace %q: %w", dc.Name, dc.Namespace, err)
	}
	return s.result(dc, p), nil
}

func (s *Subject) result(dc *dorisv1.DorisCluster, p plan.Plan) Result {
	r := Result{Kind: dorisv1.Kind, Namespace: dc.Namespace, Name: dc.Name, Plan: p, Sets: p.HeldSets()}
	if r.Changes == nil {
		r.Changes = []plan.Change{} // programs read a list
	}
	r.Pods = s.pods(p)
	r.IfLost = s.Behind()
	if len(p.Refused()) == 0 && !meta.Paused(dc.Annotations) {
		r.IfLost = slices.DeleteFunc(r.IfLost, func(l Lost) bool { return going(r.Pods, l.Pod) })
	}
	for _, c := range p.Changes {
		if c.Object.Kind == "PersistentVolumeClaim" && c.Path == "" && c.To != "created" {
			r.Claims = append(r.Claims, c)
		}
	}
	for _, step := range p.Steps {
		r.Next = append(r.Next, nextLine(step))
	}
	if !dc.DeletionTimestamp.IsZero() {
		r.Notes = append(r.Notes, "it is being deleted: the operator does nothing for it any more")
	}
	if meta.Paused(dc.Annotations) {
		r.Notes = append(r.Notes, fmt.Sprintf("it is paused: nothing of this is carried out before `kubectl fairlead resume %s/%s -n %s`", kube.ShortKind, dc.Name, dc.Namespace))
	}
	if meta.Released(dc.Annotations) {
		r.Notes = append(r.Notes, fmt.Sprintf("it is released: the operator hands the workloads back, and does nothing more before `kubectl fairlead release %s/%s -n %s --undo`", kube.ShortKind, dc.Name, dc.Namespace))
	}
	r.Summary = summary(r)
	return r
}

func nextLine(s plan.Step) string {
	if w, ok := s.(plan.Wait); ok {
		return "wait: " + w.Message
	}
	return s.Target().String() + ": " + s.Why()
}

// pods lists the Pods of the changes: those that go in the order in which they do
// by the rule of the roll, then those that stay.
func (s *Subject) pods(p plan.Plan) []Pod {
	evicted := map[string]bool{}
	for _, step := range p.Steps {
		if e, ok := step.(plan.Evict); ok {
			evicted[e.Pod.GetName()] = true
		}
	}
	var out []Pod
	for _, c := range p.Changes {
		if c.Object.Kind == "Pod" && !plan.Bookkeeping(c.Path) {
			out = append(out, Pod{Name: c.Object.Name, Effect: c.Effect, Cause: c.Cause, Verdict: c.Verdict, Reason: c.Reason, Message: c.Message})
		}
	}
	turn := s.turns()
	rank := func(p Pod) int {
		switch {
		case !replaces(p.Effect, p.Verdict, p.Reason):
			return 2
		case evicted[p.Name]:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b Pod) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return turn[a.Name] - turn[b.Name]
	})
	for i := range out {
		if rank(out[i]) < 2 {
			out[i].Order = i + 1
		}
	}
	return out
}

// replaces tells whether a change of a Pod makes it go, now or when its turn comes.
// One that stays to be looked at does not; nor does what is done to a member.
func replaces(effect plan.Effect, verdict plan.Verdict, reason string) bool {
	switch effect {
	case plan.EffectNone, plan.EffectReload, plan.EffectResize:
		return false
	case plan.EffectReloadOrRestart, plan.EffectResizeOrRestart, plan.EffectRestartContainer, plan.EffectRestartPod, plan.EffectRecreate, plan.EffectDataLoss:
	}
	return (verdict == plan.VerdictApply || verdict == plan.VerdictWait) && !stays(verdict, reason)
}

// stays tells whether nothing becomes of a change before the spec is mended.
func stays(verdict plan.Verdict, reason string) bool {
	return verdict == plan.VerdictWait && reason == meta.ReasonMemberFailed
}

// turns tells in which order Pods would go if all were to be replaced: those
// that start last first, frontends last, of these observers first and the master last, the
// highest ordinal first; but those that do not serve before all others.
func (s *Subject) turns() map[string]int {
	var members []rollout.Member
	for _, c := range doris.Components() {
		for i := range s.World.Pods[string(c)] {
			pod := &s.World.Pods[string(c)][i]
			members = append(members, rollout.Member{Name: pod.Name, Rank: doris.RankOf(s.Cluster, c, pod.Name), Ordinal: len(members), Ready: Ready(pod), Outdated: true})
		}
	}
	turn := map[string]int{}
	for range members {
		next := rollout.Next(rollout.Roll{Members: members, Size: len(members)}).Name
		turn[next] = len(turn) + 1
		for i := range members {
			if members[i].Name == next {
				members[i].Outdated, members[i].Ready = false, true
			}
		}
	}
	return turn
}

// Ready tells whether a Pod serves.
func Ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp.IsZero() && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// going tells whether a Pod is replaced anyway.
func going(pods []Pod, name string) bool {
	return slices.ContainsFunc(pods, func(p Pod) bool { return p.Name == name && p.Order > 0 })
}

// Behind lists the Pods that are on another template than their set has now, those
// with the highest ordinal first.
func (s *Subject) Behind() []Lost {
	var out []Lost
	for _, name := range slices.Sorted(maps.Keys(s.World.StatefulSets)) {
		set := s.World.StatefulSets[name]
		if set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == "" {
			continue // nobody knows yet
		}
		for _, component := range slices.Sorted(maps.Keys(s.World.Pods)) {
			for i := range slices.Backward(s.World.Pods[component]) {
				pod := &s.World.Pods[component][i]
				has := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
				if !ownedBy(pod, set) || has == set.Status.UpdateRevision {
					continue
				}
				out = append(out, Lost{Pod: pod.Name, Has: has, Gets: set.Status.UpdateRevision, Images: images(pod, set)})
			}
		}
	}
	return out
}

func ownedBy(pod *corev1.Pod, set *appsv1.StatefulSet) bool {
	for _, o := range pod.OwnerReferences {
		if o.UID == set.UID && o.Controller != nil && *o.Controller {
			return true
		}
	}
	return false
}

// images lists the images by which a Pod differs from the template of its set.
func images(pod *corev1.Pod, set *appsv1.StatefulSet) []string {
	has := map[string]string{}
	for _, c := range pod.Spec.Containers {
		has[c.Name] = c.Image
	}
	var out []string
	for _, c := range set.Spec.Template.Spec.Containers {
		if has[c.Name] != c.Image {
			out = append(out, fmt.Sprintf("%s: %s -> %s", c.Name, has[c.Name], c.Image))
		}
	}
	return out
}

// asked tells whether a refused change is one that somebody asked for, rather than
// a note about what somebody else did.
func asked(c plan.Change) bool {
	return c.Verdict == plan.VerdictRefuse && c.Cause != plan.CauseDrift && c.Cause != plan.CauseRuntime
}
