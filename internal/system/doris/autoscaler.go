package doris

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// An autoscaler of compute nodes chooses their number in the resource, through its
// scale subresource, and the set follows the resource: so that members leave
// through the database. That of the existing operator chooses it in the set. The
// number is taken over with it, in an order in which nothing is ever scaled in:
//
//	the set's number ─▶ the resource ─▶ the autoscaler looks at the resource
//
// Until then the set keeps its number, whatever the resource says.

// AutoscalerName returns the name of the autoscaler of the compute nodes.
func AutoscalerName(cluster string) string {
	return StatefulSetName(cluster, dorisv1.ComponentCN) + "-autoscaler"
}

const (
	kindAutoscaler      = "HorizontalPodAutoscaler"
	componentAutoscaler = dorisv1.ComponentType("autoscaler")
	// defaultUtilization is what Kubernetes aims at where no metric is given, in
	// percent of the requested CPU.
	defaultUtilization = 80
)

// autoscalingPolicy is the policy of the compute nodes; nil where their number is
// not an autoscaler's.
func autoscalingPolicy(dc *dorisv1.DorisCluster) *dorisv1.AutoScalingPolicy {
	if dc.Spec.CnSpec == nil {
		return nil
	}
	return dc.Spec.CnSpec.AutoScalingPolicy
}

// autoscaler renders the autoscaler of the compute nodes; nil where there is none.
// The version of the policy says what of it counts; the object is of the newer
// version in any case.
func autoscaler(dc *dorisv1.DorisCluster) *autoscalingv2.HorizontalPodAutoscaler {
	policy := autoscalingPolicy(dc)
	if policy == nil {
		return nil
	}
	a := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: kindAutoscaler},
		ObjectMeta: objectMeta(dc, AutoscalerName(dc.Name), ObjectLabels(dc.Name, componentAutoscaler)),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: dorisv1.GroupVersion.String(), Kind: dorisv1.Kind, Name: dc.Name,
			},
			MinReplicas: new(minReplicasOf(policy)), MaxReplicas: policy.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(defaultUtilization)),
				}},
			}},
		},
	}
	a.Annotations = map[string]string{meta.AnnotationInputs: inputDigests{spec: digest(policy), config: digest(nil)}.String()}
	if own := policy.HPAPolicy; own != nil && policy.Version != dorisv1.AutoScalerV1 {
		own = own.DeepCopy()
		a.Spec.Behavior = own.Behavior
		if len(own.Metrics) > 0 {
			a.Spec.Metrics = own.Metrics
		}
	}
	return a
}

// scalesSet tells whether an autoscaler chooses the number of Pods in the set
// itself, as that of the existing operator does.
func scalesSet(a *autoscalingv2.HorizontalPodAutoscaler) bool {
	return a != nil && a.Spec.ScaleTargetRef.Kind == "StatefulSet"
}

// ownsAutoscaler tells whether an autoscaler belongs to a cluster.
func ownsAutoscaler(dc *dorisv1.DorisCluster, a *autoscalingv2.HorizontalPodAutoscaler) bool {
	for _, r := range a.OwnerReferences {
		if r.Kind == dorisv1.Kind && r.UID == dc.UID {
			return true
		}
	}
	return false
}

// autoscale plans the autoscaler and the number that it starts from.
func (p planner) autoscale(rendered *autoscalingv2.HorizontalPodAutoscaler) {
	found := p.world.Autoscalers[AutoscalerName(p.dc.Name)]
	switch {
	case rendered == nil && found != nil && ownsAutoscaler(p.dc, found) && found.DeletionTimestamp == nil:
		p.build.Step(plan.Change{
			Object: plan.RefOf(autoscalerRef(found)), From: "there", To: "deleted", Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply,
			Reason: "NotAskedFor", Message: "spec.cnSpec.autoScalingPolicy is gone; the number of compute nodes stays as it is",
		}, plan.Delete{Object: autoscalerRef(found), Reason: "the policy is gone"})
	case rendered == nil:
	case found != nil && !ownsAutoscaler(p.dc, found):
		p.build.Find(plan.Finding{
			Severity: plan.Refusal, Field: fieldPolicy, Reason: meta.ReasonInvalidSpec,
			Message: fmt.Sprintf("there is a HorizontalPodAutoscaler %s that is not of this cluster: delete it, or give it another name", found.Name),
		})
	case scalesSet(found):
		p.startFrom(found)
		p.retarget(rendered, found)
	default:
		p.startFrom(found)
		p.want(rendered, live(p.world.Autoscalers, rendered.Name), "number of compute nodes between "+strconv.Itoa(int(*rendered.Spec.MinReplicas))+" and "+strconv.Itoa(int(rendered.Spec.MaxReplicas)))
	}
}

// fieldPolicy is the field of the policy.
const fieldPolicy = "spec.cnSpec.autoScalingPolicy"

// startFrom writes the number of compute nodes into the resource: the one that an
// autoscaler chose in the set, or where none is said at all, the one that there is
// to be. An autoscaler cannot begin without a number.
func (p planner) startFrom(found *autoscalingv2.HorizontalPodAutoscaler) {
	says := p.dc.Spec.CnSpec.Replicas
	n := wantedReplicas(p.dc, dorisv1.ComponentCN)
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentCN)]
	if set != nil && set.Spec.Replicas != nil && (says == nil || scalesSet(found)) {
		n = *set.Spec.Replicas
	}
	if says != nil && *says == n {
		return
	}
	c := plan.Change{
		Object: plan.Ref{Kind: dorisv1.Kind, Namespace: p.dc.Namespace, Name: p.dc.Name}, Path: "spec.cnSpec.replicas", To: strconv.Itoa(int(n)),
		Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: reasonAutoscaled,
		Message: "an autoscaler needs a number to start from; from now on it writes it here, through the scale subresource",
	}
	if says != nil {
		c.From, c.Cause, c.Reason = strconv.Itoa(int(*says)), plan.CauseRevision, meta.ReasonTakenOver
		c.Message = fmt.Sprintf("the autoscaler of another operator chose %d in StatefulSet %s; it goes on from there, and nothing is scaled", n, set.Name)
	}
	p.build.Step(c, plan.Patch{
		Object: p.dc, Subresource: "scale", Manager: FieldManager, Reason: "note the number that the autoscaler goes on from",
		Fields: map[string]any{"spec": map[string]any{"replicas": int64(n)}},
	})
}

