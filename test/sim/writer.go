package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/kernel"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// writer is the kernel's writer over a Store, with the memory of the real one.
type writer[O kernel.Object, W any] struct {
	r      *Runner[O, W]
	life   *incarnation[O, W]
	ledger *apply.Ledger
}

func newWriter[O kernel.Object, W any](r *Runner[O, W], life *incarnation[O, W]) *writer[O, W] {
	return &writer[O, W]{r: r, life: life, ledger: apply.NewLedger(func() time.Time { return r.now })}
}

var errUnavailable = fmt.Errorf("the API server does not answer")

// attempt makes one request, or lets it fail: before it has an effect, after
// it, or with the operator being killed before or after it. The stand-ins may
// work before it.
func (w *writer[O, W]) attempt(verb string, kind schema.GroupVersionKind, do func() error) error {
	if w.life.dead {
		return errDead
	}
	if w.r.roll("the cluster moves before "+verb, 4) == 3 {
		if _, err := w.r.Cluster.Advance(); err != nil {
			return err
		}
	}
	fault := w.r.roll("fault at "+verb, 12)
	switch fault {
	case 11:
		w.life.dead = true
		return errDead
	case 10:
		return errUnavailable
	}
	w.r.Writes[verb]++
	err := do()
	w.life.floor[kind] = w.r.Cluster.Now().Version // the cache waits for our own writes
	if w.r.Check != nil {
		if broken := w.r.Check(w.r.Cluster.Now()); broken != nil {
			w.r.breaksf("after %s: %w", verb, broken)
		}
	}
	switch fault {
	case 9:
		w.life.dead = true
		return errDead
	case 8:
		return errUnavailable
	}
	return err
}

// Alive implements kernel.Writer.
func (w *writer[O, W]) Alive(_ context.Context, owner client.Object) (bool, error) {
	key, err := w.r.Cluster.key(owner)
	if err != nil {
		return false, err
	}
	now := w.r.Cluster.Now().Get(key)
	return now != nil && now.GetUID() == owner.GetUID() && now.GetDeletionTimestamp().IsZero(), nil
}

// Apply implements kernel.Writer.
func (w *writer[O, W]) Apply(_ context.Context, owner client.Object, step plan.Apply) (bool, error) {
	request, err := w.ledger.Prepare(w.r.Engine, owner, step)
	if err != nil {
		return false, err
	}
	key := Key{request.Kind, client.ObjectKeyFromObject(step.Object)}
	var answered string
	err = w.attempt("apply", key.Kind, func() error {
		before := w.r.Cluster.Now().Get(key)
		if step.Live == "" && before != nil {
			if err := apply.CheckOwner(owner, before); err != nil {
				return err
			}
		}
		if step.UID != "" && (before == nil || before.GetUID() != step.UID) {
			return apierrors.NewConflict(schema.GroupResource{Resource: key.Kind.Kind}, key.Name, errors.New("the object is gone"))
		}
		intent, err := w.r.Engine.Intent(step.Object)
		if err != nil {
			return err
		}
		after, _, err := w.r.Cluster.Apply(intent, step.Manager)
		if err != nil {
			return err
		}
		answered = after.GetResourceVersion()
		return w.covered(step, before, after)
	})
	if err == nil {
		w.ledger.Done(request, answered)
	}
	return true, err
}

// covered holds that an apply changed nothing but what the plan announced. It
// is judged only where the plan was made on what was there: another version
// was changed by others meanwhile.
func (w *writer[O, W]) covered(step plan.Apply, before, after client.Object) error {
	if before == nil || before.GetResourceVersion() != step.Live {
		return nil
	}
	fields, err := w.r.Engine.Compare(after, before, step.Manager)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if strings.HasPrefix(f.Path, `metadata.annotations["`+meta.Prefix) {
			continue // what the operator keeps of the object
		}
		announced := slices.ContainsFunc(w.r.Plan.Changes, func(c plan.Change) bool {
			return c.Object == step.Target() && c.Verdict == plan.VerdictApply && within(f.Path, c.Path)
		})
		if !announced {
			w.r.breaksf("apply of %s changed %s from %s to %s, which the plan did not announce: %+v", step.Target(), f.Path, f.From, f.To, w.r.Plan.Changes)
		}
	}
	return nil
}

