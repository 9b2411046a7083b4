// Package fault is a proxy between one operator and the API server. It numbers
// every write of the operator, records what became of it, and does harm where
// it is told to: kill the operator before a write is sent or after it was
// committed, answer in place of the API server, delay, cut or hold watches,
// serve an old list.
//
// The operator keeps its identity: it is given a kubeconfig that points at the
// proxy, and its own credentials go through as they are. So its permissions and
// the audit log are what they are without a proxy.
//
// Package fault is for tests; the stories that are told through it are in
// test/fault/stories.
package fault

import (
	"fmt"
	"strings"
	"time"
)

// When is the moment at a write.
type When int

const (
	// Before is when the operator has sent a write and the API server has not
	// got it.
	Before When = iota
	// After is when the API server has carried it out and the operator has not
	// been told.
	After
)

func (w When) String() string {
	if w == Before {
		return "before"
	}
	return "after"
}

// Do is what is done.
type Do int

const (
	// Kill ends the operator with SIGKILL.
	Kill Do = iota
	// Answer gives the operator the Code instead of what the API server says.
	// Before the write nothing is sent at all.
	Answer
	// Delay lets the request, or the answer, wait For a time.
	Delay
	// CutWatch breaks the running watches of Resource.
	CutWatch
	// HoldWatch keeps back what the watches of Resource tell, For a time.
	HoldWatch
	// OldList answers the next list of Resource with the first answer that
	// was ever given to it.
	OldList
)

func (d Do) String() string {
	return [...]string{"kill", "answer", "delay", "cut watch", "hold watch", "old list"}[d]
}

// Plan is one fault.
type Plan struct {
	// At is the number of the write, from 1, at which the fault happens.
	At   int
	When When
	Do   Do
	// Code of an Answer.
	Code int
	// For how long to Delay or to HoldWatch.
	For time.Duration
	// Resource whose reads are meant, such as "pods"; all of them when empty.
	Resource string
}

func (p Plan) String() string {
	text := fmt.Sprintf("%s %s write %d", p.Do, p.When, p.At)
	switch {
	case p.Do == Answer:
		text = fmt.Sprintf("%s %d %s write %d", p.Do, p.Code, p.When, p.At)
	case p.For > 0:
		text += " for " + p.For.String()
	}
	if p.Resource != "" {
		text += " (" + p.Resource + ")"
	}
	return text
}

// Write is one write of the operator.
type Write struct {
	// Number from 1 on since the proxy was armed; 0 for one that is not
	// counted: events and leases.
	Number                                       int
	Verb, Resource, Subresource, Namespace, Name string
	// Code is what the operator was answered; 0 for nothing.
	Code int
	// At is when it came in.
	At time.Time
	// Faults that happened at it.
	Faults []Plan
}

func (w Write) String() string {
	what := w.Resource
	if w.Subresource != "" {
		what += "/" + w.Subresource
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d: %s %s %s → %d", w.Number, w.Verb, what, w.Name, w.Code)
	for _, f := range w.Faults {
		fmt.Fprintf(&text, " [%s]", f)
	}
	return text.String()
}
