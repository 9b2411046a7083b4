package doris

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/observe"
)

// BudgetName is the name of the disruption budget of a component.
func BudgetName(cluster string, c dorisv1.ComponentType) string { return StatefulSetName(cluster, c) }

// disruptionBudget lets whoever drains nodes take away one Pod of a component at
// a time: frontends keep their quorum, tablets their copies. A Pod that does not
// serve may always go, or a broken one would block every drain.
func disruptionBudget(dc *dorisv1.DorisCluster, c dorisv1.ComponentType) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: objectMeta(dc, BudgetName(dc.Name, c), ObjectLabels(dc.Name, c)),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: SelectorLabels(dc.Name, c)},
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}

// budget plans the disruption budget of a component at revision 1 or later. One Pod
// alone needs none. Where somebody else's budget covers the Pods it is theirs
// that counts, and ours goes: the API server evicts no Pod that has two.
func (p planner) budget(w workload, replicas int32) {
	name := BudgetName(p.dc.Name, w.kind)
	ours := p.world.Budgets[name]
	other := p.budgetOfOthers(w.kind)
	switch {
	case w.revision == 0 || ours == nil && (other != "" || replicas < 2):
	case other == "" && replicas >= 2:
		p.want(disruptionBudget(p.dc, w.kind), live(p.world.Budgets, name), "one Pod of "+string(w.kind)+" may go at a time")
	case other != "":
		p.dropBudget(ours, "PodDisruptionBudget "+other+" covers the Pods, and the API server evicts no Pod that has two")
	default:
		p.dropBudget(ours, "one Pod alone needs none")
	}
}

func (p planner) dropBudget(budget *policyv1.PodDisruptionBudget, reason string) {
	gone := budget.DeepCopy()
	gone.SetGroupVersionKind(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"))
	p.delete(gone, reason)
}

// idleBudgets drops the budgets of components that are gone.
func (p planner) idleBudgets() {
	for _, c := range rendered {
		budget := p.world.Budgets[BudgetName(p.dc.Name, c)]
		if budget != nil && specOf(p.dc, c) == nil && p.world.StatefulSets[StatefulSetName(p.dc.Name, c)] == nil {
			p.dropBudget(budget, "the component is gone")
		}
	}
}

// observeBudgets reads the disruption budgets of the namespace. Ours are read by
// their names, so that our own writes are seen.
func observeBudgets(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster, w *World) error {
	w.Budgets, w.OtherBudgets = map[string]*policyv1.PodDisruptionBudget{}, map[string]*policyv1.PodDisruptionBudget{}
	for _, c := range rendered {
		key := types.NamespacedName{Namespace: dc.Namespace, Name: BudgetName(dc.Name, c)}
		if err := found(ctx, r, key, &policyv1.PodDisruptionBudget{}, w.Budgets); err != nil {
			return err
		}
		if b := w.Budgets[key.Name]; b != nil && ownerName(b.OwnerReferences) != dc.Name {
			delete(w.Budgets, key.Name)
		}
	}
	all := &policyv1.PodDisruptionBudgetList{}
	if err := r.Neighbours(ctx, all); err != nil {
		return fmt.Errorf("listing disruption budgets: %w", err)
	}
	for i := range all.Items {
		if b := &all.Items[i]; ownerName(b.OwnerReferences) != dc.Name {
			w.OtherBudgets[b.Name] = b
		}
	}
	return nil
}

// keptByBudget tells which disruption budget keeps a Pod that serves now, and why. The
// API server would refuse to evict it; when that changes, the budget says so. One
// that does not serve may be gone at all times by our budgets, and is tried by others.
func (p planner) keptByBudget(pod *corev1.Pod) string {
	if pod == nil || !ready(pod) {
		return ""
	}
	for _, budgets := range []map[string]*policyv1.PodDisruptionBudget{p.world.Budgets, p.world.OtherBudgets} {
		for _, name := range sortedKeys(budgets) {
			b := budgets[name]
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
				continue
			}
			switch {
			case b.Status.ObservedGeneration < b.Generation:
				return fmt.Sprintf("PodDisruptionBudget %s, which was not judged yet", name)
			case b.Status.DisruptionsAllowed < 1:
				return fmt.Sprintf("PodDisruptionBudget %s, which lets no Pod go now: %d of %d are healthy, and %d must be",
					name, b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy)
			}
		}
	}
	return ""
}

// letsGo tells whether a disruption budget begins or ceases to let a Pod go.
func letsGo(before, now client.Object) bool {
	was, isBudget := before.(*policyv1.PodDisruptionBudget)
	is, isBudgetNow := now.(*policyv1.PodDisruptionBudget)
	if !isBudget || !isBudgetNow {
		return false
	}
	open := func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.DisruptionsAllowed > 0 && b.Status.ObservedGeneration >= b.Generation
	}
	return open(was) != open(is)
}

// budgetOfOthers names the first budget, by name, that somebody else made and
// that covers the Pods of a component.
func (p planner) budgetOfOthers(kind dorisv1.ComponentType) string {
	pods := labels.Set(podLabels(p.dc.Name, kind, specOf(p.dc, kind).PodLabels))
	for _, name := range sortedKeys(p.world.OtherBudgets) {
		// No selector covers nothing, and an empty one the whole namespace.
		selector, err := metav1.LabelSelectorAsSelector(p.world.OtherBudgets[name].Spec.Selector)
		if name == BudgetName(p.dc.Name, kind) || err == nil && selector.Matches(pods) {
			return name
		}
	}
	return ""
}
