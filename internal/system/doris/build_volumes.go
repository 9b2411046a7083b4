package doris

import (
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
	volumes := []build.Volume{{
		Name: "podinfo", Kind: "Downward", Of: "podinfo", Path: podInfoPath, Field: "the Pod information that the images read",
		Source: &corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			{Path: "annotations", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations"}},
		}}},
	}}
	if name := authSecretName(c.dc); name != "" {
		v := secretVolume(mountRequest{field: "the management account (spec.authSecret or spec.adminUser)", name: name, path: basicAuthPath})
		v.Name, v.Kind, v.ReadOnly = "basic-auth", "Account", true
		volumes = append(volumes, v)
	}
	return volumes
}

// userVolumes returns the ConfigMaps and Secrets that the spec wants mounted.
func (c component) userVolumes() []build.Volume {
	var volumes []build.Volume
	for _, m := range configMapsOf(c.spec, c.field) {
		if m.name != "" {
			volumes = append(volumes, configMapVolume(m))
		}
	}
	for _, m := range secretsOf(c.spec, c.field) {
		if m.name != "" {
			volumes = append(volumes, secretVolume(m))
		}
	}
	if k := c.dc.Spec.KerberosInfo; k != nil {
		if k.Krb5ConfigMap != "" {
			v := configMapVolume(mountRequest{field: "spec.kerberosInfo.krb5ConfigMap", name: k.Krb5ConfigMap, path: krb5MountPath})
			v.Name, v.Kind = "krb5", "Krb5"
			volumes = append(volumes, v)
		}
		if k.KeytabSecretName != "" {
			v := secretVolume(mountRequest{field: "spec.kerberosInfo.keytabSecretName", name: k.KeytabSecretName, path: keytabMountPath})
			v.Name, v.Kind = "keytab", "Keytab"
			volumes = append(volumes, v)
		}
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

func configMapVolume(m mountRequest) build.Volume {
	return build.Volume{
		Name: m.name, Kind: "ConfigMap", Of: m.name, Path: m.path, Field: m.field,
		Source: &corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.name},
		}},
	}
}

func secretVolume(m mountRequest) build.Volume {
	return build.Volume{
		Name: m.name, Kind: "Secret", Of: m.name, Path: m.path, Field: m.field,
		Source: &corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: m.name}},
	}
}
