package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/counts"
	"github.com/fairlead-dev/fairlead/test/story"
)

// TestPlanIsTheTruth prints how many plans were true.
func TestPlanIsTheTruth(t *testing.T) {
	if wanted() == 0 {
		t.Skip("set " + plansVariable + " to the number of plans, as make test-plan does")
	}
	setStage(t)
	t.Run("lanes", func(t *testing.T) {
		for lane := range paced().lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					for range lane { // with a seed that is given, lanes draw different edits all the same
						rapid.Uint64().Draw(t, "lane")
					}
					sequence(t)
				})
			})
		}
	})
	t.Logf("%d plans were true: %d were refused, %d held something, %d replaced Pods",
		stage.plans.Load(), stage.refused.Load(), stage.held.Load(), stage.replaced.Load())
	if !t.Failed() && int(stage.plans.Load()) < wanted() {
		t.Errorf("%d plans, want %d", stage.plans.Load(), wanted())
	}
}

// sequence draws a cluster and some edits, one after the other.
func sequence(t *rapid.T) {
	w := newTruth(t)
	defer w.end()
	w.begin()
	for i := range paced().edits {
		w.edit(i)
	}
}

// truth is one cluster in a namespace of its own.
type truth struct {
	*rapid.T
	namespace string
	// configs are the ConfigMaps as they are.
	configs map[string]*corev1.ConfigMap
}

func newTruth(t *rapid.T) *truth {
	return &truth{T: t, namespace: fmt.Sprintf("truth-%d", stage.names.Add(1)), configs: map[string]*corev1.ConfigMap{}}
}

func (w *truth) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v", err)
	}
}

func (w *truth) begin() {
	w.must(stage.client.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	for _, kind := range []string{"fe", "be"} {
		w.configs[kind+"-conf"] = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: kind + "-conf"},
			Data:       map[string]string{kind + ".conf": conf("INFO")},
		}
		w.must(stage.client.Create(w.Context(), w.configs[kind+"-conf"].DeepCopy()))
	}
	dc := base()
	dc.Namespace = w.namespace
	w.must(stage.client.Create(w.Context(), dc))
	w.rests("the new cluster", w.mark(), false)
}

// end takes the namespace away; that of a sequence that failed, too, since a smaller one
// is tried next.
func (w *truth) end() {
	_ = stage.client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
}

func (w *truth) doris() *dorisv1.DorisCluster {
	w.Helper()
	dc := &dorisv1.DorisCluster{}
	w.must(stage.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "doris"}, dc))
	return dc
}

// edit plans some drawn edits, applies them, and compares.
func (w *truth) edit(turn int) {
	dc := w.doris()
	edited := dc.DeepCopy()
	configs := map[string]*corev1.ConfigMap{}
	for name, cm := range w.configs {
		configs[name] = cm.DeepCopy()
	}
	names := draw(w.T, turn, edited, configs)
	planned := w.planned(edited, configs)
	before, mark := w.look(), w.mark()
	refused, err := w.apply(edited, configs)
	w.must(err)
	stage.plans.Add(1)
	if refused != "" {
		stage.refused.Add(1)
		if !slices.ContainsFunc(planned.Findings, func(f plan.Finding) bool { return f.Severity == plan.Refusal }) {
			w.Fatalf("%v: the API server refuses it, and the plan does not:\n%s", names, refused)
		}
		return
	}
	w.configs = configs
	after := w.becomes(names, planned, before, mark)
	if w.refusedAsSaid(planned) {
		planned.Changes = nil
	}
	w.compare(names, planned, before, after)
	if len(planned.Sets) > 0 {
		stage.held.Add(1)
	}
	if apimeta.IsStatusConditionTrue(w.doris().Status.Conditions, meta.ConditionStalled) {
		stage.refused.Add(1)
		w.takesBack(dc)
	}
}

// takesBack undoes an edit that is refused, or waits for an object, so that the next
// one is carried out.
func (w *truth) takesBack(to *dorisv1.DorisCluster) {
	mark := w.mark()
	for {
		dc := w.doris()
		dc.Spec, dc.Annotations = to.Spec, to.Annotations
		err := stage.client.Update(w.Context(), dc, client.FieldOwner("a-person"))
		if !apierrors.IsConflict(err) {
			w.must(err)
			break
		}
	}
	w.rests("an edit that was refused is taken back", mark, true)
}

