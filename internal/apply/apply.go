// Package apply is the only package that writes to Kubernetes.
//
// Objects that Fairlead renders go by server-side apply. Where a webhook
// rewrites what we own, one apply is made and then there is quiet (but for one
// attempt every few minutes, since nothing tells when the webhook is gone). Where
// another writer puts its own value back each time, ours is sent less and less
// often.
//
// Every kind that is written must be one that the system watches: a write waits
// until the cache has seen it.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// ForeignObjectError says that an object of the wanted name exists and belongs
// to somebody else. Nothing was written.
type ForeignObjectError struct{ Object plan.Ref }

func (e *ForeignObjectError) Error() string {
	return fmt.Sprintf("%s exists and does not belong to this resource; delete it or choose another name", e.Object)
}

// Writer writes. It is safe for concurrent use.
type Writer struct {
	client client.Client
	live   client.Reader
	engine *diff.Engine
	ledger *Ledger
}

// NewWriter returns a Writer that writes by c and checks by live, which must
// not be a cache, that an object to be created does not exist yet.
func NewWriter(c client.Client, live client.Reader, engine *diff.Engine, now func() time.Time) *Writer {
	return &Writer{client: c, live: live, engine: engine, ledger: NewLedger(now)}
}

// Prepare turns an Apply step for the owner into a request. The error is a
// *ContestedError when it must not be sent (again) now.
func (l *Ledger) Prepare(engine *diff.Engine, owner client.Object, step plan.Apply) (Request, error) {
	intent, err := engine.Intent(step.Object)
	if err != nil {
		return Request{}, err
	}
	body, err := json.Marshal(intent.Object)
	if err != nil {
		return Request{}, fmt.Errorf("encoding %s: %w", step.Target(), err)
	}
	r := Request{
		Body: body, Kind: intent.GroupVersionKind(), Step: step,
		owner: client.ObjectKeyFromObject(owner), intent: sha256.Sum256(body),
	}
	exact := step.Exact && step.Live != ""
	if exact {
		intent.SetResourceVersion(step.Live)
	}
	intent.SetUID(step.UID)
	if exact || step.UID != "" { // no part of what is meant: the digest is without them
		if r.Body, err = json.Marshal(intent.Object); err != nil {
			return Request{}, fmt.Errorf("encoding %s: %w", step.Target(), err)
		}
	}
	r.key = sentKey{kind: r.Kind, name: client.ObjectKeyFromObject(step.Object), manager: step.Manager}
	return r, l.check(r.owner, r.key, r.intent, step)
}

// Apply carries out one Apply step for the owner. It tells whether a request
// was made.
func (w *Writer) Apply(ctx context.Context, owner client.Object, step plan.Apply) (bool, error) {
	r, err := w.ledger.Prepare(w.engine, owner, step)
	if err != nil {
		return false, err
	}
	if step.Live == "" {
		if err := w.checkAbsent(ctx, owner, step, r.Kind); err != nil {
			return false, err
		}
	}
	// The typed form makes the client wait for the result to reach its cache.
	result, err := w.empty(r.Kind)
	if err != nil {
		return false, fmt.Errorf("applying %s: %w", step.Target(), err)
	}
	result.SetName(step.Object.GetName())
	result.SetNamespace(step.Object.GetNamespace())
	patch := client.RawPatch(types.ApplyPatchType, r.Body)
	if err := w.client.Patch(ctx, result, patch, client.FieldOwner(step.Manager), client.ForceOwnership); err != nil {
		return true, fmt.Errorf("applying %s: %w", step.Target(), conflictOfUIDs(err, r.Kind, result.GetName()))
	}
	w.ledger.Done(r, result.GetResourceVersion())
	if step.Live == "" {
		return true, nil // who looks for it by name waits by itself; lists may lack it for a moment
	}
	return true, w.settle(ctx, r.Kind, client.ObjectKeyFromObject(result))
}

// conflictOfUIDs turns the refusal of an apply to another object of that name into the
// conflict that it is: the API server calls it an immutable field that differs.
func conflictOfUIDs(err error, gvk schema.GroupVersionKind, name string) error {
	cause, is := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	if !is || !apierrors.IsInvalid(err) || cause.Field != "metadata.uid" {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name, err)
}

// settle waits until the cache has seen the write of an object, so that lists
// which do not wait by themselves show it as well. It makes no request.
func (w *Writer) settle(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) error {
	seen, err := w.empty(gvk)
	if err != nil {
		return err
	}
	if err := client.IgnoreNotFound(w.client.Get(ctx, key, seen)); err != nil {
		return fmt.Errorf("waiting to see %s %q written: %w", gvk.Kind, key, err)
	}
	return nil
}

func (w *Writer) empty(gvk schema.GroupVersionKind) (client.Object, error) {
	made, err := w.client.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	o, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", made)
	}
	return o, nil
}

// Forget drops what is remembered for an owner that is gone.
func (w *Writer) Forget(owner types.NamespacedName) { w.ledger.Forget(owner) }

// checkAbsent guards the creation of an object: the caches see only what
// carries our labels, and an apply would silently take over a stranger's.
func (w *Writer) checkAbsent(ctx context.Context, owner client.Object, step plan.Apply, gvk schema.GroupVersionKind) error {
	m, err := w.look(ctx, step.Object, gvk)
	if err != nil || m == nil {
		return err
	}
	return CheckOwner(owner, m)
}

