package doris

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

func podSecurityLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		sc := spec.SecurityContext
		if sc == nil {
			return nil
		}
		field += ".securityContext"
		f.user(field+".runAsUser", sc.RunAsUser)
		f.group(field+".runAsGroup", sc.RunAsGroup)
		f.group(field+".fsGroup", sc.FSGroup)
		for i, g := range sc.SupplementalGroups {
			f.group(indexed(field+".supplementalGroups", i), &g)
		}
		oneOf(&f, field+".fsGroupChangePolicy", sc.FSGroupChangePolicy, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)
		oneOf(&f, field+".supplementalGroupsPolicy", sc.SupplementalGroupsPolicy, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
		oneOf(&f, field+".seLinuxChangePolicy", sc.SELinuxChangePolicy, corev1.SELinuxChangePolicyRecursive, corev1.SELinuxChangePolicyMountOption)
		f.seccomp(field+".seccompProfile", sc.SeccompProfile)
		f.appArmor(field+".appArmorProfile", sc.AppArmorProfile)
		seen := map[string]bool{}
		for i, s := range sc.Sysctls {
			at := indexed(field+".sysctls", i) + ".name"
			switch {
			case !sysctlName(s.Name):
				f.refusef(at, "%s cannot be the name of a kernel parameter: use one such as net.core.somaxconn", shown(s.Name))
			case seen[s.Name]:
				f.refusef(at, "%s is set by another entry as well: keep one of the two", shown(s.Name))
			}
			seen[s.Name] = true
		}
		return f
	})
}

// sysctlName tells whether a text is segments of small letters, digits, dashes
// and underscores with dots or slashes between them.
func sysctlName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for segment := range strings.SplitSeq(strings.ReplaceAll(name, "/", "."), ".") {
		// A segment is a label that may hold underscores and may be long.
		legal := strings.Trim(segment, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
		if segment == "" || !legal || strings.ContainsAny(segment[:1]+segment[len(segment)-1:], "-_") {
			return false
		}
	}
	return true
}

func containerSecurityLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		f.notRoot(field, spec)
		sc := spec.ContainerSecurityContext
		if sc == nil {
			return f
		}
		be := dc.Spec.BeSpec
		grouped := be != nil && spec == &be.BaseSpec && be.EnableWorkloadGroup
		field += ".containerSecurityContext"
		f.user(field+".runAsUser", sc.RunAsUser)
		f.group(field+".runAsGroup", sc.RunAsGroup)
		oneOf(&f, field+".procMount", sc.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
		if sc.ProcMount != nil && *sc.ProcMount == corev1.UnmaskedProcMount {
			f.refusef(field+".procMount", "it needs a user namespace of its own, which this kind does not offer: use Default, or leave it out")
		}
		f.seccomp(field+".seccompProfile", sc.SeccompProfile)
		f.appArmor(field+".appArmorProfile", sc.AppArmorProfile)
		f.escalation(field, sc, grouped)
		return f
	})
}

// escalation refuses a container that may not gain rights and has them all.
func (f *faults) escalation(field string, sc *corev1.SecurityContext, grouped bool) {
	if sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation {
		return
	}
	at := field + ".allowPrivilegeEscalation"
	switch {
	case grouped:
		f.refusef(at, "spec.beSpec.enableWorkloadGroup makes the container privileged, and that cannot be without escalation: leave one of the two out")
	case sc.Privileged != nil && *sc.Privileged:
		f.refusef(at, "the container is privileged, and that cannot be without escalation: leave one of the two out")
	case sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN"):
		f.refusef(at, "the container has the capability CAP_SYS_ADMIN, and that cannot be without escalation: leave one of the two out")
	}
}

// notRoot refuses a container that must not be root and is: no node starts it.
func (f *faults) notRoot(field string, spec *dorisv1.BaseSpec) {
	must, mustAt := false, ""
	var user *int64
	userAt := ""
	if sc := spec.SecurityContext; sc != nil {
		user, userAt = sc.RunAsUser, field+".securityContext.runAsUser"
		if sc.RunAsNonRoot != nil {
			must, mustAt = *sc.RunAsNonRoot, field+".securityContext.runAsNonRoot"
		}
	}
	if sc := spec.ContainerSecurityContext; sc != nil {
		if sc.RunAsUser != nil {
			user, userAt = sc.RunAsUser, field+".containerSecurityContext.runAsUser"
		}
		if sc.RunAsNonRoot != nil {
			must, mustAt = *sc.RunAsNonRoot, field+".containerSecurityContext.runAsNonRoot"
		}
	}
	if must && user != nil && *user == 0 {
		f.refusef(userAt, "0 is root, which %s forbids, so no node would start the container: use another user, or set that to false", mustAt)
	}
}

func (f *faults) user(at string, id *int64) {
	if id != nil && len(validation.IsValidUserID(*id)) > 0 {
		f.refusef(at, "%d is no user id: use one from 0 to 2147483647", *id)
	}
}

func (f *faults) group(at string, id *int64) {
	if id != nil && len(validation.IsValidGroupID(*id)) > 0 {
		f.refusef(at, "%d is no group id: use one from 0 to 2147483647", *id)
	}
}

// oneOf refuses a value that is set and not among those that are known.
func oneOf[T ~string](f *faults, at string, value *T, known ...T) {
	if value == nil || slices.Contains(known, *value) {
		return
	}
	words := make([]string, 0, len(known))
	for _, k := range known {
		words = append(words, string(k))
	}
	f.refusef(at, "%s is not known: use %s, or leave it out", shown(*value), strings.Join(words, " or "))
}

func (f *faults) seccomp(at string, p *corev1.SeccompProfile) {
	if p == nil {
		return
	}
	oneOf(f, at+".type", &p.Type, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined, corev1.SeccompProfileTypeLocalhost)
	local := p.Type == corev1.SeccompProfileTypeLocalhost
	switch {
	case local && p.LocalhostProfile == nil:
		f.refusef(at+".localhostProfile", "the type Localhost needs the file of the profile: name it, or use RuntimeDefault")
	case !local && p.LocalhostProfile != nil:
		f.refusef(at+".localhostProfile", "it counts only for the type Localhost: set the type to that, or leave the file out")
	case local && (path.IsAbs(*p.LocalhostProfile) || slices.Contains(strings.Split(*p.LocalhostProfile, "/"), "..")):
		f.refusef(at+".localhostProfile", "%s does not lie below the directory of profiles: use a relative path without ..", shown(*p.LocalhostProfile))
	}
}

func (f *faults) appArmor(at string, p *corev1.AppArmorProfile) {
	if p == nil {
		return
	}
	oneOf(f, at+".type", &p.Type, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined, corev1.AppArmorProfileTypeLocalhost)
	local := p.Type == corev1.AppArmorProfileTypeLocalhost
	switch {
	case local && (p.LocalhostProfile == nil || strings.TrimSpace(*p.LocalhostProfile) != *p.LocalhostProfile || *p.LocalhostProfile == ""):
		f.refusef(at+".localhostProfile", "the type Localhost needs the name of a profile that is loaded on the nodes: name it, without white space around it")
	case !local && p.LocalhostProfile != nil:
		f.refusef(at+".localhostProfile", "it counts only for the type Localhost: set the type to that, or leave the name out")
	}
}
