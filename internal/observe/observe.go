// Package observe reads the world for the planners.
//
// Objects that Fairlead makes come from a cache that is fed by watches and
// waits until it has seen our own writes. Objects that users make and refer to
// (ConfigMaps, Secrets, claims) are watched by their metadata alone, nothing of them is
// kept unless a custom resource names them, and their content is fetched by
// name when it changes. Secret data is never read here: a reader learns only
// that a Secret exists and which version it has.
package observe

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader is what a system may read while it observes one custom resource.
type Reader interface { //nolint:interfacebloat // one method for each way to read
	// Get fills obj with an object that Fairlead makes. The error is a NotFound
	// one when it does not exist.
	Get(ctx context.Context, key types.NamespacedName, obj client.Object) error
	// Owned fills list with the objects of that kind which belong to the custom
	// resource, as the system's registration tells.
	Owned(ctx context.Context, list client.ObjectList) error
	// Neighbours fills list with all objects of that kind in the namespace of the
	// custom resource, whoever made them. Only kinds may be asked for that are
	// watched with Neighbours.
	Neighbours(ctx context.Context, list client.ObjectList) error
	// ConfigMap returns a ConfigMap in the namespace of the custom resource, or
	// nil when there is none of that name. It must not be changed.
	ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error)
	// Secret returns the metadata of a Secret in the namespace of the custom
	// resource, or nil when there is none of that name.
	Secret(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error)
	// Claim returns a claim that a user made, in the namespace of the custom
	// resource, or nil when there is none of that name. It must not be changed.
	Claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error)
	// Revisions returns the ControllerRevisions of a StatefulSet. They are not
	// watched: each call is a request.
	Revisions(ctx context.Context, set *appsv1.StatefulSet) ([]appsv1.ControllerRevision, error)
}

// OwnerIndex is the name of the cache index by which owned objects are found.
const OwnerIndex = "fairlead.dev/owner"

// OwnerFunc tells the name of the custom resource, in the same namespace, to
// which an object belongs; empty when to none.
type OwnerFunc func(client.Object) string

// Watch is one kind of object that belongs to custom resources.
type Watch struct {
	Object client.Object
	// Selector restricts what is held in memory.
	Selector labels.Selector
	// Owner tells to which custom resource an object belongs.
	Owner OwnerFunc
	// Neighbours tells that objects which belong to no custom resource matter too:
	// a change of their spec wakes every custom resource in their namespace.
	Neighbours bool
	// Matters tells of neighbours which changes beside those of their spec matter; nil
	// for none.
	Matters func(before, now client.Object) bool
}

// Cached is a Reader over the operator's caches for one custom resource.
type Cached struct {
	// Client reads the cache and waits for our own writes to appear in it.
	Client client.Reader
	// Cache reads the cache as it is.
	Cache client.Reader
	// References fetches what users made.
	References *Lease
	// Owner is the custom resource.
	Owner types.NamespacedName
}

var _ Reader = Cached{}

// Get implements Reader.
func (c Cached) Get(ctx context.Context, key types.NamespacedName, obj client.Object) error {
	return c.Client.Get(ctx, key, obj)
}

// Owned implements Reader. It may lag behind our own writes; deletions decided
// on it carry the uid as a precondition.
func (c Cached) Owned(ctx context.Context, list client.ObjectList) error {
	return c.Cache.List(ctx, list, client.InNamespace(c.Owner.Namespace), client.MatchingFields{OwnerIndex: c.Owner.Name})
}

// Neighbours implements Reader.
func (c Cached) Neighbours(ctx context.Context, list client.ObjectList) error {
	return c.Cache.List(ctx, list, client.InNamespace(c.Owner.Namespace))
}

// ConfigMap implements Reader.
func (c Cached) ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return c.References.ConfigMap(ctx, types.NamespacedName{Namespace: c.Owner.Namespace, Name: name})
}

// Secret implements Reader.
func (c Cached) Secret(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	return c.References.Secret(ctx, types.NamespacedName{Namespace: c.Owner.Namespace, Name: name})
}

// Claim implements Reader.
func (c Cached) Claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	return c.References.Claim(ctx, types.NamespacedName{Namespace: c.Owner.Namespace, Name: name})
}

// Revisions implements Reader.
func (c Cached) Revisions(ctx context.Context, set *appsv1.StatefulSet) ([]appsv1.ControllerRevision, error) {
	return getRevisions(ctx, c.References.refs.live, set)
}
