package runtimeconfig

import (
	_ "embed" // the script of the init container
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// script is part of Pod templates: a change of it is a new revision.
//
//go:embed runtime_config_r1.sh
var script string

const (
	// Directory is where the main container has the kept settings.
	Directory = "/var/lib/doris/runtime-config"
	// OnVolume is the directory for them on the volume; each Pod has its own in it,
	// since claims may be shared.
	OnVolume = ".doris-runtime-config"
	// InitName is the init container that prepares them.
	InitName = "runtime-config-init"
	// MarkOfCopy starts the name of the file by which a member whose settings were copied
	// finds that they were; the id of the migration follows.
	MarkOfCopy = ".migrated-"
	// MarkOfMade is the file that says that the settings of a member are there: from then
	// on only the node changes them.
	MarkOfMade = ".made"
	// BaseVolume is the volume with the prepared configuration.
	BaseVolume = "runtime-config-base"

	// Where the init container has things.
	volumePath = "/etc/fairlead/runtime-config/volume"
	basePath   = "/etc/fairlead/runtime-config/base"
	sourcePath = "/etc/fairlead/runtime-config/source"

	// envPodName is the variable with the name of the Pod; ownPodName that of a Pod
	// where a person gave it another meaning.
	envPodName, ownPodName = "POD_NAME", "FAIRLEAD_POD_NAME"

	// envMigrated is the variable by which the init container knows whose settings were
	// copied.
	envMigrated = "FAIRLEAD_MIGRATED"
)

// Options are what differs between the kinds of resources.
type Options struct {
	Kind Kind
	// Container is the name of the main container.
	Container string
	// ConfDir is where the entrypoint of the image looks for configuration files.
	ConfDir string
	// Root is the directory of the image that the components lie in.
	Root string
	// Fixed tells that the main container may not write the prepared configuration.
	Fixed bool
}

// Apply adds to a rendered Pod what keeps its settings: the directory on the volume,
// the prepared configuration in the place of what was mounted, and the init container
// that prepares both. The main container keeps its entrypoint. A record that keeps
// nothing changes nothing.
func (r *Record) Apply(pod *corev1.PodSpec, o Options) {
	if r == nil || r.State != Kept {
		return
	}
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == o.Container })
	if i < 0 {
		return
	}
	main := &pod.Containers[i]
	source, mounts := split(main.VolumeMounts, o.ConfDir)
	medium := corev1.StorageMediumDefault
	if source != nil && isSecret(pod.Volumes, source.Name) {
		medium = corev1.StorageMediumMemory // what a Secret holds is not written to a disk
	}
	named := podName(main)
	pod.InitContainers = append(pod.InitContainers, r.initContainer(main, source, o))
	main.VolumeMounts = slices.Concat(mounts, []corev1.VolumeMount{
		{Name: BaseVolume, MountPath: o.ConfDir, ReadOnly: o.Fixed},
		{Name: r.Volume, MountPath: Directory, SubPathExpr: path.Join(r.SubPath, OnVolume, "$("+named+")")},
	})
	pod.Volumes = append(slices.Clone(pod.Volumes), corev1.Volume{
		Name: BaseVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}},
	})
}

// Mounts tells whether a mount is one of those that keep settings.
func Mounts(m corev1.VolumeMount) bool {
	return m.Name == BaseVolume || m.MountPath == Directory && strings.Contains(m.SubPathExpr, OnVolume)
}

// podName returns the variable of a container that holds the name of its Pod.
func podName(c *corev1.Container) string {
	own := nameOfPod(envPodName)
	for i := range c.Env {
		if e := &c.Env[i]; e.Name == envPodName && e.Value == "" && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == own.ValueFrom.FieldRef.FieldPath {
			return envPodName
		}
	}
	c.Env = append(slices.Clone(c.Env), nameOfPod(ownPodName))
	return ownPodName
}

func nameOfPod(variable string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
}

