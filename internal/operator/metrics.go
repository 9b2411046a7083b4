package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead-dev/fairlead/internal/version"
)

var (
	info = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_info",
		Help: "1 while the operator runs, with its version.",
	}, []string{"version"})
	systemCalls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_system_calls_total",
		Help: "Calls to nodes and databases of data systems, by call (members, change, settings, set) and outcome (ok, denied, refused, unreachable).",
	}, []string{"system", "call", "outcome"})
)

func init() { //nolint:gochecknoinits // metrics are registered once per process, as the manager's own are
	ctrlmetrics.Registry.MustRegister(info, systemCalls)
	info.WithLabelValues(version.String()).Set(1)
}

// counted returns what counts the calls of a system.
func counted(system string) func(call, outcome string) {
	return func(call, outcome string) { systemCalls.WithLabelValues(system, call, outcome).Inc() }
}
