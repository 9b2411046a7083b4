package doris

import (
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

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

// claimsLegal checks the claims of volumes. A StatefulSet takes most of what is
// wrong with them and then makes no Pod.
func claimsLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		for i := range spec.PersistentVolumes {
			pv := &spec.PersistentVolumes[i]
			at := indexed(field+".persistentVolumes", i)
			f.annotations(at+".annotations", pv.Annotations)
			switch pv.Provisioner {
			case dorisv1.PVCProvisionerUnspecified, dorisv1.PVCProvisionerStatefulSet, dorisv1.PVCProvisionerOperator:
			default:
				f.idlef(at+".provisioner", "%s is no provisioner, so the StatefulSet makes the claims: use StatefulSet, or leave it out", shown(pv.Provisioner))
			}
			f.claim(at+".persistentVolumeClaimSpec", &pv.PersistentVolumeClaimSpec)
		}
		return f
	})
}

func (f *faults) claim(at string, claim *corev1.PersistentVolumeClaimSpec) {
	size, found := claim.Resources.Requests[corev1.ResourceStorage]
	switch {
	case !found:
		f.refusef(at+".resources.requests.storage", "the claim asks for no size: set it, for example to 100Gi")
	case size.Sign() <= 0:
		f.refusef(at+".resources.requests.storage", "%s is no size: set it to more than 0, for example to 100Gi", size.String())
	}
	f.accessModes(at+".accessModes", claim.AccessModes)
	f.class(at+".storageClassName", "StorageClass", claim.StorageClassName)
	f.class(at+".volumeAttributesClassName", "VolumeAttributesClass", claim.VolumeAttributesClassName)
	if mode := claim.VolumeMode; mode != nil && *mode != corev1.PersistentVolumeFilesystem {
		f.refusef(at+".volumeMode", "%s cannot be mounted at a path: use Filesystem, or leave it out", shown(*mode))
	}
	f.selector(at+".selector", claim.Selector)
	f.dataSource(at, claim)
}

func (f *faults) class(at, kind string, name *string) {
	if name != nil && *name != "" && len(validation.IsDNS1123Subdomain(*name)) > 0 {
		f.refusef(at, "%s cannot be the name of a %s: use the name of one, or leave it out for the default", shown(*name), kind)
	}
}

func (f *faults) accessModes(at string, modes []corev1.PersistentVolumeAccessMode) {
	for i, mode := range modes {
		switch mode {
		case corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany:
		case corev1.ReadWriteOncePod:
			if len(modes) > 1 {
				f.refusef(indexed(at, i), "%s goes with no other mode: keep one of them", mode)
			}
		default:
			f.refusef(indexed(at, i), "%s is no access mode: use ReadWriteOnce, or another that the storage class offers", shown(mode))
		}
	}
}

// dataSource checks what a claim is filled from.
func (f *faults) dataSource(at string, claim *corev1.PersistentVolumeClaimSpec) {
	const incomplete = "it names no object that a volume can be filled from: name a kind and an object, or leave it out for an empty volume"
	source, ref := claim.DataSource, claim.DataSourceRef
	if source != nil && !fills(source.APIGroup, source.Kind, source.Name) {
		f.refusef(at+".dataSource", incomplete)
	}
	if ref == nil {
		return
	}
	if !fills(ref.APIGroup, ref.Kind, ref.Name) {
		f.refusef(at+".dataSourceRef", incomplete)
	}
	elsewhere := ref.Namespace != nil && *ref.Namespace != ""
	if source != nil && (elsewhere || source.Kind != ref.Kind || source.Name != ref.Name) {
		f.refusef(at+".dataSource", "it names another object than dataSourceRef: keep one of the two")
	}
}

// fills tells whether an object is named, of a kind that volumes are filled from.
func fills(group *string, kind, name string) bool {
	core := group == nil || *group == ""
	return kind != "" && name != "" && (!core || kind == "PersistentVolumeClaim")
}
