package diff

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memoSize bounds each of the two generations of a memo.
const memoSize = 4096

// question is a digest of everything that a comparison depends on.
type question [sha256.Size]byte

// memo remembers comparisons that found no difference. Typing and merging a
// StatefulSet costs milliseconds; in a converged world the same two objects are
// compared at every wake-up, and the answer is known by their content alone.
type memo struct {
	mu       sync.Mutex
	now, old map[question]struct{}
}

// ask returns the question, and whether its answer is known to be "nothing".
// The question is nil when it cannot be asked.
func (m *memo) ask(wanted, live client.Object, manager string) (*question, bool) {
	return m.askAny(manager, wanted.GetObjectKind().GroupVersionKind(), wanted, live)
}

func (m *memo) askAny(parts ...any) (*question, bool) {
	h := sha256.New()
	enc := json.NewEncoder(h) // ends each value with a newline, so that none runs into the next
	for _, part := range parts {
		if err := enc.Encode(part); err != nil {
			return nil, false
		}
	}
	var q question
	h.Sum(q[:0])
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.now[q]; known {
		return &q, true
	}
	if _, known := m.old[q]; known {
		m.keep(q)
		return &q, true
	}
	return &q, false
}

// nothing remembers that a question was answered with no difference.
func (m *memo) nothing(q *question) {
	if q == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(*q)
}

func (m *memo) keep(q question) {
	if len(m.now) >= memoSize {
		m.old, m.now = m.now, nil
	}
	if m.now == nil {
		m.now = make(map[question]struct{}, memoSize/16)
	}
	m.now[q] = struct{}{}
}
