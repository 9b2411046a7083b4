package doris

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// rule is one thing that is checked of a spec.
type rule struct {
	// name says what holds when the rule finds nothing.
	name  string
	check func(dc *dorisv1.DorisCluster) []plan.Finding
}

// rules are checked in this order; what they find is reported in it. They read
// the spec alone: what depends on other objects or on what runs is checked where
// that is known.
var rules = []rule{
	{"NameFits", nameFits},
	{"SomethingAsked", somethingAsked},
	{"FrontendsKnown", frontendsKnown},
	{"FrontendsRun", frontendsRun},
	{"FrontendAddressReachable", frontendAddressReachable},
	{"ReplicasNotNegative", replicasNotNegative},
	{"FollowersCanElect", followersCanElect},
	{"ImageGiven", imageGiven},
	{"AdminUserCanRegister", adminUserCanRegister},
	{"ReferencesNamed", referencesNamed},
	{"PodLabelsLegal", podLabelsLegal},
	{"PodAnnotationsLegal", podAnnotationsLegal},
	{"PodIdentityLegal", podIdentityLegal},
	{"HostAliasesLegal", hostAliasesLegal},
	{"NodeSelectorLegal", nodeSelectorLegal},
	{"TolerationsLegal", tolerationsLegal},
	{"AffinityLegal", affinityLegal},
	{"EnvironmentLegal", environmentLegal},
	{"ResourcesLegal", resourcesLegal},
	{"ProbeTimesLegal", probeTimesLegal},
	{"PodSecurityLegal", podSecurityLegal},
	{"ContainerSecurityLegal", containerSecurityLegal},
	{"ServiceTypeServed", serviceTypeServed},
	{"AutoscalingLegal", autoscalingLegal},
	{"ServiceAnnotationsLegal", serviceAnnotationsLegal},
	{"NodePortsDistinct", nodePortsDistinct},
	{"VolumesComplete", volumesComplete},
	{"ClaimsLegal", claimsLegal},
	{"MountsNamed", mountsNamed},
	{"MountPathsAbsolute", mountPathsAbsolute},
	{"SharedClaimsComplete", sharedClaimsComplete},
	{"NoPlaintextPassword", noPlaintextPassword},
	{"RollProgress", rollProgress},
	{"EverythingSupported", everythingSupported},
	{"EverythingHasEffect", everythingHasEffect},
}

// Validate returns what is wrong with a spec, what is not supported and what is
// unwise, in a fixed order.
func Validate(dc *dorisv1.DorisCluster) []plan.Finding {
	var findings []plan.Finding
	for _, r := range rules {
		findings = append(findings, r.check(dc)...)
	}
	return findings
}

func refusal(field, format string, args ...any) plan.Finding {
	return plan.Finding{
		Severity: plan.Refusal, Field: field, Reason: meta.ReasonInvalidSpec, Message: fmt.Sprintf(format, args...),
	}
}

// faults collects what one check finds.
type faults []plan.Finding

func (f *faults) refusef(field, format string, args ...any) {
	*f = append(*f, refusal(field, format, args...))
}

func (f *faults) idlef(field, format string, args ...any) {
	*f = append(*f, idle(field, fmt.Sprintf(format, args...)))
}

// shown quotes a value of the spec, cut where it is long.
func shown[T ~string](value T) string {
	const longest = 80
	if len(value) > longest {
		return fmt.Sprintf("%q and so on (%d characters)", strings.ToValidUTF8(string(value[:longest]), ""), len(value))
	}
	return fmt.Sprintf("%q", value)
}

// key returns the field of an entry of a map.
func keyed(field, name string) string {
	return fmt.Sprintf("%s[%s]", field, name)
}

// eachSpec runs a check on every component.
func eachSpec(dc *dorisv1.DorisCluster, check func(field string, spec *dorisv1.BaseSpec) []plan.Finding) []plan.Finding {
	var findings []plan.Finding
	for _, c := range rendered {
		if spec := specOf(dc, c); spec != nil {
			findings = append(findings, check(fieldOf(c), spec)...)
		}
	}
	return findings
}

// maxNameLength leaves room for "-fe" and for the hash that the StatefulSet
// controller appends in a label of at most 63 characters.
const maxNameLength = 49

func nameFits(dc *dorisv1.DorisCluster) []plan.Finding {
	var f faults
	switch {
	case len(validation.IsDNS1123Label(dc.Name)) > 0 || len(dc.Name) > maxNameLength:
		f.refusef("metadata.name", "%s cannot be the start of the names of Services and Pods: use at most %d lower case letters, digits and dashes, in a new DorisCluster", shown(dc.Name), maxNameLength)
	case len(validation.IsDNS1035Label(dc.Name)) > 0:
		// Newer API servers take such names, so it is theirs to decide.
		f = append(f, plan.Finding{
			Severity: plan.Warning, Field: "metadata.name", Reason: meta.ReasonInvalidSpec,
			Message: fmt.Sprintf("%s does not start with a letter, and Kubernetes before 1.36 refuses Services with such names: use another name, in a new DorisCluster", shown(dc.Name)),
		})
	}
	return f
}

// nothingAsked is what is said of a spec without any component.
const nothingAsked = "the spec asks for no component, so nothing is made: add feSpec, and beSpec or cnSpec"

func asksForNothing(dc *dorisv1.DorisCluster) bool {
	for _, c := range rendered {
		if specOf(dc, c) != nil {
			return false
		}
	}
	return true
}

