package doris

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// accepted is what the Pod template of a set was last rendered from, kept in the
// annotation AnnotationAccepted on the set. Rendered again at the revision of the
// set it gives the very template that was applied; so what the user edited, what
// somebody else edited in the set and what a newer rendering would say are told
// apart field by field, whatever else happens at the same time.
//
// No secret is in it: credentials are in Secrets that it names, and the one field
// of the spec that may hold a password is left out.
type accepted struct {
	Version int `json:"v"`
	// Spec holds what all components share and the spec of this one, without what
	// says nothing about the template.
	Spec dorisv1.DorisClusterSpec `json:"spec"`
	// Frontend and Backend are the settings that were read from ConfigMaps.
	Frontend FrontendConfig `json:"frontend"`
	Backend  BackendConfig  `json:"backend"` // of compute nodes, in their record
	// Broker are those of brokers, in their record.
	Broker *BrokerConfig `json:"broker,omitempty"`
	// Content names the copy of each ConfigMap that the Pods mount.
	Content map[string]string `json:"content,omitempty"`
	// Live names the copies that were accepted since then without a new template,
	// where they differ: their settings are set in the running processes.
	Live map[string]string `json:"live,omitempty"`
	// Secrets tells which content of Secrets the processes were to start with, without
	// the content.
	Secrets *secretsRecord `json:"secrets,omitempty"`
	// Runtime says where the settings are kept that are changed at run time; nil for a
	// component that was made without.
	Runtime *runtimeconfig.Record `json:"runtime,omitempty"`
	// Restart is the request for a restart that was last acted on.
	Restart restart `json:"restart"`
}

// restart is a request for a restart, made by an annotation of the resource.
type restart struct {
	// Seen is the value that was there, and Rendered the one in the Pod template.
	// They differ where the value was there when the cluster was taken over.
	Seen     string `json:"seen,omitempty"`
	Rendered string `json:"rendered,omitempty"`
	// Kubectl is the value of `kubectl rollout restart` in the Pod template when
	// the set was taken over.
	Kubectl string `json:"kubectl,omitempty"`
}

// acceptedVersion is the version of the record.
const acceptedVersion = 1

// accepting returns what the template of a component would be rendered from now.
func accepting(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType, s Settings, content map[string]string) accepted {
	return accepted{Version: acceptedVersion, Spec: templateSpec(dc, kind), Content: maps.Clone(content)}.reading(kind, s)
}

// reading is the record of a component with the settings that concern it.
func (a accepted) reading(kind dorisv1.ComponentType, s Settings) accepted {
	a.Frontend, a.Backend, a.Broker = s.Frontend, s.Backend, nil
	switch kind {
	case dorisv1.ComponentCN:
		a.Backend = s.Compute
	case dorisv1.ComponentBroker:
		a.Backend, a.Broker = BackendConfig{}, &s.Broker
	case dorisv1.ComponentFE, dorisv1.ComponentBE:
	}
	return a
}

// settings are those of the record of a component.
func (a accepted) settings(kind dorisv1.ComponentType) Settings {
	s := Settings{Frontend: a.Frontend}
	switch {
	case kind == dorisv1.ComponentCN:
		s.Compute = a.Backend
	case a.Broker != nil:
		s.Broker = *a.Broker
	default:
		s.Backend = a.Backend
	}
	return s
}

// templateSpec returns the part of a spec that the template of a component is
// rendered from. The number of replicas and the Service for clients say nothing
// about it, nor do the policies, which are asked at reconcile.
func templateSpec(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType) dorisv1.DorisClusterSpec {
	spec := *dc.Spec.DeepCopy()
	spec.EnableRestartWhenConfigChange, spec.RuntimeConfigPersistence, spec.ConfigUpdatePolicy = false, nil, ""
	spec.Rollout = nil
	if spec.AdminUser != nil {
		spec.AdminUser.Password = ""
	}
	only(&spec, kind)
	if base := specIn(&spec, kind); base != nil {
		base.Replicas, base.Service = nil, nil
	}
	return spec
}

