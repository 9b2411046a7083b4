package kernel

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-dev/fairlead/internal/observe"
)

// concerned tells which custom resources an object of a watched kind concerns: the
// one that it belongs to, or all of its namespace where neighbours count.
func (reg Registration[O, W]) concerned(w observe.Watch, objects client.Reader, scheme *runtime.Scheme) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		owner := w.Owner(o)
		switch {
		case owner != "":
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner}}}
		case !w.Neighbours:
			return nil
		}
		requests, err := reg.inNamespace(ctx, objects, scheme, o.GetNamespace())
		if err != nil {
			logf.FromContext(ctx).Error(err, "cannot tell whom an object concerns", "system", reg.Name, "namespace", o.GetNamespace(), "name", o.GetName())
		}
		return requests
	}
}

// inNamespace names every custom resource of a namespace, out of the cache.
func (reg Registration[O, W]) inNamespace(ctx context.Context, objects client.Reader, scheme *runtime.Scheme, namespace string) ([]reconcile.Request, error) {
	gvk, err := apiutil.GVKForObject(reg.New(), scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	made, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		return nil, nil
	}
	if err := objects.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var requests []reconcile.Request
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := item.(client.Object); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
		return nil
	})
	return requests, err
}
