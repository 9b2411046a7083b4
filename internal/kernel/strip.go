package kernel

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepOwn drops the managed fields of all other managers: the comparison of
// what is live with what is wanted needs ours alone. Who scaled an object is kept
// too.
func keepOwn(manager string) cache.TransformFunc {
	return func(obj any) (any, error) {
		o, ok := obj.(client.Object)
		if !ok {
			return obj, nil
		}
		var own []metav1.ManagedFieldsEntry
		for _, m := range o.GetManagedFields() {
			if m.Manager == manager && m.Operation == metav1.ManagedFieldsOperationApply || m.Subresource == "scale" {
				own = append(own, m)
			}
		}
		o.SetManagedFields(own)
		return o, nil
	}
}

// keepAuthors keeps of a custom resource who wrote which field of it, but for its
// subresources: whoever reads what was rolled wants to know who asked for it.
func keepAuthors(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Subresource != "" }))
	return o, nil
}

// slimPod keeps of a Pod what health and rollouts are judged by: its identity,
// its images and resources, and its status.
func slimPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	p.ManagedFields = nil
	p.Spec = corev1.PodSpec{
		NodeName:       p.Spec.NodeName,
		Containers:     slimContainers(p.Spec.Containers),
		InitContainers: slimContainers(p.Spec.InitContainers),
	}
	return p, nil
}

func slimContainers(list []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range list {
		out = append(out, corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources})
	}
	return out
}
