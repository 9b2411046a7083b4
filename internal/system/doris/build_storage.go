package doris

import (
	"errors"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/build"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Kinds of volumes, in the words of build.Volume.
const (
	kindClaim    = "Claim"
	kindShared   = "PersistentVolumeClaim"
	kindEmptyDir = "EmptyDir"
)

// storage is what a component mounts.
type storage struct {
	volumes *build.Volumes
	claims  []corev1.PersistentVolumeClaim
	// podVolumes are the volumes of the Pod, also those that only an init
	// container mounts.
	podVolumes []corev1.Volume
	// bootstrap is the volume with the record that the cluster has served before.
	bootstrap string
	findings  []plan.Finding
}

// storage collects the volumes of the component. Claims come first because their
// names are fixed; what follows gets another volume name where one is taken.
func (c component) storage() (storage, []plan.Finding) {
	s := storage{volumes: build.NewVolumes()}
	shared := c.sharedClaims()
	s.addClaims(c, shared)
	for _, v := range shared {
		s.add(v)
	}
	s.addDataDirs(c)
	for _, v := range c.operatorVolumes() {
		s.add(v)
	}
	for _, v := range c.userVolumes() {
		s.add(v)
	}
	if c.kind == dorisv1.ComponentFE {
		s.bootstrap, _ = s.volumes.Attach(bootstrapVolume(c.dc.Name))
	}
	s.podVolumes = s.volumes.Volumes()
	return s, s.findings
}

// add adds one volume, or says why it cannot.
func (s *storage) add(v build.Volume) {
	err := s.volumes.Add(v)
	if err == nil {
		return
	}
	field, message := v.Field, fmt.Sprintf("%v: give the volume another name", err)
	if conflict, ok := errors.AsType[*build.PathConflictError](err); ok {
		other := conflict.Other
		if !strings.HasPrefix(field, "spec.") {
			field, other = other, field // it is the user who can move
		}
		message = fmt.Sprintf("path %s is taken by %s, and two volumes cannot be mounted at one path: choose another mountPath", conflict.Path, other)
	}
	s.findings = append(s.findings, refusal(field, "%s", message))
}

// addClaims adds the volumes that outlive a Pod.
func (s *storage) addClaims(c component, shared []build.Volume) {
	for _, pv := range c.persistentVolumes() {
		if len(validation.IsDNS1123Label(pv.Name)) > 0 {
			continue // refused by Validate
		}
		if taken := volumeAt(shared, pv.MountPath); taken != "" {
			s.findings = append(s.findings, leftOut(pv, taken))
			continue
		}
		before := len(s.findings)
		s.add(build.Volume{Name: pv.Name, Kind: kindClaim, Of: pv.MountPath, Path: pv.MountPath, Field: pv.field})
		if len(s.findings) > before {
			continue
		}
		s.claims = append(s.claims, corev1.PersistentVolumeClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: pv.Name, Annotations: pv.Annotations},
			Spec:       claimSpecOf(&pv.PersistentVolume),
		})
	}
}

func volumeAt(volumes []build.Volume, at string) string {
	for _, v := range volumes {
		if path.Clean(v.Path) == path.Clean(at) {
			return v.Field
		}
	}
	return ""
}

// placedVolume is an entry of persistentVolumes with a path.
type placedVolume struct {
	dorisv1.PersistentVolume
	field string
}

