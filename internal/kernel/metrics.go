package kernel

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	reconciles = registered(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_reconcile_total",
		Help: "Reconciles by system and outcome (settled, progressing, refused, stalled, failed).",
	}, []string{"system", "outcome"}))
	reconcileSeconds = registered(prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fairlead_reconcile_seconds",
		Help:    "Time that one reconcile took, by system.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, []string{"system"}))
	writes = registered(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_writes_total",
		Help: "Writes by system and verb (apply, delete, evict, status, and call for operations on the data system).",
	}, []string{"system", "verb"}))
	notSettling = registered(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_reconcile_unsettled_total",
		Help: "Reconciles that still found something to write in their last round. Any increase is a fault of the operator.",
	}, []string{"system"}))
)

// registered adds a metric to those that the manager serves.
func registered[C prometheus.Collector](c C) C {
	ctrlmetrics.Registry.MustRegister(c)
	return c
}

// metrics records what is done for one system.
type metrics struct{ system string }

func (m metrics) reconciled(outcome string, took time.Duration) {
	reconciles.WithLabelValues(m.system, outcome).Inc()
	reconcileSeconds.WithLabelValues(m.system).Observe(took.Seconds())
}

func (m metrics) wrote(verb string) { writes.WithLabelValues(m.system, verb).Inc() }

func (m metrics) unsettled() { notSettling.WithLabelValues(m.system).Inc() }
