package simnode

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// reference names a ConfigMap or Secret in a Pod's namespace.
type reference struct {
	kind string // configMapKind or secretKind
	name string
}

const (
	configMapKind = "ConfigMap"
	secretKind    = "Secret"
)

// content is what the API server held when a container started; what does not
// exist is not in it.
type content map[reference]map[string][]byte

// Volumes is what ConfigMap, Secret, projected and downward API volumes hold:
// by volume, by path in the volume.
type Volumes map[string]map[string]string

// missing is why a volume could not be set up, in a kubelet's words.
type missing struct {
	volume string
	text   string
}

// tokenVolume starts the name of the volume that admission adds to every Pod
// for its service account. Its content is nobody's configuration.
const tokenVolume = "kube-api-access-"

// references lists what a Pod may read, sorted, each once.
func references(pod *corev1.Pod) []reference {
	found := map[reference]bool{}
	add := func(kind, name string) { found[reference{kind, name}] = true }
	for i := range pod.Spec.Volumes {
		volumeReferences(&pod.Spec.Volumes[i], add)
	}
	for _, c := range allContainers(pod) {
		containerReferences(c, add)
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b reference) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

func volumeReferences(v *corev1.Volume, add func(kind, name string)) {
	switch {
	case strings.HasPrefix(v.Name, tokenVolume):
	case v.ConfigMap != nil:
		add(configMapKind, v.ConfigMap.Name)
	case v.Secret != nil:
		add(secretKind, v.Secret.SecretName)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add(configMapKind, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add(secretKind, s.Secret.Name)
			}
		}
	}
}

func containerReferences(c *corev1.Container, add func(kind, name string)) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			add(configMapKind, from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			add(secretKind, from.SecretRef.Name)
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			add(configMapKind, ref.Name)
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			add(secretKind, ref.Name)
		}
	}
}

// mount sets up a Pod's volumes from the content, and says which could not be.
func (c content) mount(pod *corev1.Pod) (Volumes, []missing) {
	volumes := Volumes{}
	var failed []missing
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if strings.HasPrefix(v.Name, tokenVolume) {
			continue
		}
		files, err := c.volume(pod, v)
		if err != nil {
			failed = append(failed, missing{v.Name, fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", v.Name, err)})
			continue
		}
		if files != nil {
			volumes[v.Name] = files
		}
	}
	return volumes, failed
}

func (c content) volume(pod *corev1.Pod, v *corev1.Volume) (map[string]string, error) {
	switch {
	case v.ConfigMap != nil:
		return c.files(reference{configMapKind, v.ConfigMap.Name}, v.ConfigMap.Items, isTrue(v.ConfigMap.Optional))
	case v.Secret != nil:
		return c.files(reference{secretKind, v.Secret.SecretName}, v.Secret.Items, isTrue(v.Secret.Optional))
	case v.DownwardAPI != nil:
		return downwardFiles(pod, v.DownwardAPI.Items), nil
	case v.Projected != nil:
		return c.projected(pod, v.Projected.Sources)
	}
	return nil, nil
}

func (c content) projected(pod *corev1.Pod, sources []corev1.VolumeProjection) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range sources {
		var files map[string]string
		var err error
		switch {
		case s.ConfigMap != nil:
			files, err = c.files(reference{configMapKind, s.ConfigMap.Name}, s.ConfigMap.Items, isTrue(s.ConfigMap.Optional))
		case s.Secret != nil:
			files, err = c.files(reference{secretKind, s.Secret.Name}, s.Secret.Items, isTrue(s.Secret.Optional))
		case s.DownwardAPI != nil:
			files = downwardFiles(pod, s.DownwardAPI.Items)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

// files gives the files of one source. The texts are the kubelet's.
func (c content) files(ref reference, items []corev1.KeyToPath, optional bool) (map[string]string, error) {
	data, found := c[ref]
	if !found && !optional {
		return nil, notFound(ref)
	}
	files := map[string]string{}
	if len(items) == 0 {
		for key, value := range data {
			files[key] = string(value)
		}
		return files, nil
	}
	for _, item := range items {
		value, found := data[item.Key]
		switch {
		case found:
			files[item.Path] = string(value)
		case optional:
		case ref.kind == configMapKind:
			return nil, fmt.Errorf("configmap references non-existent config key: %s", item.Key)
		default:
			return nil, fmt.Errorf("references non-existent secret key: %s", item.Key)
		}
	}
	return files, nil
}

func notFound(ref reference) error {
	return fmt.Errorf("%s %q not found", strings.ToLower(ref.kind), ref.name)
}

func downwardFiles(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile) map[string]string {
	files := map[string]string{}
	for _, item := range items {
		if item.FieldRef != nil {
			files[item.Path] = fieldValue(pod, item.FieldRef.FieldPath, address{})
			continue
		}
		if ref := item.ResourceFieldRef; ref != nil {
			for _, c := range allContainers(pod) {
				if c.Name == ref.ContainerName {
					files[item.Path] = resourceValue(c, ref)
				}
			}
		}
	}
	return files
}

// filesOf lays the volumes out as one container sees them, by absolute path.
func filesOf(c *corev1.Container, volumes Volumes, env map[string]string) map[string]string {
	seen := map[string]string{}
	for _, m := range c.VolumeMounts {
		subPath := m.SubPath
		if m.SubPathExpr != "" {
			subPath = expand(m.SubPathExpr, env)
		}
		for file, text := range volumes[m.Name] {
			switch {
			case subPath == "":
				seen[path.Join(m.MountPath, file)] = text
			case file == subPath:
				seen[path.Clean(m.MountPath)] = text
			default:
				if below, ok := strings.CutPrefix(file, subPath+"/"); ok {
					seen[path.Join(m.MountPath, below)] = text
				}
			}
		}
	}
	return seen
}

func isTrue(b *bool) bool { return b != nil && *b }

// allContainers lists the init containers, then the others.
func allContainers(pod *corev1.Pod) []*corev1.Container {
	var all []*corev1.Container
	for i := range pod.Spec.InitContainers {
		all = append(all, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		all = append(all, &pod.Spec.Containers[i])
	}
	return all
}
