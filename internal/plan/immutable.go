package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settleImmutable returns the rendered object with every field that the API
// server refuses to change set to what it is live, and a note for each wanted
// difference that this leaves behind.
func settleImmutable(rendered, live client.Object) (client.Object, []Change, error) {
	switch want := rendered.(type) {
	case *appsv1.StatefulSet:
		have, ok := live.(*appsv1.StatefulSet)
		if !ok {
			return nil, nil, fmt.Errorf("live object is a %T", live)
		}
		out, notes := settleStatefulSet(want, have)
		return out, notes, nil
	case *corev1.Service:
		have, ok := live.(*corev1.Service)
		if !ok {
			return nil, nil, fmt.Errorf("live object is a %T", live)
		}
		out, notes := settleService(want, have)
		return out, notes, nil
	}
	return rendered, nil, nil
}

func settleStatefulSet(want, have *appsv1.StatefulSet) (*appsv1.StatefulSet, []Change) {
	out := want.DeepCopy()
	var notes []Change
	keep := func(path string, from, to any) {
		notes = append(notes, heldRecreation(path, from, to, "the API server does not let this field of a StatefulSet change"))
	}
	if want.Spec.ServiceName != have.Spec.ServiceName {
		keep("spec.serviceName", have.Spec.ServiceName, want.Spec.ServiceName)
		out.Spec.ServiceName = have.Spec.ServiceName
	}
	if want.Spec.PodManagementPolicy != have.Spec.PodManagementPolicy {
		keep("spec.podManagementPolicy", have.Spec.PodManagementPolicy, want.Spec.PodManagementPolicy)
		out.Spec.PodManagementPolicy = have.Spec.PodManagementPolicy
	}
	if !equality.Semantic.DeepEqual(want.Spec.Selector, have.Spec.Selector) {
		keep("spec.selector", have.Spec.Selector, want.Spec.Selector)
		out.Spec.Selector = have.Spec.Selector
	}
	notes = append(notes, claimTemplateNotes(want.Spec.VolumeClaimTemplates, have.Spec.VolumeClaimTemplates)...)
	out.Spec.VolumeClaimTemplates = have.DeepCopy().Spec.VolumeClaimTemplates
	return out, notes
}

func claimTemplateNotes(want, have []corev1.PersistentVolumeClaim) []Change {
	wanted, live := byName(want), byName(have)
	names := map[string]bool{}
	for n := range wanted {
		names[n] = true
	}
	for n := range live {
		names[n] = true
	}
	const why = "the claim templates of a StatefulSet cannot change; it has to be made again"
	var notes []Change
	for _, n := range slices.Sorted(maps.Keys(names)) {
		path := fmt.Sprintf("spec.volumeClaimTemplates[name=%q]", n)
		w, isWanted := wanted[n]
		l, isLive := live[n]
		switch {
		case !isLive:
			notes = append(notes, heldRecreation(path, nil, w.Spec, why))
		case !isWanted:
			notes = append(notes, heldRecreation(path, l.Spec, nil, why))
		case !claimTemplateKept(w, l):
			notes = append(notes, heldRecreation(path, l.Spec, w.Spec, why))
		}
	}
	return notes
}

// claimTemplateKept compares what was rendered, not what the API server
// filled in by itself.
func claimTemplateKept(want, have corev1.PersistentVolumeClaim) bool {
	w, h := want.Spec, have.Spec
	return equality.Semantic.DeepDerivative(want.Annotations, have.Annotations) &&
		equality.Semantic.DeepDerivative(want.Labels, have.Labels) &&
		equality.Semantic.DeepDerivative(w, h)
}

func byName(claims []corev1.PersistentVolumeClaim) map[string]corev1.PersistentVolumeClaim {
	out := make(map[string]corev1.PersistentVolumeClaim, len(claims))
	for _, c := range claims {
		out[c.Name] = c
	}
	return out
}

func settleService(want, have *corev1.Service) (*corev1.Service, []Change) {
	wantHeadless, haveHeadless := want.Spec.ClusterIP == corev1.ClusterIPNone, have.Spec.ClusterIP == corev1.ClusterIPNone
	if wantHeadless == haveHeadless || have.Spec.ClusterIP == "" {
		return want, nil
	}
	out := want.DeepCopy()
	out.Spec.ClusterIP = have.Spec.ClusterIP
	return out, []Change{heldRecreation("spec.clusterIP", have.Spec.ClusterIP, want.Spec.ClusterIP, "a Service cannot become headless or stop being so; it has to be made again")}
}

func heldRecreation(path string, from, to any, why string) Change {
	return Change{
		Path: path, From: printed(from), To: printed(to),
		Effect: EffectRecreate, Verdict: VerdictHold, Reason: "NeedsConsent", Message: why,
	}
}

func printed(v any) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
