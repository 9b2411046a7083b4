package apply

import (
	"crypto/sha256"
	"time"
)

// RefusedError says that the API server refused a write on which nothing else
// depends. It is asked again when the object is another one, or after a while: what
// the refusal came from may be mended elsewhere.
type RefusedError struct {
	Err error
	// Sent tells that the request was made now; it is the last answer otherwise.
	Sent bool
	// RetryAfter is when the next request is due.
	RetryAfter time.Duration
}

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the answer of the API server.
func (e *RefusedError) Unwrap() error { return e.Err }

// refusedPatch is a patch that was refused: what it said, of which version of the
// object, when, and the answer.
type refusedPatch struct {
	intent [sha256.Size]byte
	live   string
	at     time.Time
	err    error
}

// refuse remembers that a patch was refused.
func (l *Ledger) refuse(key sentKey, intent [sha256.Size]byte, live string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for k, r := range l.no {
		if now.Sub(r.at) >= longestPause {
			delete(l.no, k)
		}
	}
	l.no[key] = refusedPatch{intent: intent, live: live, at: now, err: err}
	return &RefusedError{Err: err, Sent: true, RetryAfter: longestPause}
}

// refused is the answer to a patch that was refused lately, nil when it is worth
// another attempt.
func (l *Ledger) refused(key sentKey, intent [sha256.Size]byte, live string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, known := l.no[key]
	if !known || r.intent != intent || r.live != live {
		return nil
	}
	if wait := longestPause - l.now().Sub(r.at); wait > 0 {
		return &RefusedError{Err: r.err, RetryAfter: wait}
	}
	return nil
}
