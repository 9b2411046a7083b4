package toy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the Toy.
var GroupVersion = schema.GroupVersion{Group: "toy.fairlead.dev", Version: "v1"}

// Kind of the custom resource.
const Kind = "Toy"

// Toy is the custom resource.
type Toy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              Spec   `json:"spec,omitzero"`
	Status            Status `json:"status,omitzero"`
}

// Spec is what a test asks for.
type Spec struct {
	// Config is the content of the ConfigMap.
	Config string `json:"config,omitempty"`
	// ConfigMapRef names a ConfigMap of the user whose key "k" is copied.
	ConfigMapRef string `json:"configMapRef,omitempty"`
	// SecretRef names a Secret of the user.
	SecretRef string `json:"secretRef,omitempty"`
	// Image and Replicas of both StatefulSets; without Replicas there are none.
	Image    string `json:"image,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
	// Extra names more ConfigMaps.
	Extra []string `json:"extra,omitempty"`
	// Fault is what goes wrong, see System.
	Fault string `json:"fault,omitempty"`
}

// Status is what the kernel and the system report.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// Ready lists the Pods that are.
	Ready []string `json:"ready,omitempty"`
}

// ToyList is a list of Toys.
type ToyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Toy `json:"items"`
}

// AddToScheme registers the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Toy{}, &ToyList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// GetConditions implements kernel.Object.
func (t *Toy) GetConditions() []metav1.Condition { return t.Status.Conditions }

// SetConditions implements kernel.Object.
func (t *Toy) SetConditions(c []metav1.Condition) { t.Status.Conditions = c }

// SetObservedGeneration implements kernel.Object.
func (t *Toy) SetObservedGeneration(g int64) { t.Status.ObservedGeneration = g }

// DeepCopyObject implements runtime.Object.
func (t *Toy) DeepCopyObject() runtime.Object {
	out := *t
	t.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Extra = slices.Clone(t.Spec.Extra)
	if t.Spec.Replicas != nil {
		n := *t.Spec.Replicas
		out.Spec.Replicas = &n
	}
	out.Status.Conditions = slices.Clone(t.Status.Conditions)
	out.Status.Ready = slices.Clone(t.Status.Ready)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *ToyList) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Toy, 0, len(l.Items))
	for i := range l.Items {
		if t, ok := l.Items[i].DeepCopyObject().(*Toy); ok {
			out.Items = append(out.Items, *t)
		}
	}
	return &out
}
