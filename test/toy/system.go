package toy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/rollout"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// Manager is the field manager of the toy's objects.
const Manager = "fairlead-toy"

// label marks what the toy made; its value is the name of the Toy.
const label = "toy.fairlead.dev/name"

// Faults that a spec can ask for.
const (
	PanicInObserve = "panic in Observe"
	PanicInPlan    = "panic in Plan"
	PanicInReport  = "panic in Report"
	Hang           = "hang in Observe"
	Refuse         = "refused by the planner"
	Restless       = "never settles"
)

// World is what the toy observes.
type World struct {
	ConfigMaps map[string]*corev1.ConfigMap
	Service    *corev1.Service
	Sets       map[string]*appsv1.StatefulSet
	Pods       []corev1.Pod
	Reference  *corev1.ConfigMap
}

// System is the toy. It counts what it is asked.
type System struct {
	Engine *diff.Engine
	// Observes counts calls of Observe; Rounds makes plans that never settle.
	Observes, Rounds atomic.Int64
}

// Watches lists what belongs to a Toy.
func Watches() []observe.Watch {
	ours, err := labels.Parse(label)
	if err != nil {
		panic(err) // a constant of this package is wrong
	}
	var out []observe.Watch
	for _, o := range []client.Object{&corev1.ConfigMap{}, &corev1.Service{}, &appsv1.StatefulSet{}, &corev1.Pod{}} {
		out = append(out, observe.Watch{Object: o, Selector: ours, Owner: Owner})
	}
	return out
}

// Owner tells to which Toy an object belongs.
func Owner(o client.Object) string { return o.GetLabels()[label] }

// Observe implements kernel.System.
func (s *System) Observe(ctx context.Context, r observe.Reader, t *Toy) (World, error) {
	s.Observes.Add(1)
	switch t.Spec.Fault {
	case PanicInObserve:
		panic("told to")
	case Hang:
		<-ctx.Done()
		return World{}, ctx.Err()
	}
	w := World{ConfigMaps: map[string]*corev1.ConfigMap{}, Sets: map[string]*appsv1.StatefulSet{}}
	for _, name := range configMapNames(t) {
		cm := &corev1.ConfigMap{}
		if found, err := get(ctx, r, t, name, cm); err != nil {
			return World{}, err
		} else if found {
			w.ConfigMaps[name] = cm
		}
	}
	service := &corev1.Service{}
	if found, err := get(ctx, r, t, t.Name, service); err != nil {
		return World{}, err
	} else if found {
		w.Service = service
	}
	for _, name := range setNames(t) {
		set := &appsv1.StatefulSet{}
		if found, err := get(ctx, r, t, name, set); err != nil {
			return World{}, err
		} else if found {
			w.Sets[name] = set
		}
	}
	return w, s.observeMore(ctx, r, t, &w)
}