// reasonAutoscaled says that an autoscaler chooses the number of Pods.
const reasonAutoscaled = "Autoscaled"

// retarget points an autoscaler of the existing operator at the resource.
func (p planner) retarget(rendered, found *autoscalingv2.HorizontalPodAutoscaler) {
	to := rendered.Spec.ScaleTargetRef
	p.build.Step(plan.Change{
		Object: plan.RefOf(rendered), Path: "spec.scaleTargetRef", From: targetName(found.Spec.ScaleTargetRef), To: targetName(to),
		Cause: plan.CauseRevision, Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: meta.ReasonTakenOver,
		Message: "it chooses the number in the resource from now on, so that compute nodes leave through the database; no Pod comes or goes for it",
	}, plan.Patch{
		Object: found, Manager: FieldManager, Reason: "point the autoscaler at the resource",
		Fields: map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{
			"apiVersion": to.APIVersion, "kind": to.Kind, "name": to.Name,
		}}},
	})
}

func targetName(r autoscalingv2.CrossVersionObjectReference) string { return r.Kind + "/" + r.Name }

// autoscalerRef is an autoscaler with its kind, which the cache leaves out.
func autoscalerRef(a *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	out := a.DeepCopy()
	out.SetGroupVersionKind(autoscalingv2.SchemeGroupVersion.WithKind(kindAutoscaler))
	return out
}

// keepsNumber tells whether the number of Pods of a set is not the resource's to
// say (yet): an autoscaler has chosen it in the set. For compute nodes with a policy
// that ends when the autoscaler has looked at the resource and written it there.
func (p planner) keepsNumber(c Component, set *appsv1.StatefulSet) bool {
	if !p.autoscales(c.Type) {
		return autoscaled(set)
	}
	if scalesSet(p.world.Autoscalers[AutoscalerName(p.dc.Name)]) {
		return true
	}
	if !autoscaled(set) || c.FullReplicas >= *set.Spec.Replicas || scaledThroughResource(p.dc) {
		return false
	}
	p.build.Note(plan.Change{
		Object: plan.RefOf(c.StatefulSet), Path: replicasPath, From: strconv.Itoa(int(*set.Spec.Replicas)), To: strconv.Itoa(int(c.FullReplicas)),
		Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictRefuse, Reason: reasonAutoscaled,
		Message: fmt.Sprintf("an autoscaler chose %d, and it is its to say so again: the number in spec.cnSpec.replicas counts once the autoscaler has written it. Leave the field out of your manifest", *set.Spec.Replicas),
	})
	return true
}

// scaledElsewhere tells whether somebody chose the number of Pods of a set in the
// set itself. What an autoscaler chose before the takeover is not meant.
func (p planner) scaledElsewhere(c Component, set *appsv1.StatefulSet) bool {
	if p.autoscales(c.Type) && autoscaled(set) {
		return false
	}
	return scaledBy(set) != ""
}

// scaledThroughResource tells whether the number of compute nodes that the resource
// says was written by its scale subresource.
func scaledThroughResource(dc *dorisv1.DorisCluster) bool {
	for _, m := range dc.ManagedFields {
		if m.Subresource == "scale" && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.String(), `"f:cnSpec":{"f:replicas"`) {
			return true
		}
	}
	return false
}

// releaseAutoscaler hands an autoscaler back: it chooses the number in the set again.
func (p planner) releaseAutoscaler() {
	a := p.world.Autoscalers[AutoscalerName(p.dc.Name)]
	if a == nil || a.Annotations[meta.AnnotationInputs] == "" {
		return
	}
	set := autoscalingv2.CrossVersionObjectReference{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: StatefulSetName(p.dc.Name, dorisv1.ComponentCN),
	}
	p.build.Carry([]plan.Change{{
		Object: plan.RefOf(autoscalerRef(a)), Path: "spec.scaleTargetRef", From: targetName(a.Spec.ScaleTargetRef), To: targetName(set),
		Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: meta.ReasonReleasing,
		Message: "it chooses the number in the StatefulSet again",
	}}, plan.Disown{
		Object: autoscalerRef(a), Manager: FieldManager, Reason: "hand back",
		Fields: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{meta.AnnotationInputs: nil, meta.AnnotationConsents: nil}},
			"spec":     map[string]any{"scaleTargetRef": map[string]any{"apiVersion": set.APIVersion, "kind": set.Kind, "name": set.Name}},
		},
	})
}

// policyField translates a path in the autoscaler into one of the spec of compute
// nodes.
func policyField(at string) string {
	const policy = ".autoScalingPolicy"
	switch rest := strings.TrimPrefix(at, "spec."); {
	case rest == "minReplicas", rest == "maxReplicas":
		return policy + "." + rest
	case strings.HasPrefix(rest, "metrics"), strings.HasPrefix(rest, "behavior"):
		return policy + ".hpaPolicy." + rest
	}
	return policy
}