// only leaves of the components the one. Whether there are frontends counts for
// the others.
func only(spec *dorisv1.DorisClusterSpec, kind dorisv1.ComponentType) {
	if kind != dorisv1.ComponentFE && spec.FeSpec != nil {
		spec.FeSpec = &dorisv1.FeSpec{}
	}
	if kind != dorisv1.ComponentBE {
		spec.BeSpec = nil
	} else if spec.BeSpec != nil {
		spec.BeSpec.ScaleInPolicy = ""
	}
	if kind != dorisv1.ComponentBroker {
		spec.BrokerSpec = nil
	}
	if kind != dorisv1.ComponentCN {
		spec.CnSpec = nil
	} else if spec.CnSpec != nil {
		spec.CnSpec.AutoScalingPolicy, spec.CnSpec.ScaleInPolicy = nil, ""
	}
}

func (a accepted) String() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("record of what was accepted: %v", err)) // a type of this package cannot be encoded
	}
	return string(text)
}

// readAccepted reads the record of a set; ok is false when there is none that
// this version can read.
func readAccepted(set *appsv1.StatefulSet) (a accepted, ok bool) {
	if set == nil {
		return accepted{}, false
	}
	return acceptedIn(set.Annotations[meta.AnnotationAccepted])
}

func acceptedIn(text string) (a accepted, ok bool) {
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return accepted{}, false
	}
	return a, a.Version == acceptedVersion
}

// same tells whether two records render the same template.
func (a accepted) same(b accepted) bool { return a.String() == b.String() }

// restartKubectl is what `kubectl rollout restart` puts into a template.
const restartKubectl = "kubectl.kubernetes.io/restartedAt"

// restartKey is the annotation by which a restart of a component is asked for.
func restartKey(kind dorisv1.ComponentType) string {
	switch kind {
	case dorisv1.ComponentFE:
		return dorisv1.AnnotationFERestartedAt
	case dorisv1.ComponentCN:
		return dorisv1.AnnotationCNRestartedAt
	case dorisv1.ComponentBroker:
		return dorisv1.AnnotationBrokerRestartedAt
	case dorisv1.ComponentBE:
	}
	return dorisv1.AnnotationBERestartedAt
}

// rendering is what the objects of one component are rendered with, besides a
// record.
type rendering struct {
	revision     int
	bootstrapped bool
	// configMaps holds the content that the record names, by the names that the
	// spec has for it.
	configMaps map[string]*corev1.ConfigMap
}

// render renders the objects of one component from a record.
func (a accepted) render(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType, with rendering) Component {
	as := dc.DeepCopy()
	as.Spec = *a.Spec.DeepCopy()
	if as.Spec.AdminUser != nil && dc.Spec.AdminUser != nil {
		as.Spec.AdminUser.Password = dc.Spec.AdminUser.Password // never recorded
	}
	in := Inputs{Revision: with.revision, Bootstrapped: with.bootstrapped, Copies: a.Content, ConfigMaps: with.configMaps}
	in.Runtime = map[dorisv1.ComponentType]*runtimeconfig.Record{kind: a.Runtime}
	objects := Objects{Settings: a.settings(kind)}
	objects.render(as, in)
	built, ok := objects.Component(kind)
	if !ok {
		panic(fmt.Sprintf("component %q is not rendered", kind)) // the caller has looked
	}
	if a.Restart.Rendered != "" {
		annotateTemplate(built.StatefulSet, restartKey(kind), a.Restart.Rendered)
	}
	built.StatefulSet.Annotations[meta.AnnotationAccepted] = a.String()
	return built
}

func annotateTemplate(set *appsv1.StatefulSet, key, value string) {
	annotations := maps.Clone(set.Spec.Template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	set.Spec.Template.Annotations = annotations
}

// stamp marks the template of a set with a digest of itself, by which a
// Pod is known that was made from an older one. The content of the ConfigMaps
// counts, also where the template mounts them by their own names, and so does that of
// Secrets.
func stamp(set *appsv1.StatefulSet, content map[string]string, secrets *secretsRecord) {
	of := []any{set.Spec.Template, content}
	if keys := secrets.keys(); len(keys) > 0 {
		of = append(of, keys)
	}
	text, err := json.Marshal(of)
	if err != nil {
		panic(fmt.Sprintf("digest of the template of %s: %v", set.Name, err)) // a type of the API cannot be encoded
	}
	sum := sha256.Sum256(text)
	annotateTemplate(set, meta.AnnotationTemplate, hex.EncodeToString(sum[:5]))
}
