package doris

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	{"FrontendsKnown", frontendsKnown},
	{"FrontendsRun", frontendsRun},
	{"ReplicasNotNegative", replicasNotNegative},
	{"FollowersCanElect", followersCanElect},
	{"ImageGiven", imageGiven},
	{"AdminUserCanRegister", adminUserCanRegister},
	{"ServiceTypeServed", serviceTypeServed},
	{"NodePortsDistinct", nodePortsDistinct},
	{"VolumesComplete", volumesComplete},
	{"MountsNamed", mountsNamed},
	{"MountPathsAbsolute", mountPathsAbsolute},
	{"SharedClaimsComplete", sharedClaimsComplete},
	{"NoPlaintextPassword", noPlaintextPassword},
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

// eachSpec runs a check on every component that is rendered.
func eachSpec(dc *dorisv1.DorisCluster, check func(field string, spec *dorisv1.BaseSpec) []plan.Finding) []plan.Finding {
	var findings []plan.Finding
	if dc.Spec.FeSpec != nil {
		findings = append(findings, check("spec.feSpec", &dc.Spec.FeSpec.BaseSpec)...)
	}
	if dc.Spec.BeSpec != nil {
		findings = append(findings, check("spec.beSpec", &dc.Spec.BeSpec.BaseSpec)...)
	}
	return findings
}

// maxNameLength leaves room for "-fe" and for the hash that the StatefulSet
// controller appends in a label of at most 63 characters.
const maxNameLength = 49

func nameFits(dc *dorisv1.DorisCluster) []plan.Finding {
	if len(validation.IsDNS1123Label(dc.Name)) == 0 && len(dc.Name) <= maxNameLength {
		return nil
	}
	return []plan.Finding{refusal("metadata.name",
		"%q cannot be the start of the names of Services and Pods: use at most %d lower case letters, digits and dashes, in a new DorisCluster", dc.Name, maxNameLength)}
}

func frontendsKnown(dc *dorisv1.DorisCluster) []plan.Finding {
	if dc.Spec.FeSpec != nil || dc.Spec.BeSpec == nil {
		return nil
	}
	if external, _ := externalFrontends(&dc.Spec.BeSpec.BaseSpec); len(external) > 0 {
		return nil
	}
	return []plan.Finding{refusal("spec.feSpec",
		"there are no frontends for the backends to register with: add feSpec, or say in spec.beSpec.feAddress where they are")}
}

func frontendsRun(dc *dorisv1.DorisCluster) []plan.Finding {
	fe, be := dc.Spec.FeSpec, dc.Spec.BeSpec
	if fe == nil || be == nil || replicasOf(&fe.BaseSpec) > 0 || replicasOf(&be.BaseSpec) == 0 {
		return nil
	}
	if external, _ := externalFrontends(&be.BaseSpec); len(external) > 0 {
		return nil
	}
	return []plan.Finding{refusal("spec.feSpec.replicas",
		"0 frontends cannot serve %d backends: set it to at least 1, say in spec.beSpec.feAddress where other frontends are, or set spec.beSpec.replicas to 0 as well", replicasOf(&be.BaseSpec))}
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

func imageGiven(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		if spec.Image != "" {
			return nil
		}
		return []plan.Finding{refusal(field+".image", "no image is named: set it, for example to apache/doris:fe-2.1.8 or apache/doris:be-2.1.8")}
	})
}

func adminUserCanRegister(dc *dorisv1.DorisCluster) []plan.Finding {
	user := dc.Spec.AdminUser
	if user == nil || dc.Spec.AuthSecret != "" || !strings.EqualFold(user.Name, "admin") {
		return nil
	}
	return []plan.Finding{refusal("spec.adminUser.name",
		"%q is built into Doris and cannot register members: choose another name, or use root", user.Name)}
}

func serviceTypeServed(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		switch t := serviceOf(spec).Type; t {
		case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
			return nil
		default:
			return []plan.Finding{refusal(field+".service.type", "%q leads to no Pods: use ClusterIP, NodePort or LoadBalancer", t)}
		}
	})
}