// within tells whether one path lies in the other, or the other way around.
func within(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(a, b)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Create implements kernel.Writer.
func (w *writer[O, W]) Create(_ context.Context, owner client.Object, step plan.Create) error {
	key, err := w.r.Cluster.key(step.Object)
	if err != nil {
		return err
	}
	return w.attempt("create", key.Kind, func() error {
		if before := w.r.Cluster.Now().Get(key); before != nil {
			return apply.CheckOwner(owner, before)
		}
		_, err := w.r.Cluster.Create(step.Object, step.Manager)
		return err
	})
}

// Patch implements kernel.Writer.
func (w *writer[O, W]) Patch(_ context.Context, step plan.Patch) error {
	return w.merge("patch", step.Object, step.Manager, func(client.Object) (map[string]any, error) { return step.Fields, nil })
}

// Adopt implements kernel.Writer.
func (w *writer[O, W]) Adopt(_ context.Context, step plan.Adopt) error {
	return w.merge("adopt", step.Object, step.Manager, func(now client.Object) (map[string]any, error) {
		return apply.Adoption(w.r.Engine, step, now)
	})
}

// Disown implements kernel.Writer.
func (w *writer[O, W]) Disown(_ context.Context, step plan.Disown) error {
	return w.merge("disown", step.Object, step.Manager, func(now client.Object) (map[string]any, error) {
		return apply.Disowning(step, now)
	})
}

// merge makes a merge patch with the preconditions of the real writer.
func (w *writer[O, W]) merge(verb string, observed client.Object, manager string, fields func(now client.Object) (map[string]any, error)) error {
	key, err := w.r.Cluster.key(observed)
	if err != nil {
		return err
	}
	return w.attempt(verb, key.Kind, func() error {
		now := w.r.Cluster.Now().Get(key)
		if now == nil {
			return apierrors.NewNotFound(resource(key), key.Name)
		}
		change, err := fields(now)
		if err != nil || change == nil {
			return err
		}
		body, err := apply.PatchBody(observed, change)
		if err != nil {
			return err
		}
		_, err = w.r.Cluster.Patch(key, body, manager)
		return err
	})
}

// Delete implements kernel.Writer.
func (w *writer[O, W]) Delete(_ context.Context, step plan.Delete) error {
	return w.remove("delete", step.Object)
}

// Evict implements kernel.Writer.
func (w *writer[O, W]) Evict(_ context.Context, step plan.Evict) error {
	if w.r.roll("a budget refuses the eviction", 6) == 5 {
		return &apply.BlockedError{Pod: step.Target(), Message: "the disruption budget does not allow it"}
	}
	key, err := w.r.Cluster.key(step.Pod)
	if err != nil {
		return err
	}
	if now := w.r.Cluster.Now().Get(key); now != nil && now.GetResourceVersion() != step.Pod.GetResourceVersion() {
		return apierrors.NewConflict(resource(key), key.Name, fmt.Errorf("precondition failed: resource version"))
	}
	return w.remove("evict", step.Pod)
}

func (w *writer[O, W]) remove(verb string, o client.Object) error {
	key, err := w.r.Cluster.key(o)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(w.attempt(verb, key.Kind, func() error {
		return w.r.Cluster.Delete(key, o.GetUID(), key.Kind == podKind)
	}))
}

// Status implements kernel.Writer.
func (w *writer[O, W]) Status(_ context.Context, _, now client.Object) (bool, error) {
	key, err := w.r.Cluster.key(now)
	if err != nil {
		return false, err
	}
	err = w.attempt("status", key.Kind, func() error { return w.r.Cluster.SetStatus(now) })
	return true, client.IgnoreNotFound(err)
}

// Forget implements kernel.Writer.
func (w *writer[O, W]) Forget(owner types.NamespacedName) { w.ledger.Forget(owner) }