// planned is what the plugin says of the edited manifests.
func (w *truth) planned(dc *dorisv1.DorisCluster, configs map[string]*corev1.ConfigMap) cliplan.Result {
	w.Helper()
	manifest := &dorisv1.DorisCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: dorisv1.GroupVersion.String(), Kind: dorisv1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: dc.Name, Annotations: dc.Annotations}, Spec: dc.Spec,
	}
	text := w.yaml(manifest)
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		cm := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: configs[name].Data,
		}
		text += "---\n" + w.yaml(cm)
	}
	var out, said bytes.Buffer
	cmd := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(text), Out: &out, ErrOut: &said})
	cmd.SetArgs([]string{"plan", "-f", "-", "-o", "json", "-n", w.namespace, "--kubeconfig", stage.cluster.Kubeconfig()})
	if code, _ := exit.Code(cmd.ExecuteContext(w.Context())); code != exit.OK && code != exit.Refused {
		w.Fatalf("plan ended with %d:\n%s%s\n%s", code, out.String(), said.String(), text)
	}
	var results []cliplan.Result
	w.must(json.Unmarshal(out.Bytes(), &results))
	if len(results) != 1 {
		w.Fatalf("%d plans", len(results))
	}
	return results[0]
}

func (w *truth) yaml(o any) string {
	text, err := yaml.Marshal(o)
	w.must(err)
	return string(text)
}

// apply writes what was edited. It tells why the API server refuses it, if it does.
func (w *truth) apply(dc *dorisv1.DorisCluster, configs map[string]*corev1.ConfigMap) (refused string, err error) {
	dry := dc.DeepCopy()
	if err := stage.client.Update(w.Context(), dry, client.FieldOwner("a-person"), client.DryRunAll); apierrors.IsInvalid(err) {
		return err.Error(), nil
	}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if !maps.Equal(configs[name].Data, w.configs[name].Data) {
			cm := &corev1.ConfigMap{}
			w.must(stage.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, cm))
			cm.Data = configs[name].Data
			w.must(stage.client.Update(w.Context(), cm, client.FieldOwner("a-person")))
		}
	}
	for {
		err := stage.client.Update(w.Context(), dc, client.FieldOwner("a-person"))
		if !apierrors.IsConflict(err) {
			return "", err
		}
		dc.ResourceVersion = w.doris().ResourceVersion // its status was written meanwhile
	}
}

func (w *truth) mark() audit.Mark {
	w.Helper()
	mark, err := stage.cluster.Audit().Mark()
	w.must(err)
	return mark
}

// rests waits until the operator has seen the newest spec, and has nothing to do. Where
// it is expected to act, it must have done so since the mark: an annotation brings no
// new generation by which one could tell that it was seen.
func (w *truth) rests(what string, mark audit.Mark, acts bool) {
	w.Helper()
	operator := counts.Client{Log: stage.cluster.Audit(), Agent: agent}
	deadline, last, acted := time.Now().Add(paced().patience), time.Now(), false
	for ; ; time.Sleep(100 * time.Millisecond) { // the pace of polling
		next := w.mark()
		tally, err := operator.Since(mark, w.namespace)
		w.must(err)
		if tally.Restless() > 0 {
			last, mark, acted = time.Now(), next, true
		}
		dc := w.doris()
		missing := busy(dc)
		if missing == "" && time.Since(last) > time.Second && (acted || !acts) {
			return
		}
		if time.Now().After(deadline) {
			text, _ := yaml.Marshal(dc)
			w.Fatalf("%s: after %s it is not at rest (acted: %t): %s\n%s", what, paced().patience, acted, missing, text)
		}
	}
}

// refusedAsSaid tells whether the API server refused what a plan had warned that it might:
// nothing happens then.
func (w *truth) refusedAsSaid(p cliplan.Result) bool {
	stalled := apimeta.FindStatusCondition(w.doris().Status.Conditions, meta.ConditionStalled)
	return stalled != nil && slices.ContainsFunc(p.Findings, func(f plan.Finding) bool {
		return f.Severity == plan.Warning && strings.Contains(f.Message, "may be refused") && strings.Contains(stalled.Message, f.Field)
	})
}

// becomes returns what there is when the operator is at rest. Where that is less than was
// planned it may not have heard of the edit yet, and is given time; what is more than was
// planned stays.
func (w *truth) becomes(names []string, p cliplan.Result, before sight, mark audit.Mark) sight {
	w.Helper()
	want := plannedOutcome(p)
	for deadline := time.Now().Add(paced().belated); ; {
		w.rests(fmt.Sprint(names), mark, len(want.Objects) > 0)
		after := w.look()
		got, _ := happened(before, after)
		if got.fallsBack(p); cmp.Equal(want, got) || w.refusedAsSaid(p) || time.Now().After(deadline) {
			return after
		}
	}
}

