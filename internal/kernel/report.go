package kernel

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/event"
	"github.com/fairlead-dev/fairlead/internal/status"
)

// report writes the status where it differs, and emits what happened: steps
// that were carried out, and conditions that turned once they are written, so
// that a failed write does not tell them twice.
func (r *Reconciler[O, W]) report(ctx context.Context, rn *run[O, W]) error {
	for _, e := range event.Together(rn.done) {
		r.Emit(rn.obj, e)
	}
	if rn.failure != nil && apierrors.IsConflict(rn.failure.Err) {
		return nil // a lost race says nothing about the object
	}
	now, health, err := r.health(ctx, rn)
	if err != nil {
		return err
	}
	now.SetConditions(status.Conditions(rn.obj.GetConditions(), status.Input{
		Generation: rn.obj.GetGeneration(), Now: r.Now(), Plan: rn.plan, Planned: rn.planned,
		Health: health, Failure: rn.failure, Paused: meta.Paused(rn.obj.GetAnnotations()),
	}))
	now.SetObservedGeneration(rn.obj.GetGeneration())
	r.metrics.observed(client.ObjectKeyFromObject(now), rn.obj.GetConditions(), now.GetConditions(), rn.plan, rn.planned)
	if reflect.DeepEqual(rn.obj, now) {
		return nil
	}
	after := slices.Clone(now.GetConditions()) // the write fills now with the answer
	wrote, err := r.Writer.Status(ctx, rn.obj, now)
	if wrote {
		rn.writes++
		r.metrics.wrote("status")
	}
	if err != nil {
		if apply.Permanent(err) {
			r.Emit(rn.obj, event.NotReported(wayOut(err)))
		}
		return err
	}
	for _, e := range transitions(rn.obj.GetConditions(), after) {
		r.Emit(rn.obj, e)
	}
	for _, e := range toldBy(health, rn.obj.GetConditions(), after) {
		r.Emit(rn.obj, e)
	}
	return nil
}

// notVisible is said where the operator has rights in some namespaces only.
const notVisible = "the operator has no right to see the lease of the existing Doris operator: make sure that none is at work on the same resources, or let it list and watch that lease in all namespaces"

// toldBy are the events that a system asks for when a condition of its own begins to
// say something, or says it of something else.
func toldBy(health *status.Health, before, after []metav1.Condition) []event.Event {
	if health == nil {
		return nil
	}
	var out []event.Event
	for _, kind := range slices.Sorted(maps.Keys(health.Extra)) {
		now, was := find(after, kind), find(before, kind)
		same := now.Status == was.Status && now.Reason == was.Reason && now.Message == was.Message
		if health.Extra[kind].Tell && !same {
			out = append(out, event.Warned(now.Reason, now.Message))
		}
	}
	return out
}

// health returns a copy of the object on which the system has reported, and
// what it said; nil when it could not be asked. A panic in the report becomes
// the failure, and nothing of the report is kept.
func (r *Reconciler[O, W]) health(ctx context.Context, rn *run[O, W]) (now O, h *status.Health, err error) {
	if now, err = r.copied(rn.obj); err != nil || !rn.observed {
		return now, nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			rn.failure, h = panicked(ctx, p), nil
			now, err = r.copied(rn.obj)
		}
	}()
	got := r.System.Report(now, rn.world, rn.plan, r.Now())
	if r.Rival.Blind() {
		got.Extra = maps.Clone(got.Extra)
		if got.Extra == nil {
			got.Extra = map[string]status.Verdict{}
		}
		got.Extra[meta.ConditionOtherOperatorsVisible] = status.Verdict{Reason: meta.ReasonMayNotLook, Message: notVisible}
	}
	return now, &got, nil
}

func (r *Reconciler[O, W]) copied(o O) (O, error) {
	c, ok := o.DeepCopyObject().(O)
	if !ok {
		return o, fmt.Errorf("a copy of %T has another type", o)
	}
	return c, nil
}

// transitions are the events that follow from changed conditions.
func transitions(before, after []metav1.Condition) []event.Event {
	var out []event.Event
	if c, changed := turnedTrue(before, after, meta.ConditionStalled); changed {
		out = append(out, event.Stalled(c.Reason, c.Message))
	}
	if c, changed := turnedTrue(before, after, meta.ConditionChangePending); changed {
		out = append(out, event.ChangesHeld(c.Message))
	}
	if _, changed := turnedTrue(before, after, meta.ConditionReady); changed {
		out = append(out, event.Ready())
	}
	return out
}

// turnedTrue finds a condition that is True now and was not, or whose message
// says something new.
func turnedTrue(before, after []metav1.Condition, kind string) (metav1.Condition, bool) {
	now, was := find(after, kind), find(before, kind)
	if now.Status != metav1.ConditionTrue {
		return now, false
	}
	return now, was.Status != metav1.ConditionTrue || (kind != meta.ConditionReady && was.Message != now.Message)
}

func find(list []metav1.Condition, kind string) metav1.Condition {
	for _, c := range list {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
