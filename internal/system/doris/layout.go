package doris

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// onClaim tells whether a directory of the main container of a set lies on a
// volume that outlives a Pod.
func onClaim(set *appsv1.StatefulSet, container, dir string) bool {
	best := ""
	kept := false
	claims := keptVolumes(set)
	for _, m := range mountsOf(set, container) {
		at := path.Clean(m.MountPath)
		if within(dir, at) && len(at) >= len(best) {
			best, kept = at, claims[m.Name]
		}
	}
	return kept
}

// within tells whether a path is a directory or lies below it.
func within(p, dir string) bool {
	p, dir = path.Clean(p), path.Clean(dir)
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// keptVolumes names the volumes of a set that outlive a Pod.
func keptVolumes(set *appsv1.StatefulSet) map[string]bool {
	kept := map[string]bool{}
	for _, c := range set.Spec.VolumeClaimTemplates {
		kept[c.Name] = true
	}
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.EmptyDir == nil && v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil && v.Projected == nil && v.Ephemeral == nil {
			kept[v.Name] = true // a shared claim, a disk, a directory of the node
		}
	}
	return kept
}

func mountsOf(set *appsv1.StatefulSet, container string) []corev1.VolumeMount {
	if c := containerOf(set.Spec.Template.Spec.Containers, container); c != nil {
		return c.VolumeMounts
	}
	return nil
}

// containerOf finds a container by its name; nil where there is none.
func containerOf(list []corev1.Container, name string) *corev1.Container {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// dataMounts tells which claim or emptyDir of the Pod lies at which path.
func dataMounts(set *appsv1.StatefulSet, container string) map[string]string {
	volumes := map[string]string{}
	for _, c := range set.Spec.VolumeClaimTemplates {
		volumes[c.Name] = "claim " + c.Name
	}
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.EmptyDir != nil {
			volumes[v.Name] = "emptyDir " + v.Name
		}
	}
	mounts := map[string]string{}
	for _, m := range mountsOf(set, container) {
		if what, data := volumes[m.Name]; data && !runtimeconfig.Mounts(m) { // those hold no data
			mounts[path.Clean(m.MountPath)] = what
		}
	}
	return mounts
}

// movesData refuses edits by which the data of members that exist would be
// looked for elsewhere: another mount path or name of a volume, a volume more or
// less, another directory in the configuration, another kind of identity.
func (p planner) movesData(w workload) []plan.Finding {
	if w.live == nil || w.found {
		return nil
	}
	field := fieldOf(w.kind)
	var findings []plan.Finding
	refuse := func(at, format string, args ...any) {
		findings = append(findings, unsafe(at, format, args...))
	}
	was := dataMounts(p.rendered(w, w.recorded, w.revision), string(w.kind))
	is := dataMounts(p.rendered(w, w.now, w.revision), string(w.kind))
	dirsWere, dirsAre := w.recorded.dataDirs(w.kind), w.now.dataDirs(w.kind)
	if w.recorded.Backend.Computation || w.kind == dorisv1.ComponentBroker {
		dirsAre = dirsWere // nothing is lost with a cache, and claims cannot move all the same
		was, is = claimsIn(was), claimsIn(is)
	}
	switch {
	case !slices.Equal(dirsWere, dirsAre):
		refuse(field+".configMapInfo", "the data is in %s, and the configuration now says %s: members that exist would start without their data. Put %s back",
			strings.Join(dirsWere, ", "), strings.Join(dirsAre, ", "), dataKey(w.kind))
	case !maps.Equal(was, is):
		refuse(field+".persistentVolumes", "%s: members that exist would start without their data, and the volumes of a StatefulSet cannot change. Put the entries back", describeMoves(was, is))
	}
	if w.recorded.Frontend.FQDN != w.now.Frontend.FQDN && w.kind == dorisv1.ComponentFE {
		refuse(field+".configMapInfo", "enable_fqdn_mode was %t when the members joined and is %t now: they would not know each other any more. Put it back", w.recorded.Frontend.FQDN, w.now.Frontend.FQDN)
	}
	return append(findings, p.changesClaims(w)...)
}

// claimsIn are those of the mounts that are claims.
func claimsIn(mounts map[string]string) map[string]string {
	return maps.Collect(func(yield func(string, string) bool) {
		for at, what := range mounts {
			if strings.HasPrefix(what, "claim ") && !yield(at, what) {
				return
			}
		}
	})
}

func (a accepted) dataDirs(kind dorisv1.ComponentType) []string {
	if kind == dorisv1.ComponentFE {
		return []string{a.Frontend.MetaDir}
	}
	return a.Backend.StorageRoots
}

func dataKey(kind dorisv1.ComponentType) string {
	if kind == dorisv1.ComponentFE {
		return "meta_dir"
	}
	return "storage_root_path"
}

// describeMoves names the first paths where something else lies now.
func describeMoves(was, is map[string]string) string {
	paths := slices.Sorted(maps.Keys(was))
	for _, p := range slices.Sorted(maps.Keys(is)) {
		if _, known := was[p]; !known {
			paths = append(paths, p)
		}
	}
	var moves []string
	for _, p := range paths {
		switch before, after := was[p], is[p]; {
		case before == after:
		case after == "":
			moves = append(moves, fmt.Sprintf("%s at %s would be gone", before, p))
		case before == "":
			moves = append(moves, fmt.Sprintf("%s would appear at %s", after, p))
		default:
			moves = append(moves, fmt.Sprintf("%s would replace %s at %s", after, before, p))
		}
	}
	return strings.Join(moves, "; ")
}
