// Package manifest reads the files that a person would give to kubectl apply, and
// keeps what has a part in a plan. What has none is named, not passed over.
package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// Set is what the files hold.
type Set struct {
	// Clusters are the resources to plan for, in the order of the files.
	Clusters []*dorisv1.DorisCluster
	// Ignored names what has no part in a plan, and Replaced what is in the files
	// more than once, with the place that counts.
	Ignored, Replaced []string

	configMaps map[client.ObjectKey]*corev1.ConfigMap
	secrets    map[client.ObjectKey]bool
	namespaces map[string]bool
	// seen tells at which place each resource was last found.
	seen map[client.ObjectKey]place
}

// place is a line of a file.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// Reading is how manifests are read.
type Reading struct {
	Scheme *runtime.Scheme
	// Namespace is that of manifests that name none. Where Chosen is set, those of
	// another namespace are refused, as kubectl apply does.
	Namespace string
	Chosen    bool
}

// NewSet returns an empty set.
func NewSet() *Set {
	return &Set{
		configMaps: map[client.ObjectKey]*corev1.ConfigMap{}, secrets: map[client.ObjectKey]bool{},
		namespaces: map[string]bool{}, seen: map[client.ObjectKey]place{},
	}
}

// Add adds the documents of a file.
func (s *Set) Add(r Reading, file string, text []byte) error {
	for _, d := range documents(text) {
		if err := s.addDocument(r, file, d); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) addDocument(r Reading, file string, d document) error {
	parsed, err := d.parse()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, e := range parsed {
		if err := s.addEntry(r, place{file, e.line()}, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) addEntry(r Reading, at place, e entry) error {
	what := e.identity()
	if what.Kind == "" || what.APIVersion == "" {
		return fmt.Errorf("%s: no manifest: it has no apiVersion or kind", at)
	}
	if what.planned() && what.APIVersion != dorisv1.GroupVersionKind().GroupVersion().String() {
		return fmt.Errorf("%s: this version of the plugin does not know %s of %s, but of %s", at, what.Kind, what.APIVersion, dorisv1.GroupVersionKind().GroupVersion())
	}
	if !what.planned() && !what.counts() {
		s.Ignored = append(s.Ignored, fmt.Sprintf("%s: %s %s", at, what.Kind, what.Name))
		return nil
	}
	if what.Name == "" {
		return fmt.Errorf("%s: the %s has no metadata.name%s", at, what.Kind, generated(what))
	}
	codec := serializer.NewCodecFactory(r.Scheme, serializer.EnableStrict).UniversalDeserializer()
	obj, _, err := codec.Decode(e.json, nil, nil)
	if err != nil {
		return explain(r, at, e, err)
	}
	return s.keep(r, at, obj)
}

// identity is who a manifest is about.
type identity struct {
	metav1.TypeMeta `json:",inline"`

	Name         string `json:"name"`
	GenerateName string `json:"generateName"`
}

// planned tells whether plans are made for the kind.
func (i identity) planned() bool {
	group, _, _ := strings.Cut(i.APIVersion, "/")
	return group == dorisv1.GroupVersionKind().Group && i.Kind == dorisv1.Kind
}

// counts tells whether a plan may depend on the kind.
func (i identity) counts() bool {
	return i.APIVersion == "v1" && slices.Contains([]string{"ConfigMap", "Secret", "Namespace"}, i.Kind)
}

func generated(what identity) string {
	if what.GenerateName == "" {
		return ""
	}
	return "; a name that is generated cannot be planned for"
}

// explain puts the place of each unknown or repeated field before it, or of one whose
// value is of another type.
func explain(r Reading, at place, e entry, err error) error {
	strict, isStrict := runtime.AsStrictDecodingError(err)
	if !isStrict {
		if wrong := e.wrongType(r.Scheme); wrong != nil {
			field := fieldOf(wrong)
			return fmt.Errorf("%s: %q is %s, and %s is wanted", place{at.file, e.lineOf(field)}, field, valueWord(wrong.Value), typeWord(wrong.Type))
		}
		return fmt.Errorf("%s: %w", at, err)
	}
	var all []error
	for _, one := range strict.Errors() {
		field, line := one.Error(), at.line
		if _, quoted, found := strings.Cut(field, `field "`); found {
			path, _, _ := strings.Cut(quoted, `"`)
			line = e.lineOf(path)
		}
		all = append(all, fmt.Errorf("%s: %s", place{at.file, line}, field))
	}
	return errors.Join(all...)
}

func (s *Set) keep(r Reading, at place, obj runtime.Object) error {
	if o, ok := obj.(client.Object); ok {
		if _, isNamespace := obj.(*corev1.Namespace); !isNamespace {
			if err := r.place(at, o); err != nil {
				return err
			}
		}
	}
	switch x := obj.(type) {
	case *dorisv1.DorisCluster:
		s.addCluster(at, x)
	case *corev1.ConfigMap:
		s.configMaps[client.ObjectKeyFromObject(x)] = x
	case *corev1.Secret:
		s.secrets[client.ObjectKeyFromObject(x)] = true // its data is of no concern
	case *corev1.Namespace:
		s.namespaces[x.Name] = true
	}
	return nil
}

// place puts a resource into its namespace.
func (r Reading) place(at place, o client.Object) error {
	if o.GetNamespace() == "" {
		o.SetNamespace(r.Namespace)
	}
	if r.Chosen && o.GetNamespace() != r.Namespace {
		return fmt.Errorf("%s: the manifest is for namespace %q, and --namespace says %q", at, o.GetNamespace(), r.Namespace)
	}
	return nil
}

// addCluster keeps a cluster; of two manifests for one the last counts, since
// kubectl apply goes through them in order.
func (s *Set) addCluster(at place, dc *dorisv1.DorisCluster) {
	key := client.ObjectKeyFromObject(dc)
	if before, twice := s.seen[key]; twice {
		s.Replaced = append(s.Replaced, fmt.Sprintf("%s: DorisCluster %s is also at %s; only the last is planned for, as it is what stays after kubectl apply", at, dc.Name, before))
		for i, have := range s.Clusters {
			if client.ObjectKeyFromObject(have) == key {
				s.Clusters = append(s.Clusters[:i], s.Clusters[i+1:]...)
				break
			}
		}
	}
	s.seen[key] = at
	s.Clusters = append(s.Clusters, dc)
}

// Makes tells whether the files make a namespace.
func (s *Set) Makes(namespace string) bool { return s.namespaces[namespace] }

// Over returns a reader for which the ConfigMaps and Secrets of the files count
// as applied.
func (s *Set) Over(c client.Reader) client.Reader { return overlay{Reader: c, set: s} }

type overlay struct {
	client.Reader
	set *Set
}

// Get implements client.Reader.
func (o overlay) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch into := obj.(type) {
	case *corev1.ConfigMap:
		if cm, ok := o.set.configMaps[key]; ok {
			cm.DeepCopyInto(into)
			return nil
		}
	case *metav1.PartialObjectMetadata:
		if into.Kind == "Secret" && o.set.secrets[key] {
			into.Name, into.Namespace = key.Name, key.Namespace
			return nil
		}
	}
	return o.Reader.Get(ctx, key, obj, opts...)
}
