package observe

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

var referredKinds = []struct {
	kind     string
	resource schema.GroupVersionResource
}{
	{"ConfigMap", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
	{"Secret", schema.GroupVersionResource{Version: "v1", Resource: "secrets"}},
	{"PersistentVolumeClaim", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}},
}

// Watch follows the metadata of all ConfigMaps, Secrets and claims in the namespaces
// (all when empty) and announces changes of those that are referred to. It
// returns when ctx ends.
func (r *References) Watch(ctx context.Context, client metadata.Interface, namespaces []string) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var wg sync.WaitGroup
	for _, k := range referredKinds {
		for _, ns := range namespaces {
			lw := listWatch(client.Resource(k.resource).Namespace(ns))
			store := &announcer{refs: r, kind: k.kind, namespace: ns}
			reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &metav1.PartialObjectMetadata{}, store,
				cache.ReflectorOptions{Name: "references/" + k.resource.Resource})
			wg.Go(func() { reflector.RunWithContext(ctx) })
		}
	}
	wg.Wait()
	return nil
}

func listWatch(c metadata.ResourceInterface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, o)
		},
	}
}

// announcer is the store of a reflector that stores nothing.
type announcer struct {
	refs      *References
	kind      string
	namespace string
}

var _ cache.TransformingStore = (*announcer)(nil)

// Add implements cache.ReflectorStore.
func (a *announcer) Add(obj any) error { return a.changed(obj) }

// Update implements cache.ReflectorStore.
func (a *announcer) Update(obj any) error { return a.changed(obj) }

// Delete implements cache.ReflectorStore.
func (a *announcer) Delete(obj any) error {
	m, err := metadataOf(obj)
	if err != nil {
		return err
	}
	a.refs.announce(a.referred(m), "")
	return nil
}

// Replace implements cache.ReflectorStore: after a new list everything that is
// referred to is compared with it, also what is no longer there.
func (a *announcer) Replace(list []any, _ string) error {
	listed := make(map[referred]string, 16)
	named := a.refs.named(a.kind, a.namespace)
	for _, ref := range named {
		listed[ref] = ""
	}
	for _, obj := range list {
		m, err := metadataOf(obj)
		if err != nil {
			return err
		}
		if ref := a.referred(m); hasKey(listed, ref) {
			listed[ref] = m.ResourceVersion
		}
	}
	for _, ref := range named {
		a.refs.announce(ref, listed[ref])
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (a *announcer) Resync() error { return nil }

// Transformer implements cache.TransformingStore, so that not even the first
// list is held in memory with labels, annotations and managed fields.
func (a *announcer) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		m, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok {
			return obj, nil
		}
		return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, ResourceVersion: m.ResourceVersion, Annotations: initialEventsEnd(m),
		}}, nil
	}
}

// initialEventsEnd keeps the mark by which a streaming list tells its end.
func initialEventsEnd(m *metav1.PartialObjectMetadata) map[string]string {
	if v, ok := m.Annotations[metav1.InitialEventsAnnotationKey]; ok {
		return map[string]string{metav1.InitialEventsAnnotationKey: v}
	}
	return nil
}

func (a *announcer) changed(obj any) error {
	m, err := metadataOf(obj)
	if err != nil {
		return err
	}
	a.refs.announce(a.referred(m), m.ResourceVersion)
	return nil
}

func (a *announcer) referred(m *metav1.PartialObjectMetadata) referred {
	return referred{kind: a.kind, key: types.NamespacedName{Namespace: m.Namespace, Name: m.Name}}
}

func metadataOf(obj any) (*metav1.PartialObjectMetadata, error) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = d.Obj
	}
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("unexpected %T from a metadata watch", obj)
	}
	return m, nil
}

func hasKey(m map[referred]string, ref referred) bool {
	_, ok := m[ref]
	return ok
}
