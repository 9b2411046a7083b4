package diff

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Intent converts a typed object to the form that is sent in an apply: the
// kind filled in, and without status, nulls and what only the server writes.
// The result shares nothing with o.
func (e *Engine) Intent(o client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(o, e.scheme)
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", o, err)
	}
	var content map[string]any
	if u, ok := o.(*unstructured.Unstructured); ok {
		content = u.DeepCopy().Object
	} else if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
		return nil, fmt.Errorf("converting %s %q: %w", gvk.Kind, o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	if meta, ok := u.Object["metadata"].(map[string]any); ok {
		for _, k := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
			delete(meta, k)
		}
	}
	dropClaimStatus(u.Object)
	if gvk.Kind == "Service" && gvk.Group == "" {
		dropZeroTargets(u.Object)
	}
	dropNulls(u.Object)
	fillAtomicDefaults(u.Object)
	return u, nil
}

// dropClaimStatus removes the status that Go's struct of a claim template
// always carries; the API server fills one in by itself.
func dropClaimStatus(obj map[string]any) {
	templates, _, _ := unstructured.NestedFieldNoCopy(obj, "spec", "volumeClaimTemplates")
	list, _ := templates.([]any)
	for _, t := range list {
		if m, ok := t.(map[string]any); ok {
			delete(m, "status")
		}
	}
}

// dropZeroTargets removes the target port that Go's struct of a Service port
// always carries; the API server makes the port itself of a zero.
func dropZeroTargets(obj map[string]any) {
	ports, _, _ := unstructured.NestedFieldNoCopy(obj, "spec", "ports")
	list, _ := ports.([]any)
	for _, p := range list {
		if m, ok := p.(map[string]any); ok && m["targetPort"] == int64(0) {
			delete(m, "targetPort")
		}
	}
}

func dropNulls(v any) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if e == nil {
				delete(x, k)
				continue
			}
			dropNulls(e)
		}
	case []any:
		for _, e := range x {
			dropNulls(e)
		}
	}
}
