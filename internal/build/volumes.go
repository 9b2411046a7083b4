package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Volume is one volume of a Pod and one path where its main container sees it.
type Volume struct {
	// Name is the wanted name of the volume. Where it is not a legal name, or is
	// taken by another volume, a stable one is made from Source.
	Name string
	// Kind and Of name what is mounted, for example "ConfigMap" and "fe-conf". Two
	// Volumes with the same Kind and Of are one volume with two mounts.
	Kind, Of string
	// Source of the volume; nil for a claim made from a template, whose volume the
	// StatefulSet controller adds and whose name is never changed.
	Source *corev1.VolumeSource
	// Path is the absolute path of the mount.
	Path string
	// ReadOnly mounts it so.
	ReadOnly bool
	// Field is the field of the custom resource that asks for it, or words for
	// what does.
	Field string
}

// PathConflictError tells that two volumes want one path, which the API server
// would refuse.
type PathConflictError struct {
	Path         string
	Field, Other string
}

// Error implements error.
func (e *PathConflictError) Error() string {
	return fmt.Sprintf("path %s is taken by %s", e.Path, e.Other)
}

// Volumes collects the volumes of a Pod so that names and paths stay unique.
type Volumes struct {
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
	// paths maps a path to the field that mounts there.
	paths map[string]string
	// names maps a volume name to the identity of what is mounted.
	names map[string]string
	// known maps the identity of what is mounted to its volume name.
	known map[string]string
}

// NewVolumes returns an empty collection.
func NewVolumes() *Volumes {
	return &Volumes{paths: map[string]string{}, names: map[string]string{}, known: map[string]string{}}
}

// Add adds a volume and its mount. It fails, and adds nothing, where the path is
// taken, or where a claim template has a name that is taken.
func (v *Volumes) Add(w Volume) error {
	at := path.Clean(w.Path)
	if other, taken := v.paths[at]; taken {
		return &PathConflictError{Path: at, Field: w.Field, Other: other}
	}
	name, err := v.Attach(w)
	if err != nil {
		return err
	}
	v.paths[at] = w.Field
	v.mounts = append(v.mounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: w.ReadOnly})
	return nil
}

// Attach adds a volume that the main container does not mount, and returns its
// name.
func (v *Volumes) Attach(w Volume) (string, error) {
	identity := w.Kind + "/" + w.Of
	if name, known := v.known[identity]; known {
		return name, nil
	}
	name, err := v.name(w, identity)
	if err != nil {
		return "", err
	}
	v.names[name], v.known[identity] = identity, name
	if w.Source != nil {
		v.volumes = append(v.volumes, corev1.Volume{Name: name, VolumeSource: *w.Source.DeepCopy()})
	}
	return name, nil
}

// name chooses the name of a new volume.
func (v *Volumes) name(w Volume, identity string) (string, error) {
	_, taken := v.names[w.Name]
	if !taken && len(validation.IsDNS1123Label(w.Name)) == 0 {
		return w.Name, nil
	}
	if w.Source == nil {
		return "", fmt.Errorf("volume name %q is taken or not a legal name", w.Name)
	}
	return strings.ToLower(w.Kind) + "-" + ShortHash(identity), nil
}

// Volumes returns the volumes in the order in which they were added.
func (v *Volumes) Volumes() []corev1.Volume { return v.volumes }

// Mounts returns the mounts of the main container in the order in which they
// were added.
func (v *Volumes) Mounts() []corev1.VolumeMount { return v.mounts }

// Covering returns the mount that holds a path: the one at the longest path that
// is the same or above it.
func (v *Volumes) Covering(at string) (corev1.VolumeMount, bool) {
	var best corev1.VolumeMount
	for _, m := range v.mounts {
		if Within(m.MountPath, at) && len(m.MountPath) > len(best.MountPath) {
			best = m
		}
	}
	return best, best.Name != ""
}

// Within tells whether a path is the same as a directory or lies in it.
func Within(dir, at string) bool {
	dir, at = path.Clean(dir), path.Clean(at)
	return at == dir || dir == "/" || strings.HasPrefix(at, dir+"/")
}

// ShortHash returns ten characters that stand for a text.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:5])
}
