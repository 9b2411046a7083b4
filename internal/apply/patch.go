package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Patch carries out one Patch step. The error is a *ContestedError when the same
// patch did not last and is not due again.
func (w *Writer) Patch(ctx context.Context, step plan.Patch) error {
	body, err := json.Marshal(step.Fields)
	if err != nil {
		return fmt.Errorf("patching %s: %w", step.Target(), err)
	}
	gvk, err := w.client.GroupVersionKindFor(step.Object)
	if err != nil {
		return fmt.Errorf("patching %s: %w", step.Target(), err)
	}
	// It says its own name as the owner: nothing tells when it is gone, and there
	// are no more of them than objects that were patched.
	owner, intent := client.ObjectKeyFromObject(step.Object), sha256.Sum256(body)
	key := sentKey{kind: gvk, name: owner, manager: "patch:" + step.Subresource + step.Manager}
	said := plan.Apply{Object: step.Object, Live: step.Object.GetResourceVersion(), Reason: step.Reason}
	if err := w.ledger.check(owner, key, intent, said); err != nil {
		return err
	}
	if err := w.ledger.refused(key, intent, said.Live); err != nil {
		return err
	}
	err = w.patch(ctx, step)
	if err != nil && step.Apart && Permanent(err) {
		return w.ledger.refuse(key, intent, said.Live, err)
	}
	if err != nil {
		return err
	}
	w.ledger.record(owner, key, intent, said.Live, "")
	return nil
}

// patch sends a patch to what its fields are of, and what else is to be said where
// that is refused.
func (w *Writer) patch(ctx context.Context, step plan.Patch) error {
	send := w.merge
	switch step.Subresource {
	case scale:
		send = w.mergeScale
	case resize:
		send = w.resize
	}
	err := send(ctx, step.Object, step.Fields, step.Manager)
	if err != nil && step.Else != nil && !Denied(err) && (Permanent(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)) {
		return w.merge(ctx, step.Object, step.Else, step.Manager)
	}
	return err
}

// noRight is how an API server says that an account lacks a right.
var noRight = regexp.MustCompile(`" cannot [a-z]+ resource "`)

// Denied tells whether the account of the operator lacks the right to what it asked
// for. That says nothing about what was asked for, as a quota or a webhook does under
// the same code: it is for a person to mend, and no reason to replace Pods instead.
func Denied(err error) bool {
	return apierrors.IsForbidden(err) && noRight.MatchString(err.Error())
}

// Adopt carries out one Adopt step. The managed fields of other managers are not
// in the cache, so the object is read first.
func (w *Writer) Adopt(ctx context.Context, step plan.Adopt) error {
	now, err := w.now(ctx, step.Object)
	if err != nil {
		return fmt.Errorf("adopting %s: %w", step.Target(), err)
	}
	fields, err := Adoption(w.engine, step, now)
	if err != nil || fields == nil {
		return err
	}
	return w.merge(ctx, step.Object, fields, step.Manager)
}

// Disown carries out one Disown step. The managed fields of other managers are not
// in the cache, so the object is read first.
func (w *Writer) Disown(ctx context.Context, step plan.Disown) error {
	now, err := w.now(ctx, step.Object)
	if err != nil {
		return fmt.Errorf("giving up %s: %w", step.Target(), err)
	}
	fields, err := Disowning(step, now)
	if err != nil {
		return err
	}
	return w.merge(ctx, step.Object, fields, step.Manager)
}

// Disowning returns the merge patch of a Disown step on the object as it is now.
func Disowning(step plan.Disown, now client.Object) (map[string]any, error) {
	fields := runtime.DeepCopyJSON(step.Fields)
	if fields == nil {
		fields = map[string]any{}
	}
	var others []metav1.ManagedFieldsEntry
	for _, m := range now.GetManagedFields() {
		if m.Manager != step.Manager {
			others = append(others, m)
		}
	}
	list, err := managedFields(others)
	if err != nil {
		return nil, fmt.Errorf("giving up %s: %w", step.Target(), err)
	}
	meta, ok := fields["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		fields["metadata"] = meta
	}
	meta["managedFields"] = list
	return fields, nil
}

