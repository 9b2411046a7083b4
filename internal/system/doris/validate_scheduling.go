package doris

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

func nodeSelectorLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		f.labels(field+".nodeSelector", spec.NodeSelector)
		return f
	})
}

func tolerationsLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		for i, t := range spec.Tolerations {
			f.toleration(indexed(field+".tolerations", i), t)
		}
		return f
	})
}

func (f *faults) toleration(field string, t corev1.Toleration) {
	if t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0 {
		f.refusef(field+".key", "%s cannot be the key of a taint: %s", shown(t.Key), useKey)
	}
	f.tolerationValue(field, t)
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		f.refusef(field+".effect", "%s is no effect: use NoSchedule, PreferNoSchedule or NoExecute, or leave it out for all of them", shown(t.Effect))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		f.refusef(field+".tolerationSeconds", "it counts only for the effect NoExecute: set the effect to that, or leave the seconds out")
	}
}

// tolerationValue checks an operator with what it compares.
func (f *faults) tolerationValue(field string, t corev1.Toleration) {
	switch t.Operator {
	case corev1.TolerationOpExists:
		if t.Value != "" {
			f.refusef(field+".value", "the operator Exists takes no value: remove it, or use Equal")
		}
		return
	case "", corev1.TolerationOpEqual:
		if len(validation.IsValidLabelValue(t.Value)) > 0 {
			f.refusef(field+".value", "%s cannot be the value of a taint: %s", shown(t.Value), useLabelValue)
		}
	case corev1.TolerationOpLt, corev1.TolerationOpGt: // which Kubernetes takes them is its own to say
		if _, err := strconv.ParseInt(t.Value, 10, 64); err != nil {
			f.refusef(field+".value", "%s is no whole number, which the operator %s compares: write one", shown(t.Value), t.Operator)
		}
	default:
		f.refusef(field+".operator", "%s is no operator: use Equal or Exists", shown(t.Operator))
		return
	}
	if t.Key == "" {
		f.refusef(field+".operator", "without a key it has to be Exists, which tolerates every taint: add the key, or set the operator to Exists")
	}
}

func affinityLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(at string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		if spec.Affinity == nil {
			return nil
		}
		at += ".affinity"
		if a := spec.Affinity.NodeAffinity; a != nil {
			f.nodeAffinity(at+".nodeAffinity", a)
		}
		if a := spec.Affinity.PodAffinity; a != nil {
			f.podAffinity(at+".podAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a := spec.Affinity.PodAntiAffinity; a != nil {
			f.podAffinity(at+".podAntiAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		return f
	})
}

// Fields of affinities, which are long.
const (
	requiredTerms  = ".requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = ".preferredDuringSchedulingIgnoredDuringExecution"
)

func (f *faults) nodeAffinity(at string, a *corev1.NodeAffinity) {
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms := at + requiredTerms + ".nodeSelectorTerms"
		if len(required.NodeSelectorTerms) == 0 {
			f.refusef(terms, "there is no term, so no node would do: add one, or remove %s", at+requiredTerms)
		}
		for i, term := range required.NodeSelectorTerms {
			f.nodeTerm(indexed(terms, i), term)
		}
	}
	for i, p := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		f.weight(indexed(at+preferredTerms, i), p.Weight)
		f.nodeTerm(indexed(at+preferredTerms, i)+".preference", p.Preference)
	}
}

func (f *faults) weight(at string, weight int32) {
	if weight < 1 || weight > 100 {
		f.refusef(at+".weight", "%d is no weight: use 1 to 100", weight)
	}
}

// nodeTerm checks one term. Values that no label can have are not its concern:
// older API servers take them, and with NotIn they even make sense.
func (f *faults) nodeTerm(at string, term corev1.NodeSelectorTerm) {
	for i, r := range term.MatchExpressions {
		at := indexed(at+".matchExpressions", i)
		if len(validation.IsQualifiedName(r.Key)) > 0 {
			f.refusef(at+".key", "%s cannot be the key of a label: %s", shown(r.Key), useKey)
		}
		f.nodeOperator(at, r)
	}
	for i, r := range term.MatchFields {
		at := indexed(at+".matchFields", i)
		if r.Key != metav1.ObjectNameField {
			f.refusef(at+".key", "%s is no field of a node that can be selected: use %s, or matchExpressions", shown(r.Key), metav1.ObjectNameField)
		}
		if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
			f.refusef(at+".operator", "%s cannot compare a field: use In or NotIn", shown(r.Operator))
		} else if len(r.Values) != 1 {
			f.refusef(at+".values", "a field is compared with one value, and %d are given: write one", len(r.Values))
		}
		for j, v := range r.Values {
			if len(validation.IsDNS1123Subdomain(v)) > 0 {
				f.refusef(indexed(at+".values", j), "%s cannot be the name of a node: %s", shown(v), useObjectName)
			}
		}
	}
}

func (f *faults) nodeOperator(at string, r corev1.NodeSelectorRequirement) {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			f.refusef(at+".values", "the operator %s needs at least one value: add one, or use Exists or DoesNotExist", r.Operator)
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			f.refusef(at+".values", "the operator %s takes no values: remove them, or use In or NotIn", r.Operator)
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			f.refusef(at+".values", "the operator %s compares with one value, and %d are given: write one", r.Operator, len(r.Values))
		}
	default:
		f.refusef(at+".operator", "%s is no operator: use In, NotIn, Exists, DoesNotExist, Gt or Lt", shown(r.Operator))
	}
}

func (f *faults) podAffinity(at string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		f.podTerm(indexed(at+requiredTerms, i), &required[i])
	}
	for i := range preferred {
		f.weight(indexed(at+preferredTerms, i), preferred[i].Weight)
		f.podTerm(indexed(at+preferredTerms, i)+".podAffinityTerm", &preferred[i].PodAffinityTerm)
	}
}

func (f *faults) podTerm(at string, term *corev1.PodAffinityTerm) {
	switch {
	case term.TopologyKey == "":
		f.refusef(at+".topologyKey", "it is missing, so nothing says what counts as one place: set it, for example to %s", corev1.LabelHostname)
	case len(validation.IsQualifiedName(term.TopologyKey)) > 0:
		f.refusef(at+".topologyKey", "%s cannot be the key of a label: use one that the nodes have, for example %s", shown(term.TopologyKey), corev1.LabelHostname)
	}
	f.selector(at+".labelSelector", term.LabelSelector)
	f.selector(at+".namespaceSelector", term.NamespaceSelector)
	for i, name := range term.Namespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			f.refusef(indexed(at+".namespaces", i), "%s cannot be the name of a namespace: use lower case letters, digits and dashes", shown(name))
		}
	}
	for _, list := range []struct {
		name string
		keys []string
	}{{".matchLabelKeys", term.MatchLabelKeys}, {".mismatchLabelKeys", term.MismatchLabelKeys}} {
		for i, name := range list.keys {
			if len(validation.IsQualifiedName(name)) > 0 {
				f.refusef(indexed(at+list.name, i), "%s cannot be the key of a label: %s", shown(name), useKey)
			}
		}
		if len(list.keys) > 0 && term.LabelSelector == nil {
			f.refusef(at+list.name, "it adds to a labelSelector, and there is none: add one, or remove the keys")
		}
	}
}

// selector checks a label selector by the rules of the API server itself.
func (f *faults) selector(at string, s *metav1.LabelSelector) {
	for _, e := range metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, field.NewPath(at)) {
		f.refusef(e.Field, "it cannot select anything (%s): mend it, or remove the entry", e.ErrorBody())
	}
}