func somethingAsked(dc *dorisv1.DorisCluster) []plan.Finding {
	if asksForNothing(dc) {
		return []plan.Finding{idle("spec", nothingAsked)}
	}
	return nil
}

func frontendsKnown(dc *dorisv1.DorisCluster) []plan.Finding {
	var f faults
	for _, c := range rendered[1:] {
		if dc.Spec.FeSpec == nil && dependsOnFrontends(dc, c) {
			f.refusef("spec.feSpec", "there are no frontends for the %s to register with: add feSpec, or say in %s.feAddress where they are", pluralOf(c), fieldOf(c))
		}
	}
	return f
}

// dependsOnFrontends tells whether a component needs frontends of the cluster
// itself.
func dependsOnFrontends(dc *dorisv1.DorisCluster, c dorisv1.ComponentType) bool {
	spec := specOf(dc, c)
	if spec == nil {
		return false
	}
	external, _ := externalFrontends(spec)
	return len(external) == 0
}

func frontendsRun(dc *dorisv1.DorisCluster) []plan.Finding {
	fe := dc.Spec.FeSpec
	if fe == nil || fe.Replicas == nil || *fe.Replicas != 0 { // another rule tells of a negative number
		return nil
	}
	var f faults
	for _, c := range rendered[1:] {
		if !dependsOnFrontends(dc, c) {
			continue
		}
		if n := wantedReplicas(dc, c); n > 0 {
			at := fieldOf(c)
			f.refusef("spec.feSpec.replicas", "0 frontends cannot serve %d %s: set it to at least 1, say in %s.feAddress where other frontends are, or set %s.replicas to 0 as well", n, pluralOf(c), at, at)
		}
	}
	return f
}

func replicasNotNegative(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		switch {
		case spec.Replicas == nil:
			return nil
		case *spec.Replicas < 0:
			return []plan.Finding{refusal(field+".replicas", "%d is negative: set it to 0 or more", *spec.Replicas)}
		case *spec.Replicas > maxReplicas:
			return []plan.Finding{refusal(field+".replicas", "%d is more than the %d Pods that one component can have here: set it to what you mean", *spec.Replicas, maxReplicas)}
		}
		return nil
	})
}

func followersCanElect(dc *dorisv1.DorisCluster) []plan.Finding {
	fe := dc.Spec.FeSpec
	if fe == nil || fe.ElectionNumber == nil {
		return nil
	}
	const field = "spec.feSpec.electionNumber"
	if n := *fe.ElectionNumber; n < 1 {
		return []plan.Finding{refusal(field, "%d frontends cannot elect a master: set it to an odd number from 1 on, or leave it out for 3", n)}
	}
	if n, replicas := *fe.ElectionNumber, replicasOf(&fe.BaseSpec); replicas >= 1 && n > replicas {
		return []plan.Finding{{
			Severity: plan.Warning, Field: field, Reason: meta.ReasonNoEffect,
			Message: fmt.Sprintf("%d is more than the %d frontends that there are, so all of them are followers: raise spec.feSpec.replicas, or lower it", n, replicas),
		}}
	}
	return nil
}

func frontendAddressReachable(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		if spec.FeAddress == nil {
			return nil
		}
		if port := spec.FeAddress.Endpoints.Port; port < 0 || port > 65535 {
			f.refusef(field+".feAddress.endpoints.port", "%d is no port: use the query port of the frontends, or leave it out for %d", port, defaultQueryPort)
		}
		return f
	})
}

func imageGiven(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		if spec.Image == "" {
			f.refusef(field+".image", "no image is named: set it, for example to apache/doris:%s-2.1.8", imageOf(field))
		} else {
			f.image(field+".image", spec.Image)
		}
		if init := spec.SystemInitialization; init != nil && init.InitImage != "" {
			f.image(field+".systemInitialization.initImage", init.InitImage)
		}
		return f
	})
}

// imageOf is the start of the tag of the official images of a component.
func imageOf(field string) string {
	if c := componentOfField(field); c != dorisv1.ComponentCN {
		return string(c)
	}
	return string(dorisv1.ComponentBE)
}

// image refuses what no registry can serve. It is not as strict as a container
// runtime: what a runtime might take is left to it.
func (f *faults) image(field, image string) {
	const example = "use a reference such as registry.example.com/doris:fe-2.1.8"
	if i := strings.IndexFunc(image, func(r rune) bool { return !strings.ContainsRune(imageCharacters, r) }); i >= 0 {
		f.refusef(field, "%s holds a character that no image reference has, number %d (white space counts): %s", shown(image), i+1, example)
		return
	}
	name, _, _ := strings.Cut(image, "@")
	last := name[strings.LastIndexByte(name, '/')+1:]
	repository, tag, tagged := strings.Cut(last, ":")
	switch {
	case repository == "" || tagged && tag == "":
		f.refusef(field, "%s names no repository, or no tag after the colon: %s", shown(image), example)
	case repository != strings.ToLower(repository):
		f.refusef(field, "%s has a repository in capital letters, which no registry has: write it small", shown(image))
	case len(tag) > 128:
		f.refusef(field, "the tag of %s is longer than 128 characters: use a shorter one", shown(image))
	}
}

const imageCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@[]+"

func adminUserCanRegister(dc *dorisv1.DorisCluster) []plan.Finding {
	user := dc.Spec.AdminUser
	if user == nil || dc.Spec.AuthSecret != "" || !strings.EqualFold(user.Name, "admin") {
		return nil
	}
	return []plan.Finding{refusal("spec.adminUser.name",
		"%q is built into Doris and cannot register members: choose another name, or use root", user.Name)}
}