// persistentVolumes returns the entries of the spec with the template, the last
// entry without a path, spread over the data directories that have no entry of
// their own.
func (c component) persistentVolumes() []placedVolume {
	var placed []placedVolume
	template := -1
	own := map[string]bool{}
	for i := range c.spec.PersistentVolumes {
		pv := c.spec.PersistentVolumes[i]
		if pv.MountPath == "" {
			template = i
			continue
		}
		own[path.Clean(pv.MountPath)] = true
		placed = append(placed, placedVolume{pv, indexed(c.field+".persistentVolumes", i)})
	}
	if template < 0 {
		return placed
	}
	names := pathNames(c.dataDirs)
	for i, dir := range c.dataDirs {
		if own[dir] {
			continue
		}
		pv := *c.spec.PersistentVolumes[template].DeepCopy()
		pv.MountPath = dir
		if len(c.dataDirs) > 1 {
			pv.Name = volumeName(pv.Name + "-" + names[i])
		}
		placed = append(placed, placedVolume{pv, indexed(c.field+".persistentVolumes", template)})
	}
	return placed
}

// pathNames names directories by their last segment, and by more segments where
// that is taken. Existing claims have these names: they never change.
func pathNames(dirs []string) []string {
	taken := map[string]bool{}
	var names []string
	for _, dir := range dirs {
		segments := strings.Split(strings.Trim(dir, "/"), "/")
		n := len(segments) - 1
		name := segments[n]
		for n--; taken[name] && n >= 0; n-- {
			name = segments[n] + "-" + name
		}
		taken[name] = true
		names = append(names, strings.ReplaceAll(name, "_", "-"))
	}
	return names
}

// volumeName makes a legal volume name of one that holds characters of a path.
func volumeName(name string) string {
	legal := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	if legal == name && len(name) <= 63 {
		return name
	}
	const keep = 52 // of 63, with a dash and ten characters of a hash
	legal = legal[:min(len(legal), keep)]
	return strings.Trim(legal, "-") + "-" + build.ShortHash(name)
}

// addDataDirs gives every data directory that no volume holds one that lives as
// long as the Pod: without it the data would go with the container.
func (s *storage) addDataDirs(c component) {
	names := pathNames(c.dataDirs)
	for i, dir := range c.dataDirs {
		if mount, held := s.volumes.Covering(dir); held && mount.Name != "" {
			continue
		}
		name := c.dataName
		if len(c.dataDirs) > 1 {
			name = volumeName(name + "-" + names[i])
		}
		field := c.field + ".persistentVolumes"
		s.add(build.Volume{
			Name: name, Kind: kindEmptyDir, Of: dir, Path: dir, Field: field,
			Source: &corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		})
		if !c.scratch {
			s.findings = append(s.findings, notPersistent(field, dir))
		}
	}
}

// leftOut says that a volume gives way to a shared claim.
func leftOut(pv placedVolume, taken string) plan.Finding {
	return plan.Finding{
		Severity: plan.Warning, Field: pv.field, Reason: meta.ReasonNoEffect,
		Message: fmt.Sprintf("%s is mounted at %s already, so this volume is left out: remove one of the two", taken, pv.MountPath),
	}
}

// notPersistent says that a directory with data lives only as long as its Pod.
func notPersistent(field, dir string) plan.Finding {
	return plan.Finding{
		Severity: plan.Warning, Field: field, Reason: meta.ReasonDataNotPersistent,
		Message: fmt.Sprintf("no volume holds %s, so what lies there is lost with the Pod: add an entry with this mountPath and a claim. Volumes of a running cluster cannot be added later without making its StatefulSet again", dir),
	}
}

// sharedClaims returns the shared claims that the component mounts.
func (c component) sharedClaims() []build.Volume {
	var volumes []build.Volume
	for i, s := range c.dc.Spec.SharedPersistentVolumeClaims {
		if !sharedWith(s, c.kind) || s.PersistentVolumeClaimName == "" {
			continue
		}
		volumes = append(volumes, build.Volume{
			Name: s.PersistentVolumeClaimName, Kind: kindShared, Of: s.PersistentVolumeClaimName,
			Path:  strings.ReplaceAll(s.MountPath, "$DORIS_HOME", c.home),
			Field: indexed("spec.sharedPersistentVolumeClaims", i),
			Source: &corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: s.PersistentVolumeClaimName,
			}},
		})
	}
	return volumes
}
