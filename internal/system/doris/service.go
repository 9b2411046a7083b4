package doris

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// adoptsPorts plans the move of ports to us that somebody else renumbered: beside
// theirs, ours would have the same name, which the API server refuses. Ports that
// were found at the takeover stay as they are.
func (p planner) adoptsPorts(rendered client.Object, live *corev1.Service) bool {
	wanted, ok := rendered.(*corev1.Service)
	if !ok || len(asFound(live)) > 0 || !pinnedService(live) {
		return false
	}
	renumbered := &corev1.Service{TypeMeta: wanted.TypeMeta, ObjectMeta: wanted.ObjectMeta}
	for _, port := range live.Spec.Ports {
		if slices.ContainsFunc(wanted.Spec.Ports, func(w corev1.ServicePort) bool { return w.Name == port.Name && w.Port != port.Port }) {
			renumbered.Spec.Ports = append(renumbered.Spec.Ports, port)
		}
	}
	if len(renumbered.Spec.Ports) == 0 {
		return false
	}
	_, needed, err := p.engine.Adoption(renumbered, live, FieldManager, "spec.ports", nil)
	if err != nil || !needed {
		return false // the apply says what is wrong
	}
	p.build.Step(plan.Change{
		Object: plan.RefOf(wanted), Path: "spec.ports", Cause: plan.CauseDrift, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
		Reason: "Restored", Message: "somebody else renumbered a port; it is put back",
	}, plan.Adopt{Object: live, Rendered: renumbered, Below: "spec.ports", Manager: FieldManager, Reason: "take the renumbered ports over, to put them back"})
	return true
}
