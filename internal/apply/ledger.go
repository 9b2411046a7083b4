package apply

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// ContestedError says that what we apply does not last: a webhook rewrites it,
// or another writer puts it back. Nothing was written now.
type ContestedError struct {
	Object plan.Ref
	// What of the object is contested.
	What string
	// RetryAfter is when another attempt is due.
	RetryAfter time.Duration
}

func (e *ContestedError) Error() string {
	return fmt.Sprintf("%s: somebody else keeps changing what the operator sets (%s)", e.Object, e.What)
}

// Ledger remembers the last apply of each object, so that one intent is not
// sent again for the same live version (but to see, after a long pause, whether
// what rewrites it is gone), and less and less often while another writer undoes
// it. It is safe for concurrent use.
type Ledger struct {
	now func() time.Time

	mu   sync.Mutex
	sent map[types.NamespacedName]map[sentKey]sent // by owner
	// no is what was refused last of patches that stand apart.
	no map[sentKey]refusedPatch
}

// NewLedger returns an empty Ledger.
func NewLedger(now func() time.Time) *Ledger {
	return &Ledger{now: now, sent: map[types.NamespacedName]map[sentKey]sent{}, no: map[sentKey]refusedPatch{}}
}

type sentKey struct {
	kind    schema.GroupVersionKind
	name    types.NamespacedName
	manager string
}

// sent is one apply: what it said, on which version it was decided and which
// version came of it, when, and how many times in a row it was said again.
type sent struct {
	intent        [sha256.Size]byte
	before, after string
	at            time.Time
	again         int
}

const (
	// promptly is how many times an intent that was undone is sent again at once.
	promptly = 2
	// firstPause and longestPause bound the pauses after that.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// pause is how long to wait before an intent is sent again.
func (s sent) pause() time.Duration {
	if s.again < promptly {
		return 0
	}
	p := firstPause
	for range s.again - promptly {
		if p *= 2; p >= longestPause {
			return longestPause
		}
	}
	return p
}

// check tells whether the intent may be sent now; the error is a
// *ContestedError when it may not.
func (l *Ledger) check(owner types.NamespacedName, key sentKey, intent [sha256.Size]byte, step plan.Apply) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.sent[owner][key]
	if !ok || s.intent != intent {
		return nil
	}
	pause := s.pause()
	if step.Live != "" && (s.before == step.Live || s.after == step.Live) {
		pause = longestPause
	}
	if wait := pause - l.now().Sub(s.at); wait > 0 {
		return &ContestedError{Object: step.Target(), What: step.Reason, RetryAfter: wait}
	}
	return nil
}

// record remembers an apply that was answered with the version after.
func (l *Ledger) record(owner types.NamespacedName, key sentKey, intent [sha256.Size]byte, before, after string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.sent[owner]
	if of == nil {
		of = map[sentKey]sent{}
		l.sent[owner] = of
	}
	s := sent{intent: intent, before: before, after: after, at: l.now()}
	if last, ok := of[key]; ok && last.intent == intent && s.at.Sub(last.at) < 2*longestPause {
		s.again = last.again + 1
	}
	of[key] = s
}

// Forget drops what is remembered for an owner that is gone.
func (l *Ledger) Forget(owner types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sent, owner)
}

// Request is one server-side apply as it is sent.
type Request struct {
	Body []byte
	Kind schema.GroupVersionKind
	Step plan.Apply

	owner  types.NamespacedName
	key    sentKey
	intent [sha256.Size]byte
}

// Done records that the request was answered with this version of the object.
func (l *Ledger) Done(r Request, version string) {
	l.record(r.owner, r.key, r.intent, r.Step.Live, version)
}