func busy(dc *dorisv1.DorisCluster) string {
	if dc.Status.ObservedGeneration == dc.Generation && apimeta.IsStatusConditionTrue(dc.Status.Conditions, meta.ConditionStalled) {
		return ""
	}
	return story.Unsettled(dc)
}

// sight is what there is at one moment.
type sight struct {
	pods map[string]*corev1.Pod
	// objects are what the operator wrote of each of its objects, and when.
	objects map[string]string
}

func (w *truth) look() sight {
	w.Helper()
	s := sight{pods: map[string]*corev1.Pod{}, objects: map[string]string{}}
	pods := &corev1.PodList{}
	w.must(stage.client.List(w.Context(), pods, client.InNamespace(w.namespace)))
	for i := range pods.Items {
		s.pods[pods.Items[i].Name] = &pods.Items[i]
	}
	for kind, list := range map[string]client.ObjectList{
		"StatefulSet": &appsv1.StatefulSetList{}, "Service": &corev1.ServiceList{}, "ConfigMap": &corev1.ConfigMapList{},
		"Secret": &corev1.SecretList{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudgetList{},
	} {
		w.must(stage.client.List(w.Context(), list, client.InNamespace(w.namespace)))
		items, err := apimeta.ExtractList(list)
		w.must(err)
		for _, item := range items {
			o := item.(client.Object)
			wrote, err := written(o)
			w.must(err)
			if wrote != "" {
				s.objects[kind+"/"+o.GetName()] = wrote
			}
		}
	}
	return s
}

// outcome is what was planned, and what happened, in the same words.
type outcome struct {
	Objects, Replaced, Resized []string
}

func plannedOutcome(p cliplan.Result) outcome {
	objects, replaced, resized := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range p.Changes {
		// What waits goes by itself when its turn comes, unless it waits for something else.
		goes := c.Verdict == plan.VerdictApply || c.Verdict == plan.VerdictWait && c.Reason == "Outdated"
		switch {
		case c.Object.Kind == "Pod" && c.Effect == plan.EffectRestartPod && goes:
			replaced[c.Object.Name] = true
		case c.Object.Kind == "Pod" && (c.Effect == plan.EffectResize || c.Effect == plan.EffectResizeOrRestart) && goes:
			resized[c.Object.Name] = true
		case c.Object.Kind != "Pod" && goes:
			objects[c.Object.String()] = true
		}
	}
	return outcome{slices.Sorted(maps.Keys(objects)), slices.Sorted(maps.Keys(replaced)), slices.Sorted(maps.Keys(resized))}
}

func happened(before, after sight) (out outcome, restarted []string) {
	for name, is := range after.objects {
		if before.objects[name] != is {
			out.Objects = append(out.Objects, name)
		}
	}
	for name, was := range before.pods {
		is := after.pods[name]
		switch {
		case is == nil || is.UID != was.UID:
			out.Replaced = append(out.Replaced, name)
			continue
		case !equalResources(was, is):
			out.Resized = append(out.Resized, name)
		}
		for _, c := range is.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				restarted = append(restarted, name)
			}
		}
	}
	slices.Sort(out.Objects)
	slices.Sort(out.Replaced)
	slices.Sort(out.Resized)
	return out, restarted
}

// fallsBack counts Pods as resized that were replaced where the plan said that they might be.
func (o *outcome) fallsBack(p cliplan.Result) {
	for _, c := range p.Changes {
		if i := slices.Index(o.Replaced, c.Object.Name); i >= 0 && c.Object.Kind == "Pod" && c.Effect == plan.EffectResizeOrRestart {
			o.Replaced = slices.Delete(o.Replaced, i, i+1)
			o.Resized = append(o.Resized, c.Object.Name)
		}
	}
	slices.Sort(o.Resized)
	if len(o.Replaced) == 0 {
		o.Replaced = nil
	}
}

func equalResources(a, b *corev1.Pod) bool {
	for i := range a.Spec.Containers {
		if !cmp.Equal(a.Spec.Containers[i].Resources, b.Spec.Containers[i].Resources) {
			return false
		}
	}
	return true
}

func (w *truth) compare(names []string, p cliplan.Result, before, after sight) {
	w.Helper()
	want := plannedOutcome(p)
	got, restarted := happened(before, after)
	got.fallsBack(p)
	if len(got.Replaced) > 0 {
		stage.replaced.Add(1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		text, _ := json.MarshalIndent(p, "", " ")
		w.Fatalf("%v: (-planned +happened)\n%s\nthe plan was\n%s", names, diff, text)
	}
	if len(restarted) > 0 {
		w.Fatalf("%v: containers restarted in %v", names, restarted)
	}
}
