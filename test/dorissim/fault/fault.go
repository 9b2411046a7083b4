// Package fault lets a test spoil a node of the stand-in on request.
package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Kind is a way to go wrong.
type Kind string

// The kinds. Each lasts until its time is over or it is taken back.
const (
	// Hang lets SQL logins, SQL statements and health requests wait for the fault to end.
	Hang Kind = "hang"
	// Refuse closes the SQL port (FE) or the heartbeat port (BE) and cuts every HTTP request off.
	Refuse Kind = "refuse"
	// SlowStart delays a start; it has an effect from the environment only.
	SlowStart Kind = "slow-start"
	// WrongPassword denies every login.
	WrongPassword Kind = "wrong-password"
	// UnhealthyTablets makes the FE count every tablet as unhealthy.
	UnhealthyTablets Kind = "unhealthy-tablets"
	// LoseAnswer lets the FE carry out the next ALTER SYSTEM or CANCEL statement and cut the connection instead of
	// answering. It is over then.
	LoseAnswer Kind = "lose-answer"
	// TornWrite has the FE killed in the middle of the next write of its settings: the file is truncated, and not
	// written.
	TornWrite Kind = "torn-write"
)

var kinds = []Kind{Hang, Refuse, SlowStart, WrongPassword, UnhealthyTablets, LoseAnswer, TornWrite}

// Set is the faults of one node.
type Set struct {
	now func() time.Time

	mu      sync.Mutex
	until   map[Kind]time.Time // the zero time means until it is taken back
	changed chan struct{}
}

// New returns a set without faults.
func New(now func() time.Time) *Set {
	return &Set{now: now, until: map[Kind]time.Time{}, changed: make(chan struct{})}
}

// Parse adds faults from text: kind[:duration], separated by commas, as DORISSIM_FAULTS holds them.
func (s *Set) Parse(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		kind, lasts, _ := strings.Cut(part, ":")
		if err := s.add(kind, lasts); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) add(kind, lasts string) error {
	known := false
	for _, k := range kinds {
		known = known || k == Kind(kind)
	}
	if !known {
		return fmt.Errorf("unknown fault %q, want one of %v", kind, kinds)
	}
	var until time.Time
	if lasts != "" {
		d, err := time.ParseDuration(lasts)
		if err != nil {
			return fmt.Errorf("duration of fault %q: %w", kind, err)
		}
		until = s.now().Add(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[Kind(kind)] = until
	s.notify()
	return nil
}

// Clear takes a fault back, or all of them if the kind is empty.
func (s *Set) Clear(kind Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == "" {
		clear(s.until)
	}
	delete(s.until, kind)
	s.notify()
}

func (s *Set) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Active tells whether a fault is in force.
func (s *Set) Active(kind Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.until[kind]
	return ok && (until.IsZero() || s.now().Before(until))
}

// Wait returns once a fault is over, or with the context's error.
func (s *Set) Wait(ctx context.Context, kind Kind) error {
	for s.Active(kind) {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		timer := time.NewTimer(100 * time.Millisecond)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
	return nil
}

// Wrap adds the endpoint /dorissim/fault and lets Hang and Refuse spoil all other requests.
func (s *Set) Wrap(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/dorissim/fault", s.endpoint)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.Active(Refuse) {
			panic(http.ErrAbortHandler) // cuts the connection without an answer
		}
		if err := s.Wait(r.Context(), Hang); err != nil {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	return mux
}

// endpoint: POST ?kind=…[&for=…] adds, DELETE [?kind=…] takes back, GET lists.
func (s *Set) endpoint(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch r.Method {
	case http.MethodPost:
		if err := s.add(query.Get("kind"), query.Get("for")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	case http.MethodDelete:
		s.Clear(Kind(query.Get("kind")))
	}
	active := []Kind{}
	for _, k := range kinds {
		if s.Active(k) {
			active = append(active, k)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string][]Kind{"active": active})
}

// Accept hands connections of an address to serve until the context ends. While Refuse is in force nobody listens.
func (s *Set) Accept(ctx context.Context, listener net.Listener, serve func(net.Conn)) error {
	addr := listener.Addr().String()
	for {
		s.acceptUntilRefused(ctx, listener, serve)
		_ = s.Wait(ctx, Refuse) // fails only with the context
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		var err error
		if listener, err = net.Listen("tcp", addr); err != nil {
			return fmt.Errorf("listen again: %w", err)
		}
	}
}

func (s *Set) acceptUntilRefused(ctx context.Context, listener net.Listener, serve func(net.Conn)) {
	done := make(chan struct{})
	defer close(done)
	defer func() { _ = listener.Close() }() // before the address is listened on again
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		defer func() { _ = listener.Close() }()
		for !s.Active(Refuse) {
			select {
			case <-ctx.Done():
				return
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}
