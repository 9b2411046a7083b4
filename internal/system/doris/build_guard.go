package doris

import (
	_ "embed" // the script of the guard

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-dev/fairlead/internal/build"
)

// guardScript is part of Pod templates: a change of it is a new revision.
//
//go:embed metadata_guard_r1.sh
var guardScript string

const (
	bootstrapKey  = "bootstrapped"
	bootstrapPath = "/etc/fairlead/bootstrap"

	// envMetaDir tells the guard where the metadata lies.
	envMetaDir = "FAIRLEAD_META_DIR"
)

// metadataGuard returns the init container that keeps a frontend which lost its
// metadata from founding a second cluster. It runs as the main container does, so
// that it sees what that will see.
func (c component) metadataGuard(main corev1.Container, storage storage) corev1.Container {
	guard := corev1.Container{
		Name: "metadata-guard", Image: main.Image, ImagePullPolicy: main.ImagePullPolicy,
		Command:         []string{"bash", "-c", guardScript},
		Env:             build.MergeEnv([]corev1.EnvVar{{Name: envMetaDir, Value: c.dataDirs[0]}}, main.Env),
		Resources:       main.Resources,
		SecurityContext: main.SecurityContext,
		VolumeMounts: []corev1.VolumeMount{
			{Name: storage.bootstrap, MountPath: bootstrapPath, ReadOnly: true},
		},
	}
	seen := map[string]bool{}
	for _, needed := range []string{c.dataDirs[0], podInfoPath, basicAuthPath} {
		if mount, found := storage.volumes.Covering(needed); found && !seen[mount.MountPath] {
			seen[mount.MountPath] = true
			guard.VolumeMounts = append(guard.VolumeMounts, mount)
		}
	}
	return guard
}
