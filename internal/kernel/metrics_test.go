package kernel

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// seriesOf are the values of the series of a custom resource, by the metric and its
// last label.
func seriesOf(t *testing.T, system, name string) map[string]float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["system"] == system && labels["name"] == name && f.GetType() == dto.MetricType_GAUGE {
				key := strings.Join(slices.DeleteFunc([]string{f.GetName(), labels["condition"], labels["verdict"]}, func(s string) bool { return s == "" }), " ")
				out[key] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

// TestMetricsOfAnObject follows one custom resource from a roll to its end.
func TestMetricsOfAnObject(t *testing.T) {
	m, object := metrics{system: "metrics-test"}, types.NamespacedName{Namespace: "shop", Name: "doris"}
	pod := func(name string, v plan.Verdict) plan.Change {
		return plan.Change{Object: plan.Ref{Kind: "Pod", Name: name}, Effect: plan.EffectRestartPod, Verdict: v}
	}
	conditions := func(list ...metav1.Condition) []metav1.Condition { return list }
	rolls := conditions(
		metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse}, metav1.Condition{Type: "Available", Status: metav1.ConditionTrue},
		metav1.Condition{Type: "Odd", Status: metav1.ConditionUnknown},
	)
	m.observed(object, nil, rolls, plan.Plan{Changes: []plan.Change{
		pod("a", plan.VerdictApply), pod("b", plan.VerdictWait), pod("c", plan.VerdictHold),
		{Object: plan.Ref{Kind: "Service"}, Verdict: plan.VerdictApply},
	}}, true)
	want := map[string]float64{
		"fairlead_condition Ready": 0, "fairlead_condition Available": 1, "fairlead_condition Odd": -1,
		"fairlead_changes hold": 1, "fairlead_changes wait": 1, "fairlead_changes refuse": 0, "fairlead_pods_to_replace": 2,
	}
	if diff := cmp.Diff(want, seriesOf(t, m.system, object.Name)); diff != "" {
		t.Errorf("in a roll (-want +got):\n%s", diff)
	}

	m.observed(object, rolls, conditions(metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}), plan.Plan{}, false)
	maps.DeleteFunc(want, func(key string, _ float64) bool { return strings.HasPrefix(key, "fairlead_condition") })
	want["fairlead_condition Ready"] = 1
	if diff := cmp.Diff(want, seriesOf(t, m.system, object.Name)); diff != "" {
		t.Errorf("a condition is gone, and it was not planned (-want +got):\n%s", diff)
	}

	m.gone(object)
	if got := seriesOf(t, m.system, object.Name); len(got) > 0 {
		t.Errorf("the resource is gone, and this is left: %v", got)
	}
}
