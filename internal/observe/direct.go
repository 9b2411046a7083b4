package observe

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Direct is a Reader that asks the API server each time. The kubectl plugin
// plans with it.
type Direct struct {
	Client client.Reader
	Owner  types.NamespacedName
	// Owners tells for each kind to which custom resource an object belongs.
	Owners OwnerFunc
}

var _ Reader = Direct{}

// Get implements Reader.
func (d Direct) Get(ctx context.Context, key types.NamespacedName, obj client.Object) error {
	return d.Client.Get(ctx, key, obj)
}

// Owned implements Reader.
func (d Direct) Owned(ctx context.Context, list client.ObjectList) error {
	if err := d.Client.List(ctx, list, client.InNamespace(d.Owner.Namespace)); err != nil {
		return err
	}
	items, err := apimeta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading %T: %w", list, err)
	}
	kept := make([]runtime.Object, 0, len(items))
	for _, it := range items {
		if o, ok := it.(client.Object); ok && d.Owners(o) == d.Owner.Name {
			kept = append(kept, it)
		}
	}
	return apimeta.SetList(list, kept)
}

// Neighbours implements Reader.
func (d Direct) Neighbours(ctx context.Context, list client.ObjectList) error {
	return d.Client.List(ctx, list, client.InNamespace(d.Owner.Namespace))
}

// ConfigMap implements Reader.
func (d Direct) ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return getConfigMap(ctx, d.Client, types.NamespacedName{Namespace: d.Owner.Namespace, Name: name})
}

// Secret implements Reader.
func (d Direct) Secret(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	return getSecret(ctx, d.Client, types.NamespacedName{Namespace: d.Owner.Namespace, Name: name})
}

// Claim implements Reader.
func (d Direct) Claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	return getClaim(ctx, d.Client, types.NamespacedName{Namespace: d.Owner.Namespace, Name: name})
}

func getClaim(ctx context.Context, r client.Reader, key types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := r.Get(ctx, key, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading claim %q: %w", key, err)
	}
	claim.ManagedFields = nil
	return claim, nil
}

// Revisions implements Reader.
func (d Direct) Revisions(ctx context.Context, set *appsv1.StatefulSet) ([]appsv1.ControllerRevision, error) {
	return getRevisions(ctx, d.Client, set)
}

func getRevisions(ctx context.Context, r client.Reader, set *appsv1.StatefulSet) ([]appsv1.ControllerRevision, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, err
	}
	list := &appsv1.ControllerRevisionList{}
	if err := r.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(c appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&c, set) }), nil
}

func getConfigMap(ctx context.Context, r client.Reader, key types.NamespacedName) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	if err := r.Get(ctx, key, cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading ConfigMap %q: %w", key, err)
	}
	cm.ManagedFields = nil
	return cm, nil
}

func getSecret(ctx context.Context, r client.Reader, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	// The metadata form of the request keeps the data on the server.
	s := &metav1.PartialObjectMetadata{}
	s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.Get(ctx, key, s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Secret %q: %w", key, err)
	}
	return &metav1.PartialObjectMetadata{TypeMeta: s.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: s.Name, Namespace: s.Namespace, UID: s.UID, ResourceVersion: s.ResourceVersion,
	}}, nil
}
