package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of the only object in this group.
const Kind = "DorisCluster"

// GroupVersion names the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "doris.selectdb.com", Version: "v1"}

// GroupVersionKind returns the full name of the DorisCluster kind.
func GroupVersionKind() schema.GroupVersionKind {
	return GroupVersion.WithKind(Kind)
}

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &DorisCluster{}, &DorisClusterList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
