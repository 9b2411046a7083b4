package kernel_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// unsettled is the sum of the metric of reconciles that never came to an end.
func unsettled(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != "fairlead_reconcile_unsettled_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}
