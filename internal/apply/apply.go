// Package apply is the only package that writes to Kubernetes.
//
// Objects that Fairlead renders go by server-side apply. An apply is sent at
// most once for one intent and one live resource version: where a webhook
// rewrites what we own, one apply is made and then there is quiet.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

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

	mu   sync.Mutex
	sent map[types.UID]map[sentKey]sent // by owner
}

type sentKey struct {
	kind    schema.GroupVersionKind
	name    types.NamespacedName
	manager string
}

// sent remembers the last apply of one object: what it said, on which version
// it was decided and which version came of it.
type sent struct {
	intent        [sha256.Size]byte
	before, after string
}

// NewWriter returns a Writer that writes by c and checks by live, which must
// not be a cache, that an object to be created does not exist yet.
func NewWriter(c client.Client, live client.Reader, engine *diff.Engine) *Writer {
	return &Writer{client: c, live: live, engine: engine, sent: map[types.UID]map[sentKey]sent{}}
}

// Apply carries out one Apply step for the owner. It tells whether a request
// was made; none is made when the same intent was already sent for the live
// version.
func (w *Writer) Apply(ctx context.Context, owner client.Object, step plan.Apply) (bool, error) {
	intent, err := w.engine.Intent(step.Object)
	if err != nil {
		return false, err
	}
	body, err := json.Marshal(intent.Object)
	if err != nil {
		return false, fmt.Errorf("encoding %s: %w", step.Target(), err)
	}
	gvk := intent.GroupVersionKind()
	key := sentKey{kind: gvk, name: client.ObjectKeyFromObject(step.Object), manager: step.Manager}
	sum := sha256.Sum256(body)
	if w.alreadySent(owner, key, sum, step.Live) {
		return false, nil
	}
	if step.Live == "" {
		if err := w.checkAbsent(ctx, owner, step, gvk); err != nil {
			return false, err
		}
	}
	// The typed form makes the client wait for the result to reach its cache.
	target, err := w.client.Scheme().New(gvk)
	if err != nil {
		return false, fmt.Errorf("applying %s: %w", step.Target(), err)
	}
	result, ok := target.(client.Object)
	if !ok {
		return false, fmt.Errorf("applying %s: %T is not an object", step.Target(), target)
	}
	result.SetName(step.Object.GetName())
	result.SetNamespace(step.Object.GetNamespace())
	patch := client.RawPatch(types.ApplyPatchType, body)
	if err := w.client.Patch(ctx, result, patch, client.FieldOwner(step.Manager), client.ForceOwnership); err != nil {
		return true, fmt.Errorf("applying %s: %w", step.Target(), err)
	}
	w.remember(owner, key, sent{intent: sum, before: step.Live, after: result.GetResourceVersion()})
	return true, nil
}

func (w *Writer) alreadySent(owner client.Object, key sentKey, sum [sha256.Size]byte, live string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.sent[owner.GetUID()][key]
	return ok && live != "" && s.intent == sum && (s.before == live || s.after == live)
}

func (w *Writer) remember(owner client.Object, key sentKey, s sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent[owner.GetUID()] == nil {
		w.sent[owner.GetUID()] = map[sentKey]sent{}
	}
	w.sent[owner.GetUID()][key] = s
}

// Forget drops what is remembered of the objects of an owner that is gone.
func (w *Writer) Forget(owner types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sent, owner)
}

// checkAbsent guards the creation of an object: the caches see only what
// carries our labels, and an apply would silently take over a stranger's.
func (w *Writer) checkAbsent(ctx context.Context, owner client.Object, step plan.Apply, gvk schema.GroupVersionKind) error {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	err := w.live.Get(ctx, client.ObjectKeyFromObject(step.Object), m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", step.Target(), err)
	}
	for _, o := range m.OwnerReferences {
		if o.UID == owner.GetUID() {
			return nil
		}
	}
	return &ForeignObjectError{Object: step.Target()}
}

// Delete removes an object if it still is the one that was observed. An
// object that is gone already is a success.
func (w *Writer) Delete(ctx context.Context, step plan.Delete) error {
	uid := step.Object.GetUID()
	err := w.client.Delete(ctx, step.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %s: %w", step.Target(), err)
	}
	return nil
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
		return &BlockedError{Pod: step.Target(), Message: err.Error()}
	}
	return fmt.Errorf("evicting %s: %w", step.Target(), err)
}

// Status writes the status of now where it differs from before, which must be
// the object as it was read.
func (w *Writer) Status(ctx context.Context, before, now client.Object) error {
	err := w.client.Status().Patch(ctx, now, client.MergeFrom(before))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("writing status of %q: %w", client.ObjectKeyFromObject(now), err)
	}
	return nil
}

// Permanent tells whether repeating the write cannot help until somebody
// changes something: the request was refused for what it says, or we may not
// make it.
func Permanent(err error) bool {
	var foreign *ForeignObjectError
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || errors.As(err, &foreign)
}
