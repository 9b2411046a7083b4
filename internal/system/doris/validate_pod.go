package doris

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// The rules below say beforehand what the API server would say of a Pod
// template, in the words of the spec. They are never stricter than any
// Kubernetes that is still in use: what one version takes and another does not
// is left to the API server.

// Ways out that several rules name.
const (
	useKey        = "use letters, digits, dashes, underscores and dots, with a domain and a slash before it if you like, as in example.com/team"
	useLabelValue = "use at most 63 letters, digits, dashes, underscores and dots, with a letter or digit at both ends"
	useObjectName = "use the name of an object: lower case letters, digits, dashes and dots"
)

func podLabelsLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		field += ".podLabels"
		f.labels(field, spec.PodLabels)
		selector := SelectorLabels(dc.Name, componentOfField(field))
		for _, name := range sortedKeys(spec.PodLabels) {
			value, at := spec.PodLabels[name], keyed(field, name)
			own, selects := selector[name]
			switch {
			case selects && value != own:
				f.idlef(at, "the operator finds its Pods by this label and sets it to %q: leave it out, or use another key", own)
			case name == dorisv1.LabelCluster && value != dc.Name:
				f.idlef(at, "the operator sets this label to %q itself: leave it out, or use another key", dc.Name)
			case name == appsv1.ControllerRevisionHashLabelKey, name == appsv1.StatefulSetPodNameLabel, name == appsv1.PodIndexLabel:
				f.idlef(at, "Kubernetes sets this label itself: leave it out, or use another key")
			}
		}
		return f
	})
}

// componentOfField tells whose spec a field lies in.
func componentOfField(field string) dorisv1.ComponentType {
	for _, c := range []dorisv1.ComponentType{dorisv1.ComponentFE, dorisv1.ComponentBE, dorisv1.ComponentCN, dorisv1.ComponentBroker} {
		if strings.HasPrefix(field, "spec."+string(c)+"Spec") {
			return c
		}
	}
	return ""
}

// labels refuses keys and values that no label can have.
func (f *faults) labels(field string, labels map[string]string) {
	for _, name := range sortedKeys(labels) {
		if len(validation.IsQualifiedName(name)) > 0 {
			f.refusef(field, "%s cannot be the key of a label: %s", shown(name), useKey)
		}
		if len(validation.IsValidLabelValue(labels[name])) > 0 {
			f.refusef(keyed(field, name), "%s cannot be the value of a label: %s", shown(labels[name]), useLabelValue)
		}
	}
}

// annotations refuses keys that no annotation can have, and too many of them.
func (f *faults) annotations(field string, annotations map[string]string) {
	for _, name := range sortedKeys(annotations) {
		if len(apivalidation.ValidateAnnotations(map[string]string{name: ""}, nil)) > 0 {
			f.refusef(field, "%s cannot be the key of an annotation: %s", shown(name), useKey)
		}
	}
	if apivalidation.ValidateAnnotationsSize(annotations) != nil {
		f.refusef(field, "keys and values have more than %d bytes together, the most that an object can carry: put what is long into a ConfigMap", apivalidation.TotalAnnotationSizeLimitB)
	}
}

func podAnnotationsLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		field += ".annotations"
		f.annotations(field, spec.Annotations)
		if cost, found := spec.Annotations[corev1.PodDeletionCost]; found && !legalCost(cost) {
			f.refusef(keyed(field, corev1.PodDeletionCost), "%s is no whole number of 32 bits: write one, or leave the annotation out", shown(cost))
		}
		if _, found := spec.Annotations[corev1.MirrorPodAnnotationKey]; found {
			f.refusef(keyed(field, corev1.MirrorPodAnnotationKey), "only Pods that a node starts by itself may have it: leave the annotation out")
		}
		return f
	})
}

func legalCost(text string) bool {
	_, err := strconv.ParseInt(text, 10, 32)
	return err == nil && text[0] != '+' && (text[0] != '0' || text == "0")
}

// podIdentityLegal checks under which account Pods run and with which their
// images are pulled.
func podIdentityLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		if name := spec.ServiceAccount; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			f.refusef(field+".serviceAccount", "%s cannot be the name of a ServiceAccount: %s", shown(name), useObjectName)
		}
		field += ".imagePullSecrets"
		seen := map[string]int{}
		for i, secret := range spec.ImagePullSecrets {
			at := indexed(field, i) + ".name"
			other, twice := seen[secret.Name]
			switch {
			case twice:
				f.refusef(at, "%s is named by %s as well, and Kubernetes takes each once: remove one of the two", shown(secret.Name), indexed(field, other))
			case secret.Name == "":
				f.idlef(at, "no Secret is named: name one, or remove the entry")
			case len(validation.IsDNS1123Subdomain(secret.Name)) > 0:
				f.idlef(at, "%s cannot be the name of a Secret: %s", shown(secret.Name), useObjectName)
			}
			seen[secret.Name] = i
		}
		return f
	})
}

func hostAliasesLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		field += ".hostAliases"
		seen := map[string]int{}
		for i, alias := range spec.HostAliases {
			at := indexed(field, i)
			if len(validation.IsValidIPForLegacyField(nil, alias.IP, false, nil)) > 0 {
				f.refusef(at+".ip", "%s is no address: write one such as 10.0.0.1 or fd00::1", shown(alias.IP))
			} else if other, twice := seen[alias.IP]; twice {
				f.refusef(at+".ip", "%s has an entry as well, and Kubernetes takes one for each address: put the host names of both into one", indexed(field, other))
			}
			seen[alias.IP] = i
			for j, host := range alias.Hostnames {
				if len(validation.IsDNS1123Subdomain(host)) > 0 {
					f.refusef(indexed(at+".hostnames", j), "%s is no host name: use lower case letters, digits, dashes and dots", shown(host))
				}
			}
		}
		return f
	})
}

// longestStart keeps the number of attempts of the startup probe in range.
const longestStart = 1<<31 - 1 - probePeriod

func probeTimesLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		negative := func(name string, value int32, counts int) {
			if value < 0 {
				f.idlef(field+"."+name, "%d is negative and counts as %d: leave it out, or set it to what you mean", value, counts)
			}
		}
		negative("startTimeout", spec.StartTimeout, minimumStartSeconds)
		if spec.StartTimeout > longestStart {
			f.refusef(field+".startTimeout", "%d seconds are more than Kubernetes can count: use at most %d", spec.StartTimeout, longestStart)
		}
		negative("liveTimeout", spec.LiveTimeout, defaultLiveSeconds)
		if p := spec.ReadinessProbePolicy; p != nil {
			negative("readinessProbePolicy.timeoutSeconds", p.TimeoutSeconds, defaultReadyTimeout)
			negative("readinessProbePolicy.failureThreshold", p.FailureThreshold, defaultReadyFailure)
			negative("readinessProbePolicy.periodSeconds", p.PeriodSeconds, defaultReadyPeriod)
		}
		return f
	})
}

// referencesNamed refuses names that no object can have: looking for it would
// not end.
func referencesNamed(dc *dorisv1.DorisCluster) []plan.Finding {
	var f faults
	seen := map[string]bool{}
	for _, r := range references(dc) {
		if seen[r.field] || len(validation.IsDNS1123Subdomain(r.name)) == 0 {
			continue
		}
		seen[r.field] = true
		f.refusef(r.field, "%s cannot be the name of a %s: %s", shown(r.name), r.kind, useObjectName)
	}
	return f
}
