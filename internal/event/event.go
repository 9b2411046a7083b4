// Package event makes the events that Fairlead emits. Events are values: one
// constructor each, emitted by the kernel alone, after something was done or
// refused.
package event

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Event is one event about a custom resource.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Action are CamelCase words.
	Reason, Action string
	Message        string
}

// Created tells that an object was made.
func Created(o plan.Ref) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: "Created", Action: "Create", Message: "created " + o.String()}
}

// Updated tells that an object was changed.
func Updated(o plan.Ref, why string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: "Updated", Action: "Update", Message: fmt.Sprintf("%s: %s", o, why)}
}

// Deleted tells that an object was removed.
func Deleted(o plan.Ref, why string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: "Deleted", Action: "Delete", Message: fmt.Sprintf("%s: %s", o, why)}
}

// Evicted tells that a Pod was evicted.
func Evicted(o plan.Ref, why string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: "Evicted", Action: "Evict", Message: fmt.Sprintf("%s: %s", o, why)}
}

// Called tells that something was asked of the data system.
func Called(what string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: "Called", Action: "Call", Message: what}
}

// Ready tells that everything is as the spec wants it.
func Ready() Event {
	return Event{Type: corev1.EventTypeNormal, Reason: "Ready", Action: "Reconcile", Message: "as the spec wants it"}
}

// Stalled tells that only a person can help.
func Stalled(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Action: "Reconcile", Message: message}
}

// ChangesHeld tells that changes wait for consent.
func ChangesHeld(message string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: "ChangesHeld", Action: "Plan", Message: message}
}
