package doris

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// released tells whether a person wants the cluster handed back.
func released(dc *dorisv1.DorisCluster) bool {
	return meta.Released(dc.Annotations)
}

// release hands the sets and Services of a cluster back: the sets get the update
// strategy that the existing operator gives them, and no field belongs to us any
// more. Nothing is handed back while that would replace a Pod.
func (p planner) release() {
	if pods := p.behindTheirSets(); len(pods) > 0 {
		p.build.Wait(plan.Wait{
			On: plan.Ref{Kind: dorisv1.Kind, Namespace: p.dc.Namespace, Name: p.dc.Name}, Reason: meta.ReasonReleasing, Person: true,
			Message: fmt.Sprintf("%s are not on the newest template of their set: handed back now, the StatefulSet controller would replace them. Take the annotation %s away, let the roll end or accept what is held, and hand the cluster back then",
				strings.Join(pods, ", "), meta.AnnotationRelease),
		})
		return
	}
	for _, c := range rendered {
		if set := p.world.StatefulSets[StatefulSetName(p.dc.Name, c)]; set != nil && ours(set) {
			p.releaseSet(set)
		}
		if c == dorisv1.ComponentCN {
			p.releaseAutoscaler()
		}
		for _, name := range []string{InternalServiceName(p.dc.Name, c), AccessServiceName(p.dc.Name, c)} {
			if service := p.world.Services[name]; service != nil && pinnedService(service) {
				p.releaseService(service)
			}
		}
	}
}

// behindTheirSets names the Pods that the StatefulSet controller would replace.
func (p planner) behindTheirSets() []string {
	var names []string
	for _, c := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, c)]
		if set == nil || !ours(set) {
			continue
		}
		for i := range p.world.Pods[string(c)] {
			if pod := &p.world.Pods[string(c)][i]; behind(set, pod) || unseen(set) || stillRecorded(set, pod) {
				names = append(names, pod.Name)
			}
		}
	}
	return names
}

func (p planner) releaseService(service *corev1.Service) {
	p.build.Carry([]plan.Change{{
		Object: plan.RefOf(service), Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
		Reason: meta.ReasonReleasing, Message: "it belongs to the operator no more; nothing of it changes",
	}}, plan.Disown{
		Object: service, Manager: FieldManager, Reason: "hand back",
		Fields: map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			meta.AnnotationInputs: nil, meta.AnnotationAsFound: nil, meta.AnnotationConsents: nil,
		}}},
	})
}

// ours tells whether a set was not handed back yet.
func ours(set *appsv1.StatefulSet) bool { return set.Annotations[meta.AnnotationRevision] != "" }

func (p planner) releaseSet(set *appsv1.StatefulSet) {
	rolling := string(appsv1.RollingUpdateStatefulSetStrategyType)
	p.build.Carry([]plan.Change{{
		Object: plan.RefOf(set), Path: "spec.updateStrategy", From: string(set.Spec.UpdateStrategy.Type), To: rolling,
		Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
		Reason: meta.ReasonReleasing, Message: "the StatefulSet controller replaces Pods again when the template changes; every Pod is on the newest one now",
	}}, plan.Disown{
		Object: set, Manager: FieldManager, Reason: "hand back",
		Fields: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{
				meta.AnnotationRevision: nil, meta.AnnotationAccepted: nil, meta.AnnotationConsents: nil, meta.AnnotationRoll: nil,
				meta.AnnotationLastGood: nil, meta.AnnotationFailed: nil, meta.AnnotationRolling: nil,
				meta.AnnotationBalanceStopped: nil, meta.AnnotationMetadataDump: nil, meta.AnnotationAgreedReplicas: nil, meta.AnnotationHistory: nil,
				meta.AnnotationEndpoints: nil, meta.AnnotationOthersReplicas: nil,
			}},
			"spec": map[string]any{"updateStrategy": map[string]any{
				"type": rolling, "rollingUpdate": map[string]any{"partition": int64(0)},
			}},
		},
	})
}

// stillRecorded tells whether a Pod was replaced and has not got back what was stopped
// for it.
func stillRecorded(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	all, _ := readRolling(set)
	return all.Pods[pod.Name].stopped() || len(balanceStopped(set)) > 0
}
