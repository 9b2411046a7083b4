package doris

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

func resourcesLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		f.resources(field, spec.ResourceRequirements)
		if init := spec.SystemInitialization; init != nil {
			f.resources(field+".systemInitialization", init.ResourceRequirements)
		}
		return f
	})
}

// resources checks requests and limits, which stand beside other fields.
func (f *faults) resources(field string, r corev1.ResourceRequirements) {
	f.quantities(field+".limits", r.Limits)
	f.quantities(field+".requests", r.Requests)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		f.againstLimit(field, name, r)
	}
	names := slices.Sorted(maps.Keys(r.Limits))
	names = append(names, slices.Sorted(maps.Keys(r.Requests))...)
	huge := slices.IndexFunc(names, hugePages)
	if huge >= 0 && !slices.Contains(names, corev1.ResourceCPU) && !slices.Contains(names, corev1.ResourceMemory) {
		f.refusef(keyed(field+".limits", string(names[huge])), "huge pages go with cpu or memory: ask for one of them as well")
	}
}

// againstLimit compares a request with its limit.
func (f *faults) againstLimit(field string, name corev1.ResourceName, r corev1.ResourceRequirements) {
	request := r.Requests[name]
	limit, limited := r.Limits[name]
	at, limitAt := keyed(field+".requests", string(name)), keyed(field+".limits", string(name))
	switch exact := extended(name) || hugePages(name); {
	case exact && !limited:
		f.refusef(at, "%s cannot be shared, so a limit has to say the same: set %s to %s as well", name, limitAt, request.String())
	case exact && request.Cmp(limit) != 0:
		f.refusef(at, "%s cannot be shared, so request and limit have to be equal, and they are %s and %s: set one to the other", name, request.String(), limit.String())
	case limited && request.Cmp(limit) > 0:
		f.refusef(at, "%s is more than the limit of %s: lower the request, or raise %s", request.String(), limit.String(), limitAt)
	}
}

// quantities checks names and amounts.
func (f *faults) quantities(field string, list corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount, at := list[name], keyed(field, string(name))
		switch {
		case !resourceName(name):
			f.refusef(at, "%s is no resource of a container: use cpu, memory, ephemeral-storage, hugepages-<size>, or the full name of another, such as example.com/gpu", shown(name))
		case amount.Sign() < 0:
			f.refusef(at, "%s is negative: set it to 0 or more", amount.String())
		case extended(name) && amount.MilliValue()%1000 != 0:
			f.refusef(at, "%s is no whole number, and %s comes in whole ones: round it", amount.String(), name)
		case hugePages(name) && !wholePages(name, amount):
			f.refusef(at, "%s is no multiple of the size of a page: use one, and a name such as hugepages-2Mi", amount.String())
		}
	}
}

// native tells whether a resource is Kubernetes' own.
func native(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// extended tells whether a resource is one that a device or a vendor adds.
func extended(name corev1.ResourceName) bool {
	return !native(name) && !strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
}

func hugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func resourceName(name corev1.ResourceName) bool {
	if len(validation.IsQualifiedName(string(name))) > 0 {
		return false
	}
	switch {
	case !strings.Contains(string(name), "/"):
		return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || hugePages(name)
	case native(name):
		return true
	}
	return extended(name) && len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// wholePages tells whether an amount consists of pages of the size that the
// resource is named after.
func wholePages(name corev1.ResourceName, amount resource.Quantity) bool {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	return err == nil && size.Value() > 0 && amount.Value()%size.Value() == 0
}
