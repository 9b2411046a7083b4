package doris

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// disksDouble is the storage of a simulated cluster, a test double: it makes the claims
// of Pods from the templates of their sets and lets them grow when it is told to.
type disksDouble struct {
	// fixed tells that the storage class does not allow claims to grow.
	fixed bool
	// patches lists the claims that were asked to grow, with the sizes.
	patches []string
}

// claim makes the claims of a Pod.
func (d *disksDouble) claim(w *world, set *appsv1.StatefulSet, ordinal int) {
	if d == nil {
		return
	}
	for _, t := range set.Spec.VolumeClaimTemplates {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: fmt.Sprintf("%s-%s-%d", t.Name, set.Name, ordinal),
			Labels: maps.Clone(set.Spec.Selector.MatchLabels), Annotations: maps.Clone(t.Annotations),
		}, Spec: *t.Spec.DeepCopy()}
		if w.store.Now().Get(keyOf(c)) != nil {
			continue
		}
		_, err := w.store.Create(c, "kube-controller-manager")
		w.must(err)
		d.bind(w, c.Name)
	}
}

// bind gives a claim a volume of the size that it asks for.
func (d *disksDouble) bind(w *world, name string) {
	c := object(w, name, &corev1.PersistentVolumeClaim{}).DeepCopy()
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{
		corev1.ResourceStorage: storageOf(c.Spec.Resources.Requests),
	}}
	w.must(w.store.SetStatus(c))
}

// grown lets every claim have what it asks for.
func (d *disksDouble) grown(w *world) {
	for _, o := range w.store.Now().List(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "shop") {
		d.bind(w, o.GetName())
	}
}

// mayPatch is what the API server says of a patch of a claim.
func (d *disksDouble) mayPatch(w *world, p plan.Patch) error {
	claim, is := p.Object.(*corev1.PersistentVolumeClaim)
	if d == nil || !is {
		return nil
	}
	if !p.Apart || !reflect.DeepEqual(mapKeys(p.Fields), []string{"spec"}) {
		w.Errorf("a claim is patched with %v", p.Fields)
	}
	size := fmt.Sprint(p.Fields["spec"].(map[string]any)["resources"].(map[string]any)["requests"].(map[string]any)["storage"])
	d.patches = append(d.patches, claim.Name+" "+size)
	if d.fixed {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, claim.Name,
			fmt.Errorf("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
	}
	return nil
}

func mapKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// orphan deletes an object as the API server and the garbage collector do that leave
// what it controls.
func (w *world) orphan(o client.Object) error {
	live := w.store.Now().Get(keyOf(o))
	if live == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, o.GetName())
	}
	if live.GetResourceVersion() != o.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), fmt.Errorf("it is of another version"))
	}
	for _, kind := range []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Pod"), appsv1.SchemeGroupVersion.WithKind("ControllerRevision")} {
		for _, dependent := range w.store.Now().List(kind, "shop") {
			if metav1.IsControlledBy(dependent, o) {
				dependent.SetOwnerReferences(nil)
				_, err := w.store.Update(dependent, "garbage-collector")
				w.must(err)
			}
		}
	}
	return w.store.Delete(keyOf(o), o.GetUID(), false)
}

// adoptOrphans is the StatefulSet controller taking Pods that nobody owns.
func (w *world) adoptOrphans() {
	for _, p := range w.pods() {
		set, there := w.store.Now().Get(keyOf(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: p.Name[:strings.LastIndexByte(p.Name, '-')]}})).(*appsv1.StatefulSet)
		if len(p.OwnerReferences) > 0 || !there {
			continue
		}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID, Controller: new(true)}}
		_, err := w.store.Update(&p, "kube-controller-manager")
		w.must(err)
	}
}