// managedFields are entries as they stand in a patch. None is one empty entry: an
// empty list would change nothing.
func managedFields(entries []metav1.ManagedFieldsEntry) ([]any, error) {
	if len(entries) == 0 {
		return []any{map[string]any{}}, nil
	}
	list := make([]any, 0, len(entries))
	for i := range entries {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entries[i])
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

// Adoption returns the merge patch of an Adopt step on the object as it is now,
// nil when there is nothing to move.
func Adoption(engine *diff.Engine, step plan.Adopt, now client.Object) (map[string]any, error) {
	entries, needed, err := engine.Adoption(step.Rendered, now, step.Manager, step.Below, step.Except)
	if err != nil {
		return nil, fmt.Errorf("adopting %s: %w", step.Target(), err)
	}
	if !needed {
		return nil, nil //nolint:nilnil // no patch is an answer
	}
	list, err := managedFields(entries)
	if err != nil {
		return nil, fmt.Errorf("adopting %s: %w", step.Target(), err)
	}
	return map[string]any{"metadata": map[string]any{"managedFields": list}}, nil
}

// merge patches an object if it still is the one that was observed.
func (w *Writer) merge(ctx context.Context, observed client.Object, fields map[string]any, manager string) error {
	ref := plan.RefOf(observed)
	body, err := PatchBody(observed, fields)
	if err != nil {
		return fmt.Errorf("patching %s: %w", ref, err)
	}
	gvk, err := w.client.GroupVersionKindFor(observed)
	if err != nil {
		return fmt.Errorf("patching %s: %w", ref, err)
	}
	result, err := w.empty(gvk)
	if err != nil {
		return fmt.Errorf("patching %s: %w", ref, err)
	}
	result.SetName(observed.GetName())
	result.SetNamespace(observed.GetNamespace())
	if err := w.client.Patch(ctx, result, client.RawPatch(types.MergePatchType, body), client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("patching %s: %w", ref, err)
	}
	return w.settle(ctx, gvk, client.ObjectKeyFromObject(result))
}

// resize is the subresource that holds the sizes of the containers of a running Pod.
const resize = "resize"

// resize patches the sizes of containers, which are told by their names, if the Pod still
// is the one that was observed.
func (w *Writer) resize(ctx context.Context, observed client.Object, fields map[string]any, manager string) error {
	ref := plan.RefOf(observed)
	body, err := PatchBody(observed, fields)
	if err != nil {
		return fmt.Errorf("resizing %s: %w", ref, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: observed.GetNamespace(), Name: observed.GetName()}}
	options := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: manager}}
	if err := w.client.SubResource(resize).Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, body), options); err != nil {
		return fmt.Errorf("resizing %s: %w", ref, err)
	}
	return w.settle(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), client.ObjectKeyFromObject(pod))
}

// scale is the subresource that holds the number of replicas.
const scale = "scale"

// mergeScale patches the number of replicas of an object by its scale subresource, if
// the object still is the one that was observed.
func (w *Writer) mergeScale(ctx context.Context, observed client.Object, fields map[string]any, manager string) error {
	ref := plan.RefOf(observed)
	body, err := PatchBody(observed, fields)
	if err != nil {
		return fmt.Errorf("scaling %s: %w", ref, err)
	}
	gvk, err := w.client.GroupVersionKindFor(observed)
	if err != nil {
		return fmt.Errorf("scaling %s: %w", ref, err)
	}
	object, err := w.empty(gvk)
	if err != nil {
		return fmt.Errorf("scaling %s: %w", ref, err)
	}
	object.SetName(observed.GetName())
	object.SetNamespace(observed.GetNamespace())
	options := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: manager}, SubResourceBody: &autoscalingv1.Scale{}}
	if err := w.client.SubResource(scale).Patch(ctx, object, client.RawPatch(types.MergePatchType, body), options); err != nil {
		return fmt.Errorf("scaling %s: %w", ref, err)
	}
	return nil
}

// PatchBody is a merge patch that is refused when the object is not the observed
// one any more.
func PatchBody(observed client.Object, fields map[string]any) ([]byte, error) {
	body := runtime.DeepCopyJSON(fields)
	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		body["metadata"] = meta
	}
	meta["uid"], meta["resourceVersion"] = string(observed.GetUID()), observed.GetResourceVersion()
	return json.Marshal(body)
}

// now reads an object as it is, past the cache.
func (w *Writer) now(ctx context.Context, observed client.Object) (client.Object, error) {
	gvk, err := w.client.GroupVersionKindFor(observed)
	if err != nil {
		return nil, err
	}
	o, err := w.empty(gvk)
	if err != nil {
		return nil, err
	}
	return o, w.live.Get(ctx, client.ObjectKeyFromObject(observed), o)
}
