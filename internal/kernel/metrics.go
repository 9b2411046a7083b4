package kernel

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead-dev/fairlead/internal/plan"
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
	conditionStatus = registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_condition",
		Help: "Conditions of custom resources: 1 for True, 0 for False, -1 for Unknown.",
	}, []string{"system", "namespace", "name", "condition"}))
	pendingChanges = registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_changes",
		Help: "Changes of custom resources that are not carried out now, by verdict: hold (needs consent), refuse, wait.",
	}, []string{"system", "namespace", "name", "verdict"}))
	podsToReplace = registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_pods_to_replace",
		Help: "Pods that a roll of a custom resource is yet to replace; 0 when none is under way.",
	}, []string{"system", "namespace", "name"}))
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

// observed records how a custom resource is, and how it was before. What was not
// planned stays as it was.
func (m metrics) observed(object types.NamespacedName, before, now []metav1.Condition, p plan.Plan, planned bool) {
	for _, c := range before {
		if find(now, c.Type).Type == "" {
			conditionStatus.DeleteLabelValues(m.system, object.Namespace, object.Name, c.Type)
		}
	}
	for _, c := range now {
		conditionStatus.WithLabelValues(m.system, object.Namespace, object.Name, c.Type).Set(numberOf(c.Status))
	}
	if !planned {
		return
	}
	verdicts, pods := map[plan.Verdict]int{}, 0
	for _, c := range p.Changes {
		verdicts[c.Verdict]++
		if c.Object.Kind == "Pod" && c.Effect == plan.EffectRestartPod && (c.Verdict == plan.VerdictApply || c.Verdict == plan.VerdictWait) {
			pods++
		}
	}
	for _, v := range []plan.Verdict{plan.VerdictHold, plan.VerdictRefuse, plan.VerdictWait} {
		pendingChanges.WithLabelValues(m.system, object.Namespace, object.Name, string(v)).Set(float64(verdicts[v]))
	}
	podsToReplace.WithLabelValues(m.system, object.Namespace, object.Name).Set(float64(pods))
}

func numberOf(s metav1.ConditionStatus) float64 {
	switch s {
	case metav1.ConditionTrue:
		return 1
	case metav1.ConditionFalse:
		return 0
	case metav1.ConditionUnknown:
	}
	return -1
}

// gone drops what is known of a custom resource.
func (m metrics) gone(object types.NamespacedName) {
	known := prometheus.Labels{"system": m.system, "namespace": object.Namespace, "name": object.Name}
	for _, vec := range []*prometheus.GaugeVec{conditionStatus, pendingChanges, podsToReplace} {
		vec.DeletePartialMatch(known)
	}
}

func (m metrics) unsettled() { notSettling.WithLabelValues(m.system).Inc() }