func (s *System) observeMore(ctx context.Context, r observe.Reader, t *Toy, w *World) error {
	var owned corev1.ConfigMapList
	if err := r.Owned(ctx, &owned); err != nil {
		return fmt.Errorf("listing ConfigMaps: %w", err)
	}
	for i := range owned.Items {
		if cm := &owned.Items[i]; w.ConfigMaps[cm.Name] == nil {
			w.ConfigMaps[cm.Name] = cm
		}
	}
	var pods corev1.PodList
	if err := r.Owned(ctx, &pods); err != nil {
		return fmt.Errorf("listing Pods: %w", err)
	}
	w.Pods = pods.Items
	slices.SortFunc(w.Pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if t.Spec.ConfigMapRef != "" {
		cm, err := r.ConfigMap(ctx, t.Spec.ConfigMapRef)
		if err != nil {
			return err
		}
		w.Reference = cm
	}
	if t.Spec.SecretRef != "" {
		if _, err := r.Secret(ctx, t.Spec.SecretRef); err != nil {
			return err
		}
	}
	return nil
}

func get(ctx context.Context, r observe.Reader, t *Toy, name string, into client.Object) (bool, error) {
	err := r.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Plan implements kernel.System.
func (s *System) Plan(t *Toy, w World, _ time.Time) (plan.Plan, error) {
	if t.Spec.Fault == PanicInPlan {
		panic("told to")
	}
	b := plan.NewBuilder(s.Engine, Manager)
	if t.Spec.Fault == Refuse {
		b.Find(plan.Finding{Severity: plan.Refusal, Field: "spec.fault", Reason: "InvalidSpec", Message: "told to refuse"})
	}
	content := t.Spec.Config
	if w.Reference != nil {
		content += w.Reference.Data["k"]
	}
	if t.Spec.Fault == Restless {
		content = fmt.Sprint(s.Rounds.Add(1))
	}
	wanted := configMapNames(t)
	for _, name := range wanted {
		b.Want(plan.Want{Rendered: configMap(t, name, content), Live: orNil(w.ConfigMaps[name]), Reason: "content"})
	}
	b.Want(plan.Want{Rendered: service(t), Live: orNil(w.Service), Reason: "access"})
	for _, name := range setNames(t) {
		b.Want(plan.Want{Rendered: set(t, name), Live: orNil(w.Sets[name]), Reason: "Pods"})
		if n, want := len(readyPods(w, name)), int(*t.Spec.Replicas); n < want && w.Sets[name] == nil {
			b.Wait(plan.Wait{On: ref(t, "StatefulSet", name), Reason: "NotReady", Message: name + " to become ready"})
		}
	}
	roll(b, t, w)
	prune(b, t, w, wanted)
	return b.Plan()
}

// roll replaces outdated Pods one at a time over both sets.
func roll(b *plan.Builder, t *Toy, w World) {
	for _, name := range setNames(t) {
		set := w.Sets[name]
		if set == nil || b.Blocked() {
			return
		}
		if set.Status.ObservedGeneration != set.Generation {
			b.Wait(plan.Wait{On: ref(t, "StatefulSet", name), Reason: "NotObserved", Message: name + " to be seen"})
			return
		}
		choice := rollout.Next(rollout.Roll{Members: members(set, w), Size: int(*set.Spec.Replicas)})
		if choice.Waiting != "" {
			b.Wait(plan.Wait{On: ref(t, "StatefulSet", name), Reason: "Rolling", Message: choice.Waiting})
		}
		for i := range w.Pods {
			if pod := &w.Pods[i]; pod.Name == choice.Name {
				b.Step(plan.Change{
					Object: plan.RefOf(pod), From: pod.Labels[appsv1.ControllerRevisionHashLabelKey], To: set.Status.UpdateRevision,
					Cause: plan.CauseUser, Effect: plan.EffectRestartPod, Verdict: plan.VerdictApply, Reason: "Outdated",
				}, plan.Evict{Pod: pod, Reason: "outdated"})
				b.Wait(plan.Wait{On: plan.RefOf(pod), Reason: "Rolling", Message: pod.Name + " to be replaced"})
			}
		}
	}
}

func members(set *appsv1.StatefulSet, w World) []rollout.Member {
	var out []rollout.Member
	for i := range w.Pods {
		p := &w.Pods[i]
		n, mine := ordinal(set.Name, p.Name)
		if !mine {
			continue
		}
		out = append(out, rollout.Member{
			Name: p.Name, Ordinal: n, Ready: ready(p), Leaving: p.DeletionTimestamp != nil,
			Outdated: p.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision,
		})
	}
	return out
}

func ordinal(set, pod string) (int, bool) {
	var n int
	rest, mine := strings.CutPrefix(pod, set+"-")
	if !mine {
		return 0, false
	}
	_, err := fmt.Sscanf(rest, "%d", &n)
	return n, err == nil
}

// prune removes what is owned and no longer wanted.
func prune(b *plan.Builder, t *Toy, w World, wanted []string) {
	var names []string
	for name, cm := range w.ConfigMaps {
		if cm != nil && !slices.Contains(wanted, name) && cm.DeletionTimestamp == nil && metav1.IsControlledBy(cm, t) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b.Step(plan.Change{
			Object: plan.RefOf(w.ConfigMaps[name]), From: "there", Cause: plan.CauseUser, Effect: plan.EffectNone,
			Verdict: plan.VerdictApply, Reason: "NotWanted",
		}, plan.Delete{Object: w.ConfigMaps[name], Reason: "no longer wanted"})
	}
}

// Execute implements kernel.System; the toy has nothing to be asked.
func (s *System) Execute(_ context.Context, _ World, op plan.Operation) error {
	return fmt.Errorf("unknown operation %s", op.Describe())
}

// Report implements kernel.System.
func (s *System) Report(t *Toy, w World, _ plan.Plan, _ time.Time) status.Health {
	if t.Spec.Fault == PanicInReport {
		t.Status.Ready = []string{"half a report"}
		panic("told to")
	}
	t.Status.Ready = nil
	want := 0
	for _, name := range setNames(t) {
		want += int(*t.Spec.Replicas)
		t.Status.Ready = append(t.Status.Ready, readyPods(w, name)...)
	}
	h := status.Health{
		Available: status.Verdict{True: true, Reason: "Serving", Message: "serves"},
		Complete:  status.Verdict{True: true, Reason: "Complete", Message: "all Pods are ready"},
	}
	if n := len(t.Status.Ready); n < want {
		h.Complete = status.Verdict{Reason: "PodsNotReady", Message: fmt.Sprintf("%d of %d Pods are ready", n, want)}
	}
	return h
}

func readyPods(w World, set string) []string {
	var out []string
	for i := range w.Pods {
		if _, mine := ordinal(set, w.Pods[i].Name); mine && ready(&w.Pods[i]) {
			out = append(out, w.Pods[i].Name)
		}
	}
	return out
}

func ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
