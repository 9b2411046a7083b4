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
	const why = "the API server does not let this field of a StatefulSet change"
	out := want.DeepCopy()
	live := have.DeepCopy().Spec
	var notes []Change
	// A field that is left out is not asked for, whatever its default is.
	if w := want.Spec.ServiceName; w != "" && w != live.ServiceName {
		notes = append(notes, heldRecreation("spec.serviceName", live.ServiceName, w, why))
	}
	if w := want.Spec.PodManagementPolicy; w != "" && w != live.PodManagementPolicy {
		notes = append(notes, heldRecreation("spec.podManagementPolicy", live.PodManagementPolicy, w, why))
	}
	if w := want.Spec.Selector; !equality.Semantic.DeepEqual(w, live.Selector) {
		notes = append(notes, heldRecreation("spec.selector", live.Selector, w, why))
	}
	notes = append(notes, claimTemplateNotes(want.Spec.VolumeClaimTemplates, live.VolumeClaimTemplates)...)
	out.Spec.ServiceName, out.Spec.PodManagementPolicy = live.ServiceName, live.PodManagementPolicy
	out.Spec.Selector, out.Spec.VolumeClaimTemplates = live.Selector, live.VolumeClaimTemplates
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

// claimTemplateKept tells whether a live claim template is the wanted one. What
// the API server fills in by itself counts as wanted, and so do labels and
// annotations that others added.
func claimTemplateKept(want, have corev1.PersistentVolumeClaim) bool {
	w := want.DeepCopy()
	if w.Spec.VolumeMode == nil {
		w.Spec.VolumeMode = have.Spec.VolumeMode
	}
	return contained(w.Annotations, have.Annotations) && contained(w.Labels, have.Labels) &&
		equality.Semantic.DeepEqual(w.Spec, have.Spec)
}

func contained(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
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
	// What makes sense only with the other kind of address stays as it is too.
	out.Spec.ClusterIPs, out.Spec.Type = nil, have.Spec.Type
	for i := range out.Spec.Ports {
		out.Spec.Ports[i].NodePort = 0
	}
	to := want.Spec.ClusterIP
	if to == "" {
		to = "(assigned)"
	}
	return out, []Change{heldRecreation("spec.clusterIP", have.Spec.ClusterIP, to, "a Service cannot become headless or stop being so; it has to be made again")}
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
