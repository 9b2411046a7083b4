package setting

import (
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
)

// Input is what is known of one node and of the file that it shall run by.
type Input struct {
	// Reported is what the node says of itself now, all settings of it.
	Reported []Item
	// Wanted are the assignments of the file as it is now.
	Wanted map[string]string
	// Started are those of the file that the running process read at its start.
	// Nil means that it is not known; then every wanted setting counts as
	// changed.
	Started map[string]string
	// Touched are the keys that were set on the running process since, by us.
	// They are ours to put right even where the file is again what it was.
	Touched []string
	// Defaults are values that hold where the file says nothing, as far as they
	// are known: say what the node reported before a key was set on it.
	Defaults map[string]string
	// Env finds what the process has in its environment; nil finds nothing.
	Env conf.Lookup
}

// Reason says why a change cannot be made while the node runs, or why the node
// must not be given it at all.
type Reason string

// The reasons.
const (
	// Immutable: the node reads it at its start only.
	Immutable Reason = "the node reads this setting at its start only"
	// Unknown: the node does not list it, so it cannot be asked to change it.
	Unknown Reason = "the node does not list this setting"
	// Script: the start script reads it, not the node.
	Script Reason = "the start script exports this setting before the node starts"
	// Placeholder: the value is made from an environment variable.
	Placeholder Reason = "the value refers to an environment variable of the process that is not known here"
	// Masked: whether it was applied could not be told.
	Masked Reason = "the node does not show this setting's value, so a change of it could not be confirmed"
	// Removed: no value to set is known.
	Removed Reason = "the setting was taken out of the file, and the default that holds then is not known"
	// RemovedImmutable is Removed with a known default.
	RemovedImmutable Reason = "the setting was taken out of the file, and the node reads its default at its start only"
	// Unfit: the node would refuse it, and would not start with it.
	Unfit Reason = "the value is not of the setting's type; the node would not start with it"
)

// Change is one setting that the node has to take on.
type Change struct {
	Key string
	// Value to set on the node. It is in no text that this package makes.
	Value string
	// Default tells that the file no longer names the key and Value is the
	// default.
	Default bool
	// MasterOnly as the node reports it.
	MasterOnly bool
	// Reason is empty for changes that can be made while the node runs.
	Reason Reason
}

// String tells the change without its value.
func (c Change) String() string {
	if c.Reason == "" {
		return c.Key
	}
	return fmt.Sprintf("%s: %s", c.Key, c.Reason)
}

// GoString tells the change without its value.
func (c Change) GoString() string { return c.String() }

// LogValue tells the change without its value.
func (c Change) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Plan is what a file asks of a node. Each key is in one of the lists, and the
// lists are in the order of their keys.
type Plan struct {
	// Same are the keys about which there is nothing to do.
	Same []string
	// Runtime are the keys that the file says nothing new about and that have
	// another value on the node: somebody changed them there. They are left alone.
	Runtime []string
	// Live can be set while the node runs.
	Live []Change
	// Restart takes effect at the next start only.
	Restart []Change
	// Invalid would keep the node from starting, and is refused when set.
	Invalid []Change
}

// Values returns the assignments of a frontend's file, which is one of Java
// properties. Of equal keys the last counts; case matters, as it does to Doris.
func Values(f *conf.File) map[string]string {
	values := map[string]string{}
	for _, e := range f.Entries() {
		values[e.Key] = strings.Trim(e.Value, " \t\f\r\n")
	}
	return values
}

// BackendValues returns the assignments of a backend's file as the backend reads
// them, which is simpler: one line each, cut at the first equals sign, without
// escapes, continuations or other separators.
func BackendValues(text []byte) map[string]string {
	values := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.Trim(line, " \t\v\f\r")
		key, value, _ := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); key != "" && line[0] != '#' {
			values[key] = strings.TrimSpace(value)
		}
	}
	return values
}

