package doris

import (
	"cmp"
	"maps"
	"slices"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// Layer is where the value of a setting that is in force comes from. Later layers win
// over earlier ones. The image is that of every setting that is not listed.
type Layer string

// The layers.
const (
	LayerImage     Layer = "image"
	LayerConfigMap Layer = "ConfigMap"
	LayerOperator  Layer = "operator"
	LayerRunTime   Layer = "run-time"
)

// Explained says of one setting of one component where its value comes from. The value
// itself is nowhere in it.
type Explained struct {
	Component dorisv1.ComponentType `json:"component"`
	Key       string                `json:"key"`
	Layer     Layer                 `json:"layer"`
	// Source is the image, the file of the ConfigMap, or what the operator has it for.
	Source string `json:"source,omitempty"`
	// Pod and Since tell on which node it was changed, and since when that is known.
	Pod   string `json:"pod,omitempty"`
	Since string `json:"since,omitempty"`
	// Mutable tells whether it can be changed in a running node, where that is known.
	Mutable *bool `json:"mutable,omitempty"`
	// Contradicts tells that the ConfigMap names the setting too, with another value.
	Contradicts bool `json:"contradicts,omitempty"`
	// Lost tells that the node has forgotten it, when Since says.
	Lost bool `json:"lost,omitempty"`
}

// ExplainSettings says of the settings of a cluster that do not come from the image
// where they come from, in the order of components, keys and Pods. A key that is not
// empty is the only one; then the image is named too.
func ExplainSettings(dc *dorisv1.DorisCluster, w World, key string) []Explained {
	p := planner{dc: dc, world: w.standIns(dc)}
	var out []Explained
	for _, kind := range polled {
		if specOf(dc, kind) == nil {
			continue
		}
		all := p.explain(kind)
		if key != "" {
			all = p.only(kind, key, all)
		}
		out = append(out, all...)
	}
	return out
}

// Unheard are the components whose nodes the operator has not heard of what was changed in
// them.
func Unheard(dc *dorisv1.DorisCluster, w World) []dorisv1.ComponentType {
	var out []dorisv1.ComponentType
	for _, kind := range polled {
		if specOf(dc, kind) != nil && len(Observed(w, dc.Name, kind).Nodes) == 0 {
			out = append(out, kind)
		}
	}
	return out
}

// explain lists all of one component.
func (p planner) explain(kind dorisv1.ComponentType) []Explained {
	file := p.fileOf(kind, p.world.ConfigMaps) // what Pods mount that were found
	recorded, known := readAccepted(p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)])
	if known {
		file = p.fileOf(kind, p.contentNamed(recorded.newest()))
	}
	observed := Observed(p.world, p.dc.Name, kind)
	var out []Explained
	for key := range file.values {
		e := Explained{Component: kind, Key: key, Layer: LayerConfigMap, Source: file.name + "/" + file.key}
		if len(observed.Nodes) > 0 {
			e.Mutable = new(slices.ContainsFunc(observed.File, func(mutable string) bool { return sameName(mutable, key) }))
		}
		out = append(out, e)
	}
	if r := recorded.Runtime; r != nil && r.State == runtimeconfig.Kept {
		out = append(out, Explained{
			Component: kind, Key: runtimeconfig.Kind(kind).Setting(), Layer: LayerOperator, Source: "keeps settings on volume " + r.Volume, Mutable: new(false),
		})
	}
	for pod, node := range observed.Nodes {
		for key, since := range node.Changed {
			contradicts := slices.ContainsFunc(slices.Collect(maps.Keys(file.values)), func(named string) bool { return sameName(named, key) })
			out = append(out, Explained{Component: kind, Key: key, Layer: LayerRunTime, Pod: pod, Since: since, Mutable: new(true), Contradicts: contradicts})
		}
		for key, since := range node.Lost {
			out = append(out, Explained{Component: kind, Key: key, Layer: LayerRunTime, Pod: pod, Since: since, Mutable: new(true), Lost: true})
		}
	}
	slices.SortFunc(out, func(a, b Explained) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(len(a.Pod), len(b.Pod)), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Layer, b.Layer))
	})
	return out
}

// only picks what is said of one setting. Nodes that nobody has changed it in have it from
// the image where nothing else names it.
func (p planner) only(kind dorisv1.ComponentType, key string, all []Explained) []Explained {
	all = slices.DeleteFunc(all, func(e Explained) bool { return !sameName(e.Key, key) })
	if len(all) == 0 || slices.ContainsFunc(all, func(e Explained) bool { return e.Layer != LayerRunTime }) {
		return all
	}
	image := Explained{Component: kind, Key: all[0].Key, Layer: LayerImage, Source: specOf(p.dc, kind).Image, Mutable: new(true)}
	return slices.Insert(all, 0, image)
}
