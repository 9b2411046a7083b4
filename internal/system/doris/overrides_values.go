package doris

import (
	"hash/maphash"
	"maps"
	"time"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/internal/system/doris/overrides"
)

// A frontend truncates the file of its settings and writes it again. One that ends just
// then may come back with half a value. What it had is known by sums of values in the
// memory of this process alone, with a seed of its own: nothing of a value is recorded.

// heldValues are sums of the values of a node, by setting.
type heldValues struct {
	start string
	at    time.Time
	// before are those that the container before had last, first those that this one was
	// heard with at first, and now those that it has.
	before, first, now map[string]uint64
}

// heldFor is how long values of a node that is not heard are remembered.
const heldFor = time.Hour

// mayBeTorn tells whether the file of a node may be cut short.
func mayBeTorn(kind dorisv1.ComponentType) bool { return kind == dorisv1.ComponentFE }

// sums are those of the settings that can be changed in a running node.
func (a *asker) sums(items []setting.Item) map[string]uint64 {
	out := map[string]uint64{}
	for _, item := range items {
		if item.Mutable && !item.Hidden() {
			out[item.Key] = maphash.String(a.seed, item.Value)
		}
	}
	return out
}

// heard is what is held of a node after it has answered.
func (h heldValues) heard(start string, at time.Time, sums map[string]uint64) heldValues {
	if h.start == start {
		h.at, h.now = at, sums
		return h
	}
	return heldValues{start: start, at: at, before: h.now, first: sums, now: sums}
}

// mark tells of each setting whether it came with another value, and was given another one
// since.
func (h heldValues) mark(settings []overrides.Setting) {
	for i := range settings {
		key := settings[i].Key
		before, known := h.before[key]
		first, had := h.first[key]
		settings[i].Other = known && had && before != first
		settings[i].Again = had && h.now[key] != first
	}
}

// stillHeld are the values of nodes that were heard not long ago.
func (r pollRound) stillHeld(now time.Time) map[string]heldValues {
	out := maps.Clone(r.held)
	if out == nil {
		return map[string]heldValues{}
	}
	maps.DeleteFunc(out, func(_ string, h heldValues) bool { return now.Sub(h.at) > heldFor })
	return out
}
