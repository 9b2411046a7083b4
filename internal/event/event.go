// Package event makes the events that Fairlead emits. Events are values: one
// constructor each, emitted by the kernel alone, after something was done or
// refused.
package event

import (
	"fmt"
	"strings"

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
	// Related is the object that something was done to; zero when it is the
	// custom resource itself. The API counts events with the same reason about
	// the same two objects as one, and keeps the message of the first.
	Related plan.Ref
}

// longest is the limit of the API for the note of an event.
const longest = 1024

func normal(reason, action, message string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Message: bounded(message)}
}

func (e Event) on(o plan.Ref) Event {
	e.Related = o
	return e
}

// bounded shortens a message to what the API server takes.
func bounded(message string) string {
	if len(message) <= longest {
		return message
	}
	const more = "…"
	return strings.ToValidUTF8(message[:longest-len(more)], "") + more
}

// reasonCreated is that of objects that were made.
const reasonCreated = "Created"

// Created tells that an object was made.
func Created(o plan.Ref) Event {
	return normal(reasonCreated, "Create", o.String()).on(o)
}

// Together joins what was made one after the other into one event, about the last of
// the objects: what a component consists of is made at once, and each event is
// a write of its own for the API server.
func Together(done []Event) []Event {
	out := make([]Event, 0, len(done))
	for _, e := range done {
		last := len(out) - 1
		if e.Reason == reasonCreated && last >= 0 && out[last].Reason == reasonCreated {
			out[last].Message, out[last].Related = bounded(out[last].Message+", "+e.Message), e.Related
			continue
		}
		out = append(out, e)
	}
	for i := range out {
		if out[i].Reason == reasonCreated {
			out[i].Message = bounded("created " + out[i].Message)
		}
	}
	return out
}

// Updated tells that an object was changed.
func Updated(o plan.Ref, why string) Event { return normal("Updated", "Update", about(o, why)).on(o) }

// Deleted tells that an object was removed.
func Deleted(o plan.Ref, why string) Event { return normal("Deleted", "Delete", about(o, why)).on(o) }

// Evicted tells that a Pod was evicted.
func Evicted(o plan.Ref, why string) Event { return normal("Evicted", "Evict", about(o, why)).on(o) }

// Called tells that something was asked of the data system.
func Called(o plan.Ref, what string) Event { return normal("Called", "Call", what).on(o) }

// Ready tells that everything is as the spec wants it.
func Ready() Event { return normal("Ready", "Reconcile", "as the spec wants it") }

// ChangesHeld tells that changes wait for consent.
func ChangesHeld(message string) Event { return normal("ChangesHeld", "Plan", message) }

// Stalled tells that only a person can help.
func Stalled(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Action: "Reconcile", Message: bounded(message)}
}

// NotReported tells that the status, which should say how things are, could not be
// written for good: what it says is old.
func NotReported(err error) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "NotReported", Action: "Report", Message: bounded("what the status says is old: " + err.Error())}
}

// Warned tells that a condition of a system's own says something that a person should
// know of.
func Warned(reason, message string) Event { return Stalled(reason, message) }

func about(o plan.Ref, why string) string { return fmt.Sprintf("%s: %s", o, why) }
