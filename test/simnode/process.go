package simnode

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Process is one start of a container, with what it would have read.
type Process struct {
	// Namespace and Pod name the Pod, UID tells it from others of that name.
	Namespace, Pod string
	// UID is the Pod's.
	UID types.UID
	// Node is where it runs.
	Node string
	// IP is the Pod's address.
	IP string
	// Container and Image are the container's.
	Container, Image string
	// RestartCount is zero for the first process of a container.
	RestartCount int32
	// Env is the environment, with references to ConfigMaps, Secrets and Pod
	// fields resolved.
	Env map[string]string
	// Volumes holds the volumes that the container mounts, by path within each.
	Volumes Volumes
	// Files holds the same by absolute path, with subPath taken into account.
	Files map[string]string
}

// volumesOf copies the volumes that a container mounts.
func volumesOf(c *corev1.Container, all Volumes) Volumes {
	own := Volumes{}
	for _, m := range c.VolumeMounts {
		if files, found := all[m.Name]; found {
			own[m.Name] = maps.Clone(files)
		}
	}
	return own
}