// Found is the record of a workload whose Pods keep their settings, read from its
// template; nil where they do not.
func Found(pod *corev1.PodSpec, container string) *Record {
	var volume, subPath, migrated string
	if i := slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == InitName }); i >= 0 {
		volume, subPath, migrated = givenTo(&pod.InitContainers[i])
	}
	for _, m := range MountsOf(pod, container, nil) {
		if volume != "" && m.Volume == volume && m.SubPath == subPath && m.SubPathExpr == "" {
			return &Record{State: Kept, Volume: volume, MountPath: m.Path, SubPath: subPath, Migrated: migrated}
		}
	}
	return nil
}

// givenTo is what the init container was given.
func givenTo(c *corev1.Container) (volume, subPath, migrated string) {
	for _, m := range c.VolumeMounts {
		if m.MountPath == volumePath {
			volume, subPath = m.Name, m.SubPath
		}
	}
	for _, e := range c.Env {
		if e.Name == envMigrated {
			migrated = e.Value
		}
	}
	return volume, subPath, migrated
}

// split takes the mount at a path out of a list.
func split(mounts []corev1.VolumeMount, at string) (source *corev1.VolumeMount, rest []corev1.VolumeMount) {
	for i := range mounts {
		if path.Clean(mounts[i].MountPath) == path.Clean(at) {
			source = mounts[i].DeepCopy()
			continue
		}
		rest = append(rest, mounts[i])
	}
	return source, rest
}

func isSecret(volumes []corev1.Volume, name string) bool {
	return slices.ContainsFunc(volumes, func(v corev1.Volume) bool {
		return v.Name == name && (v.Secret != nil || v.Projected != nil)
	})
}

// initContainer prepares the directory and the configuration. It runs as the main
// container does, so that what it makes can be written by that.
func (r *Record) initContainer(main *corev1.Container, source *corev1.VolumeMount, o Options) corev1.Container {
	c := corev1.Container{
		Name: InitName, Image: main.Image, ImagePullPolicy: main.ImagePullPolicy,
		Command: []string{"bash", "-c", script},
		Env: []corev1.EnvVar{
			nameOfPod(envPodName),
			{Name: "FAIRLEAD_BASE_FILE", Value: o.Kind.BaseFile()},
			{Name: "FAIRLEAD_CUSTOM_FILE", Value: o.Kind.CustomFile()},
			{Name: "FAIRLEAD_IMAGE_CONF", Value: path.Join(o.Kind.home(o.Root), "conf")},
			{Name: "FAIRLEAD_SETTING", Value: o.Kind.Setting() + " = " + o.Kind.place()},
		},
		Resources:       *main.Resources.DeepCopy(),
		SecurityContext: main.SecurityContext.DeepCopy(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: r.Volume, MountPath: volumePath, SubPath: r.SubPath},
			{Name: BaseVolume, MountPath: basePath},
		},
	}
	if r.Migrated != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: envMigrated, Value: r.Migrated})
	}
	if source != nil {
		source.MountPath, source.ReadOnly = sourcePath, true
		c.VolumeMounts = append(c.VolumeMounts, *source)
	}
	return c
}

// MountsOf are the mounts of a container of a rendered Pod. Claims names the volumes
// that come from claim templates and are not among those of the Pod.
func MountsOf(pod *corev1.PodSpec, container string, claims []string) []Mount {
	claim, readOnly := map[string]bool{}, map[string]bool{}
	for _, name := range claims {
		claim[name] = true
	}
	for _, v := range pod.Volumes {
		if v.PersistentVolumeClaim != nil {
			claim[v.Name], readOnly[v.Name] = true, v.PersistentVolumeClaim.ReadOnly
		}
	}
	var mounts []Mount
	for _, c := range pod.Containers {
		if c.Name != container {
			continue
		}
		for _, m := range c.VolumeMounts {
			mounts = append(mounts, Mount{
				Volume: m.Name, Path: m.MountPath, SubPath: m.SubPath, SubPathExpr: m.SubPathExpr,
				Claim: claim[m.Name], ReadOnly: m.ReadOnly || readOnly[m.Name],
			})
		}
	}
	return mounts
}
