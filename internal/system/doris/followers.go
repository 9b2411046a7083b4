package doris

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// followers lists the Pods that will be replaced because the template of their
// set is about to change.
func (p planner) followers(kind dorisv1.ComponentType, set *appsv1.StatefulSet) {
	built, err := p.build.Plan()
	if err != nil {
		return // the caller returns it
	}
	why, restarts := restartOf(built, plan.RefOf(set))
	if !restarts {
		return
	}
	pods := p.world.Pods[string(kind)]
	for i := len(pods) - 1; i >= 0; i-- {
		if now := p.world.StatefulSets[set.Name]; now == nil || !kept(now, &pods[i]) {
			p.build.Note(waitsItsTurn(&pods[i], why))
		}
	}
}

// waitsItsTurn is the change of a Pod whose template changed, or is about to.
// Where the change of the template is held, so are its Pods.
func waitsItsTurn(pod *corev1.Pod, why plan.Change) plan.Change {
	c := plan.Change{
		Object: plan.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
		Cause:  why.Cause, Effect: cmp.Or(why.Effect, plan.EffectRestartPod), Verdict: plan.VerdictWait,
		Reason: "Outdated", Message: "replaced when its turn comes, one Pod at a time, each when all others are ready",
	}
	if c.Effect == plan.EffectResizeOrRestart {
		c.Message = "resized in place when its turn comes; replaced if its node cannot do that"
	}
	if why.Verdict == plan.VerdictWait && why.Reason != "" {
		c.Reason, c.Message = why.Reason, "replaced after the change of its template, which waits: "+why.Message
	}
	if why.Verdict == plan.VerdictHold {
		c.Verdict, c.Reason, c.Message = plan.VerdictHold, why.Reason, "stays as it is while the change of its template is held"
		if why.Cause == plan.CauseDrift {
			c.Message += "; replaced for another reason, it would follow the template as it was edited"
		}
	}
	return c
}

// restartOf returns the change of a set's template that replaces its Pods,
// rather one that is carried out than one that is not, and rather one that somebody
// made than the operator's own record of it.
func restartOf(p plan.Plan, set plan.Ref) (why plan.Change, restarts bool) {
	for _, c := range p.Changes {
		if c.Object != set || !plan.InTemplate(c.Path) || c.Verdict == plan.VerdictRefuse {
			continue
		}
		if c.Verdict == plan.VerdictApply && !plan.Bookkeeping(c.Path) {
			return c, true
		}
		if !restarts || c.Verdict == plan.VerdictApply && why.Verdict != plan.VerdictApply {
			why, restarts = c, true
		}
	}
	return why, restarts
}