func nodePortsDistinct(dc *dorisv1.DorisCluster) []plan.Finding {
	taken := map[int32]string{} // a node port belongs to one Service of the whole cluster
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var findings []plan.Finding
		for i, p := range serviceOf(spec).ServicePorts {
			field := indexed(field+".service.servicePorts", i) + ".nodePort"
			other, twice := taken[p.NodePort]
			switch {
			case p.NodePort == 0: // left to Kubernetes
			case p.NodePort < 1 || p.NodePort > 65535:
				findings = append(findings, refusal(field, "%d is no port: use one between 30000 and 32767, or 0 to let Kubernetes choose", p.NodePort))
			case twice:
				findings = append(findings, refusal(field, "%d is used by %s as well: give each its own", p.NodePort, other))
			default:
				taken[p.NodePort] = field
			}
			if p.NodePort > 0 && p.NodePort <= 65535 && (p.NodePort < 30000 || p.NodePort > 32767) {
				findings = append(findings, plan.Finding{
					Severity: plan.Warning, Field: field, Reason: meta.ReasonInvalidSpec,
					Message: fmt.Sprintf("%d lies outside 30000 to 32767, the node ports of Kubernetes unless its API server is told otherwise: the Service may be refused", p.NodePort),
				})
			}
		}
		return findings
	})
}

func volumesComplete(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var findings []plan.Finding
		names := map[string]string{}
		for i := range spec.PersistentVolumes {
			pv := &spec.PersistentVolumes[i]
			field := indexed(field+".persistentVolumes", i)
			other, twice := names[pv.Name]
			switch {
			case pv.Name == "":
				findings = append(findings, refusal(field+".name", "the volume has no name, from which those of the claims are made: give it one"))
			case len(validation.IsDNS1123Label(pv.Name)) > 0:
				findings = append(findings, refusal(field+".name", "%q cannot be the name of a volume: use at most 63 lower case letters, digits and dashes", pv.Name))
			case twice && pv.MountPath != "":
				findings = append(findings, refusal(field+".name", "%q is the name of %s as well, and claims are told apart by it: choose another", pv.Name, other))
			default:
				names[pv.Name] = field
			}
			if _, found := pv.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]; !found {
				findings = append(findings, refusal(field+".persistentVolumeClaimSpec.resources.requests.storage", "the claim asks for no size: set it, for example to 100Gi"))
			}
		}
		return findings
	})
}

func mountsNamed(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var findings []plan.Finding
		for _, m := range append(configMapsOf(spec, field), secretsOf(spec, field)...) {
			if m.name == "" {
				findings = append(findings, refusal(m.field, "the entry names no object to mount: name one, or remove the entry"))
			}
		}
		return findings
	})
}

// legalMountPath is what the API server takes for a mount path.
var legalMountPath = regexp.MustCompile(`^/[^:]*$`)

func mountPathsAbsolute(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var findings []plan.Finding
		check := func(field, at string) {
			if !legalMountPath.MatchString(at) || path.Clean(at) == "/" {
				findings = append(findings, refusal(field+".mountPath", "%q cannot be mounted at: use an absolute path below / without a colon", at))
			}
		}
		for i := range spec.PersistentVolumes {
			if at := spec.PersistentVolumes[i].MountPath; at != "" {
				check(indexed(field+".persistentVolumes", i), at)
			}
		}
		for _, m := range append(configMapsOf(spec, field), secretsOf(spec, field)...) {
			check(m.field, m.path)
		}
		return findings
	})
}

func sharedClaimsComplete(dc *dorisv1.DorisCluster) []plan.Finding {
	var findings []plan.Finding
	for i, s := range dc.Spec.SharedPersistentVolumeClaims {
		field := indexed("spec.sharedPersistentVolumeClaims", i)
		if s.PersistentVolumeClaimName == "" {
			findings = append(findings, refusal(field+".persistentVolumeClaimName", "no claim is named: name one, or remove the entry"))
		}
		at := strings.ReplaceAll(s.MountPath, "$DORIS_HOME", rootPath)
		if !legalMountPath.MatchString(at) || path.Clean(at) == "/" {
			findings = append(findings, refusal(field+".mountPath", "%q cannot be mounted at: use an absolute path below /, or one that starts with $DORIS_HOME", s.MountPath))
		}
	}
	return findings
}