// look asks the API server for the metadata of an object; nil when there is none.
func (w *Writer) look(ctx context.Context, o client.Object, gvk schema.GroupVersionKind) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	err := w.live.Get(ctx, client.ObjectKeyFromObject(o), m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", plan.RefOf(o), err)
	}
	return m, nil
}

// Alive tells whether the owner is there and stays: whether the API server, not a
// cache, has the very object and nobody deleted it. What is made for an owner that
// goes would only be removed again.
func (w *Writer) Alive(ctx context.Context, owner client.Object) (bool, error) {
	gvk, err := w.client.GroupVersionKindFor(owner)
	if err != nil {
		return false, fmt.Errorf("looking whether the owner is there: %w", err)
	}
	m, err := w.look(ctx, owner, gvk)
	if err != nil || m == nil {
		return false, err
	}
	return m.GetUID() == owner.GetUID() && m.GetDeletionTimestamp().IsZero(), nil
}

// CheckOwner returns a *ForeignObjectError unless the object belongs to owner.
func CheckOwner(owner, o client.Object) error {
	for _, r := range o.GetOwnerReferences() {
		if r.UID == owner.GetUID() {
			return nil
		}
	}
	return &ForeignObjectError{Object: plan.RefOf(o)}
}

// Create makes one object as it is given. One that is there by now, and belongs to the
// owner, is a success: what it says is seen when it is observed.
func (w *Writer) Create(ctx context.Context, owner client.Object, step plan.Create) error {
	gvk, err := w.client.GroupVersionKindFor(step.Object)
	if err != nil {
		return fmt.Errorf("creating %s: %w", step.Target(), err)
	}
	if err := w.checkAbsent(ctx, owner, plan.Apply{Object: step.Object}, gvk); err != nil {
		return err
	}
	made, ok := step.Object.DeepCopyObject().(client.Object) // the answer is written into it
	if !ok {
		return fmt.Errorf("creating %s: %T is not an object", step.Target(), step.Object)
	}
	err = w.client.Create(ctx, made, client.FieldOwner(step.Manager))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", step.Target(), err)
	}
	return w.settle(ctx, gvk, client.ObjectKeyFromObject(made))
}

// Delete removes an object if it still is the one that was observed. An
// object that is gone already is a success.
func (w *Writer) Delete(ctx context.Context, step plan.Delete) error {
	uid := step.Object.GetUID()
	opts := []client.DeleteOption{client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if step.Orphan {
		version := step.Object.GetResourceVersion()
		opts = []client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationOrphan)}
	}
	if step.Unwatched { // waiting to see it gone would begin to watch it
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	err := w.client.Delete(ctx, step.Object, opts...)
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %s: %w", step.Target(), err)
	}
	if step.Unwatched {
		return nil
	}
	gvk, err := w.client.GroupVersionKindFor(step.Object)
	if err != nil {
		return fmt.Errorf("deleting %s: %w", step.Target(), err)
	}
	return w.settle(ctx, gvk, client.ObjectKeyFromObject(step.Object))
}

// BlockedError says that a disruption budget does not allow an eviction now.
type BlockedError struct {
	Pod     plan.Ref
	Message string
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("evicting %s: %s", e.Pod, e.Message)
}

// Evict asks the API server to evict a Pod. A Pod that is gone is a success; a
// refusal by a disruption budget is a *BlockedError.
func (w *Writer) Evict(ctx context.Context, step plan.Evict) error {
	pod, ok := step.Pod.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("evicting %s: a %T is not a Pod", step.Target(), step.Pod)
	}
	uid, version := pod.UID, pod.ResourceVersion
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}},
	}
	err := w.client.SubResource("eviction").Create(ctx, pod, eviction)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsTooManyRequests(err):
		return &BlockedError{Pod: step.Target(), Message: refusal(err)}
	}
	return fmt.Errorf("evicting %s: %w", step.Target(), err)
}

// refusal is what the API server says of a refused eviction, with the budget that
// it names in the details.
func refusal(err error) string {
	said := err.Error()
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return said
	}
	for _, c := range answer.Status().Details.Causes {
		if c.Type == policyv1.DisruptionBudgetCause {
			said += " " + c.Message
		}
	}
	return said
}

// Status writes the status of now where it differs from before, which must be
// the object as it was read. It tells whether a request was made; none is made
// when both mean the same.
func (w *Writer) Status(ctx context.Context, before, now client.Object) (bool, error) {
	patch := client.MergeFrom(before)
	body, err := patch.Data(now)
	if err != nil {
		return false, fmt.Errorf("status of %q: %w", client.ObjectKeyFromObject(now), err)
	}
	if string(body) == "{}" {
		return false, nil
	}
	err = w.client.Status().Patch(ctx, now, client.RawPatch(patch.Type(), body))
	if err := client.IgnoreNotFound(err); err != nil {
		return true, fmt.Errorf("writing status of %q: %w", client.ObjectKeyFromObject(now), err)
	}
	return true, nil
}

// Permanent tells whether repeating the write cannot help until somebody
// changes something: the request was refused for what it says, or we may not
// make it, or somebody else stands in the way.
func Permanent(err error) bool {
	var foreign *ForeignObjectError
	var contested *ContestedError
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		errors.As(err, &foreign) || errors.As(err, &contested)
}
