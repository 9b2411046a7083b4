package doris

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/build"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// annotationClaimManager marks claims that an operator makes rather than the
// StatefulSet controller.
const annotationClaimManager = "selectdb.doris.com/pvc-manager"

// storageR0 is what a component mounts at revision 0. Volumes and mounts are in
// two different orders there.
type storageR0 struct {
	storage
	mounts []corev1.VolumeMount
	rank   map[string]volumeRank
}

// volumeRank orders the volumes of a Pod. Mounts are in the order in which they
// are added.
type volumeRank int

const (
	rankData volumeRank = iota
	rankPodInfo
	rankAccount
	rankConfigMap
	rankSecret
	rankKerberos
	rankShared
)

func (c component) storageR0() (storageR0, []plan.Finding) {
	s := storageR0{storage: storage{volumes: build.NewVolumes()}, rank: map[string]volumeRank{}}
	shared := c.sharedClaims()
	s.addR0(rankPodInfo, podInfoVolume())
	s.addDataR0(c, shared)
	for _, m := range configMapsOf(c.spec, c.field) {
		if m.name != "" {
			s.addR0(rankConfigMap, configMapVolume(m, m.name))
		}
	}
	for _, m := range secretsOf(c.spec, c.field) {
		if m.name != "" {
			s.addR0(rankSecret, secretVolume(m))
		}
	}
	if name := c.dc.Spec.AuthSecret; name != "" {
		v := secretVolume(mountRequest{field: "spec.authSecret", name: name, path: basicAuthPath})
		v.Name, v.Kind = "basic-auth", "Account"
		s.addR0(rankAccount, v)
	}
	for _, v := range c.kerberosVolumes(nil) {
		s.addR0(rankKerberos, v)
	}
	for _, v := range shared {
		v.Path = strings.TrimSuffix(v.Path, "/")
		s.addR0(rankShared, v)
	}
	s.podVolumes = append(s.podVolumes, s.volumes.Volumes()...)
	slices.SortStableFunc(s.podVolumes, func(a, b corev1.Volume) int { return cmp.Compare(s.rank[a.Name], s.rank[b.Name]) })
	s.warnOfLoss(c)
	return s, s.findings
}

// addR0 adds one volume, mounted at the path just as it was written.
func (s *storageR0) addR0(rank volumeRank, v build.Volume) {
	volumes, mounts := len(s.volumes.Volumes()), len(s.volumes.Mounts())
	s.add(v)
	if all := s.volumes.Volumes(); len(all) > volumes {
		s.rank[all[volumes].Name] = rank
	}
	if all := s.volumes.Mounts(); len(all) > mounts {
		mount := all[mounts]
		mount.MountPath = v.Path
		s.mounts = append(s.mounts, mount)
	}
}

// addDataR0 adds the volumes with data: those that the spec lists, and only where
// it lists none, one that lives as long as the Pod.
func (s *storageR0) addDataR0(c component, shared []build.Volume) {
	listed := false
	for _, pv := range c.persistentVolumes() {
		if len(validation.IsDNS1123Label(pv.Name)) > 0 {
			continue // refused by Validate
		}
		if taken := volumeAt(shared, pv.MountPath); taken != "" {
			s.findings = append(s.findings, leftOut(pv, taken))
			continue
		}
		listed = true
		s.addClaimR0(pv)
	}
	if name, dir := c.dataVolumeR0(); !listed && name != "" {
		s.addR0(rankData, build.Volume{
			Name: name, Kind: kindEmptyDir, Of: dir, Path: dir, Field: c.field + ".persistentVolumes",
			Source: &corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		})
	}
}

// warnOfLoss says which directories with data live only as long as a Pod.
func (s *storageR0) warnOfLoss(c component) {
	if c.scratch {
		return
	}
	for _, dir := range c.dataDirs {
		mount, held := s.volumes.Covering(dir)
		if scratch := slices.ContainsFunc(s.podVolumes, func(v corev1.Volume) bool { return v.Name == mount.Name && v.EmptyDir != nil }); scratch || !held {
			s.findings = append(s.findings, notPersistent(c.field+".persistentVolumes", dir))
		}
	}
}

// addClaimR0 adds a claim template and its volume. The Pod template names the
// volume too, with the name of the template as the name of the claim; the
// StatefulSet controller puts the claim of each Pod in its place.
func (s *storageR0) addClaimR0(pv placedVolume) {
	mounts := len(s.mounts)
	s.addR0(rankData, build.Volume{Name: pv.Name, Kind: kindClaim, Of: pv.MountPath, Path: pv.MountPath, Field: pv.field})
	if len(s.mounts) == mounts {
		return
	}
	s.podVolumes = append(s.podVolumes, corev1.Volume{Name: pv.Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pv.Name},
	}})
	claim := corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: pv.Name, Annotations: pv.Annotations},
		Spec:       claimSpecOf(&pv.PersistentVolume),
	}
	if pv.Provisioner == dorisv1.PVCProvisionerOperator {
		claim.Annotations = map[string]string{annotationClaimManager: "operator"}
		maps.Copy(claim.Annotations, pv.Annotations)
	}
	s.claims = append(s.claims, claim)
}

// dataVolumeR0 returns the volume and the directory of the data when nothing is
// configured. It is a fixed directory, whatever the configuration file says.
func (c component) dataVolumeR0() (name, dir string) {
	switch c.kind {
	case dorisv1.ComponentFE:
		return c.dataName, frontendHome + "/doris-meta"
	case dorisv1.ComponentBE, dorisv1.ComponentCN:
		return c.dataName, backendHome + "/storage"
	case dorisv1.ComponentBroker: // keeps nothing
	}
	return "", ""
}
