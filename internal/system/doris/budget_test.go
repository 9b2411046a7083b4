package doris

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// budgets names the disruption budgets that there are.
func (w *world) budgets() []string {
	var names []string
	for _, o := range w.store.Now().List(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), "shop") {
		names = append(names, o.GetName())
	}
	slices.Sort(names)
	return names
}

func TestOnePodOfAComponentMayGoAtATime(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	if diff := cmp.Diff([]string{"doris-be", "doris-fe"}, w.budgets()); diff != "" {
		t.Fatalf("budgets (-want +got):\n%s", diff)
	}
	got := object(w, "doris-fe", &policyv1.PodDisruptionBudget{})
	one := intstr.FromInt32(1)
	want := policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &one, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{dorisv1.LabelOwner: "doris-fe", dorisv1.LabelComponent: "fe"}},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"that covers the backends":      {&metav1.LabelSelector{MatchLabels: map[string]string{dorisv1.LabelComponent: "be"}}, []string{"doris-fe", "team"}},
		"that covers the namespace":     {&metav1.LabelSelector{}, []string{"team"}},
		"that covers nothing":           {nil, []string{"doris-be", "doris-fe", "team"}},
		"that covers somebody else":     {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, []string{"doris-be", "doris-fe", "team"}},
		"that nobody can make sense of": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}, []string{"doris-be", "doris-fe", "team"}},
	} {
		t.Run("a budget of somebody else "+name, func(t *testing.T) {
			w := settled(t, threeByThree)
			team := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: tc.selector}}
			_, err := w.store.Create(team, "team")
			w.must(err)
			w.settle()
			if diff := cmp.Diff(tc.want, w.budgets()); diff != "" {
				t.Errorf("with it (-want +got):\n%s", diff)
			}
			made := object(w, "team", &policyv1.PodDisruptionBudget{})
			w.must(w.store.Delete(keyOf(made), made.UID, false))
			w.settle()
			if diff := cmp.Diff([]string{"doris-be", "doris-fe"}, w.budgets()); diff != "" {
				t.Errorf("when it is gone (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnePodAloneNeedsNoBudget(t *testing.T) {
	t.Parallel()
	front, back, _ := strings.Cut(threeByThree, "beSpec:")
	w := settled(t, front+"beSpec:"+strings.Replace(back, "replicas: 3", "replicas: 1", 1))
	if diff := cmp.Diff([]string{"doris-fe"}, w.budgets()); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(2)) })
	w.settle()
	if diff := cmp.Diff([]string{"doris-be", "doris-fe"}, w.budgets()); diff != "" {
		t.Errorf("with two backends (-want +got):\n%s", diff)
	}
}

// TestNoPodGoesAgainstABudget: what the API server would refuse is not asked of it, and
// the roll says on whom it waits.
func TestNoPodGoesAgainstABudget(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		status policyv1.PodDisruptionBudgetStatus
		waits  string
	}{
		{"it lets none go", policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 3}, "doris-be-2 to be let go by PodDisruptionBudget team, which lets no Pod go now: 3 of 3 are healthy, and 3 must be"},
		{"nobody has judged it", policyv1.PodDisruptionBudgetStatus{ObservedGeneration: -1}, "doris-be-2 to be let go by PodDisruptionBudget team, which was not judged yet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := settled(t, threeByThree)
			team := &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team", Labels: map[string]string{"judged-by": "the test"}},
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: SelectorLabels("doris", dorisv1.ComponentBE)}},
			}
			made, err := w.store.Create(team, "team")
			w.must(err)
			judge := func(status policyv1.PodDisruptionBudgetStatus) {
				team = made.(*policyv1.PodDisruptionBudget).DeepCopy()
				team.Status = status
				team.Status.ObservedGeneration += team.Generation
				w.must(w.store.SetStatus(team))
			}
			judge(tc.status)
			w.settle()
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
			p := w.settle()
			if got := condition(w.dc, meta.ConditionReconciling); len(w.evicts) > 0 || !strings.Contains(got, tc.waits) {
				t.Errorf("went %v; Reconciling is %s, and the plan\n%s", w.evicts, got, printPlan(p))
			}
			judge(policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 2, DisruptionsAllowed: 1})
			w.settle()
			if diff := cmp.Diff([]string{"doris-be-2", "doris-be-1", "doris-be-0"}, w.evicts); diff != "" {
				t.Errorf("went (-want +got):\n%s", diff)
			}
		})
	}
}