// Of compares what a node reports with the file it shall run by.
func Of(in Input) Plan {
	keys := map[string]bool{}
	for _, m := range []map[string]string{in.Wanted, in.Started} {
		for k := range m {
			keys[k] = true
		}
	}
	for _, k := range in.Touched {
		keys[k] = true
	}
	var p Plan
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		item, listed := Find(in.Reported, key)
		v, d := in.judge(key, item, listed)
		c := Change{Key: key, Value: d.value, Default: d.isDefault, MasterOnly: item.MasterOnly, Reason: d.reason}
		switch v {
		case same:
			p.Same = append(p.Same, key)
		case runtime:
			p.Runtime = append(p.Runtime, key)
		case live:
			p.Live = append(p.Live, c)
		case restart:
			p.Restart = append(p.Restart, c)
		case invalid:
			p.Invalid = append(p.Invalid, c)
		}
	}
	return p
}

// verdict is the list of a Plan that a key belongs to.
type verdict int

const (
	same verdict = iota
	runtime
	live
	restart
	invalid
)

// detail is what comes with a verdict.
type detail struct {
	value     string
	isDefault bool
	reason    Reason
}

// scriptKey are the names that start scripts export as environment variables.
var scriptKey = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

func (in Input) judge(key string, item Item, listed bool) (verdict, detail) {
	raw, wanted := in.Wanted[key]
	wanted = wanted && says(item, raw)
	if !in.ours(key) && (!listed || item.Hidden() || !wanted) {
		return same, detail{}
	}
	if wanted {
		return in.judgeWanted(key, raw, item, listed)
	}
	if was, had := in.Started[key]; !slices.Contains(in.Touched, key) && (!had || !says(item, was)) {
		return same, detail{} // neither file says anything
	}
	return in.judgeRemoved(key, item, listed)
}

// says tells whether an assignment means anything. One without a value leaves
// the default, except for a backend's texts.
func says(item Item, value string) bool { return value != "" || item.Type == "std::string" }

// judgeWanted is about a key that the file gives a value.
func (in Input) judgeWanted(key, raw string, item Item, listed bool) (verdict, detail) {
	value, known := in.expand(raw)
	switch {
	case !listed && scriptKey.MatchString(key):
		return restart, detail{value: value, reason: Script}
	case !listed:
		return restart, detail{value: value, reason: Unknown}
	case !known && !in.ours(key):
		return same, detail{}
	case !known:
		return restart, detail{value: raw, reason: Placeholder}
	case item.Hidden():
		return restart, detail{value: value, reason: Masked}
	case Same(item.Type, item.Value, value):
		return same, detail{}
	}
	return in.judgeDifferent(key, value, item)
}

// judgeDifferent is about a key that the node reports another value of.
func (in Input) judgeDifferent(key, value string, item Item) (verdict, detail) {
	switch {
	case !in.ours(key):
		return runtime, detail{}
	case !Fits(item.Type, value):
		return invalid, detail{value: value, reason: Unfit}
	case !settable(item):
		return restart, detail{value: value, reason: Immutable}
	}
	return live, detail{value: value}
}

// judgeRemoved is about a key that the file had, or that was set on the node,
// and that the file does not name now.
func (in Input) judgeRemoved(key string, item Item, listed bool) (verdict, detail) {
	value, known := in.Defaults[key]
	switch {
	case !listed, !known, item.Hidden():
		return restart, detail{isDefault: true, reason: Removed}
	case Same(item.Type, item.Value, value):
		return same, detail{}
	case !settable(item):
		return restart, detail{value: value, isDefault: true, reason: RemovedImmutable}
	}
	return live, detail{value: value, isDefault: true}
}

// ours tells the keys that the file says something new about, or that we set.
func (in Input) ours(key string) bool {
	if in.Started == nil || slices.Contains(in.Touched, key) {
		return true
	}
	was, had := in.Started[key]
	is, has := in.Wanted[key]
	return had != has || was != is
}

// expand replaces placeholders as Doris does when it starts.
func (in Input) expand(raw string) (string, bool) {
	env := in.Env
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	value, err := conf.ExpandText(raw, env)
	return value, err == nil
}

// settable tells whether the node takes a new value. A backend never changes a
// list, whatever it says of it.
func settable(i Item) bool {
	return i.Mutable && !strings.HasPrefix(i.Type, "std::vector")
}
