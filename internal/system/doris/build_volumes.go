package doris

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-dev/fairlead/internal/build"
)

// Where the operator mounts things. The images look there.
const (
	podInfoPath     = "/etc/podinfo"
	basicAuthPath   = "/etc/basic_auth"
	krb5MountPath   = "/etc/krb5"
	keytabMountPath = "/etc/keytab"
)

// operatorVolumes returns the volumes that every Pod of the component gets for
// the operator's or the images' own purposes.
func (c component) operatorVolumes() []build.Volume {
	volumes := []build.Volume{podInfoVolume()}
	if name := authSecretName(c.dc); name != "" {
		v := secretVolume(mountRequest{field: "the management account (spec.authSecret or spec.adminUser)", name: name, path: basicAuthPath})
		v.Name, v.Kind, v.ReadOnly = "basic-auth", "Account", true
		volumes = append(volumes, v)
	}
	return volumes
}

func podInfoVolume() build.Volume {
	return build.Volume{
		Name: "podinfo", Kind: "Downward", Of: "podinfo", Path: podInfoPath, Field: "the Pod information that the images read",
		Source: &corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			{Path: "annotations", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations"}},
		}}},
	}
}

// userVolumes returns the ConfigMaps and Secrets that the spec wants mounted.
func (c component) userVolumes() []build.Volume {
	var volumes []build.Volume
	for _, m := range configMapsOf(c.spec, c.field) {
		if m.name != "" {
			volumes = append(volumes, configMapVolume(m, cmp.Or(c.in.Copies[m.name], m.name)))
		}
	}
	for _, m := range secretsOf(c.spec, c.field) {
		if m.name != "" {
			volumes = append(volumes, secretVolume(m))
		}
	}
	return append(volumes, c.kerberosVolumes(c.in.Copies)...)
}

// kerberosVolumes returns what the spec wants mounted for Kerberos, a copy in the
// stead of the ConfigMap where there is one.
func (c component) kerberosVolumes(copies map[string]string) []build.Volume {
	k := c.dc.Spec.KerberosInfo
	if k == nil {
		return nil
	}
	var volumes []build.Volume
	if name := k.Krb5ConfigMap; name != "" {
		v := configMapVolume(mountRequest{field: "spec.kerberosInfo.krb5ConfigMap", name: name, path: krb5MountPath}, cmp.Or(copies[name], name))
		v.Name, v.Kind = "krb5", "Krb5"
		volumes = append(volumes, v)
	}
	if name := k.KeytabSecretName; name != "" {
		v := secretVolume(mountRequest{field: "spec.kerberosInfo.keytabSecretName", name: name, path: keytabMountPath})
		v.Name, v.Kind = "keytab", "Keytab"
		volumes = append(volumes, v)
	}
	return volumes
}

// bootstrapVolume returns the volume with the record that the cluster has served
// before. It is optional: the record is made later than the Pods.
func bootstrapVolume(cluster string) build.Volume {
	return build.Volume{
		Name: "fe-bootstrap", Kind: "Bootstrap", Of: BootstrapConfigMapName(cluster),
		Source: &corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: BootstrapConfigMapName(cluster)},
			Optional:             new(true),
		}},
	}
}

// configMapVolume returns the volume of a ConfigMap, whose content comes from
// another one where there is a copy. Its name does not tell.
func configMapVolume(m mountRequest, from string) build.Volume {
	return build.Volume{
		Name: m.name, Kind: "ConfigMap", Of: m.name, Path: m.path, Field: m.field,
		Source: &corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: from},
		}},
	}
}

func secretVolume(m mountRequest) build.Volume {
	return build.Volume{
		Name: m.name, Kind: "Secret", Of: m.name, Path: m.path, Field: m.field,
		Source: &corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: m.name}},
	}
}
