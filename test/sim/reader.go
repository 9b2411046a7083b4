package sim

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead-dev/fairlead/internal/observe"
)

// Reader reads snapshots of a Store. It knows the options that planners use:
// the namespace and the index of owned objects.
type Reader struct {
	Store *Store
	// At says which snapshot shows the objects of a kind; nil for the newest.
	At func(schema.GroupVersionKind) (Snapshot, error)
	// Owner tells to which custom resource an object belongs.
	Owner observe.OwnerFunc
}

var _ client.Reader = Reader{}

func (r Reader) at(kind schema.GroupVersionKind) (Snapshot, error) {
	if r.At == nil {
		return r.Store.Now(), nil
	}
	return r.At(kind)
}

// Get implements client.Reader.
func (r Reader) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, r.Store.scheme)
	if err != nil {
		return err
	}
	s, err := r.at(kind)
	if err != nil {
		return err
	}
	key := Key{kind, name}
	found := s.Get(key)
	if found == nil {
		return apierrors.NewNotFound(resource(key), name.Name)
	}
	if m, ok := into.(*metav1.PartialObjectMetadata); ok {
		*m = metadataOf(found)
		return nil
	}
	return assignTo(found, into)
}

// List implements client.Reader.
func (r Reader) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(into, r.Store.scheme)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	s, err := r.at(kind)
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	var kept []runtime.Object
	for _, found := range s.List(kind, o.Namespace) {
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labelsOf(found)) {
			continue
		}
		if o.FieldSelector != nil {
			owner, exact := o.FieldSelector.RequiresExactMatch(observe.OwnerIndex)
			if !exact {
				return fmt.Errorf("no index for %s", o.FieldSelector)
			}
			if r.Owner(found) != owner {
				continue
			}
		}
		kept = append(kept, found)
	}
	return apimeta.SetList(into, kept)
}

func metadataOf(o client.Object) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: o.GetObjectKind().GroupVersionKind().GroupVersion().String(), Kind: o.GetObjectKind().GroupVersionKind().Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
			OwnerReferences: o.GetOwnerReferences(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
		},
	}
}

// assignTo fills into with from, a copy of an object of the same type.
func assignTo(from, into client.Object) error {
	f, i := reflect.ValueOf(from), reflect.ValueOf(into)
	if f.Type() != i.Type() {
		return fmt.Errorf("a %T is stored, a %T was asked for", from, into)
	}
	i.Elem().Set(f.Elem())
	return nil
}
