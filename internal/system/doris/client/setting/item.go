// Package setting decides about single settings of a running Doris node: whether
// a value is the one that was asked for, and what a changed configuration file
// asks of the node.
//
// Everything here is pure. Values may be secrets, so they are in no text that
// this package makes: not in reasons, and not where a value of its types is
// printed.
package setting

import (
	"fmt"
	"log/slog"
	"strings"
)

// Item is one setting as a node reports it.
type Item struct {
	// Key is the name that the node shows.
	Key string
	// Value in force, as text in the node's own spelling.
	Value string
	// Type as the node names it: a Java type of a frontend, a C++ type of a
	// backend, or empty where the node does not say.
	Type string
	// Mutable tells that the node lets the value be changed while it runs.
	Mutable bool
	// MasterOnly tells that only the frontend that is master acts on it.
	MasterOnly bool
	// Comment is the node's own description.
	Comment string
}

// String names the setting without its value.
func (i Item) String() string {
	return fmt.Sprintf("%s (%s, mutable %t)", i.Key, i.Type, i.Mutable)
}

// GoString names the setting without its value.
func (i Item) GoString() string { return i.String() }

// LogValue names the setting without its value.
func (i Item) LogValue() slog.Value { return slog.StringValue(i.String()) }

// mask is what newer frontends show in place of a value that they keep to
// themselves.
const mask = "********"

// Hidden tells that the node does not show the value of this setting, so that
// nothing can be said about it.
func (i Item) Hidden() bool { return i.Value == mask }

// prefixes are what frontends put before the names of settings that are not, or
// no longer, meant for everybody. They take the name with and without it, and
// show it with it.
var prefixes = []string{"experimental_", "deprecated_"}

// bare returns the name without such a prefix.
func bare(key string) string {
	for _, p := range prefixes {
		if rest, found := strings.CutPrefix(key, p); found {
			return rest
		}
	}
	return key
}

// Find returns the setting of a name, which may have a prefix that the node
// shows and the file has not, or the reverse.
func Find(items []Item, key string) (Item, bool) {
	for _, i := range items {
		if i.Key == key {
			return i, true
		}
	}
	for _, i := range items {
		if bare(i.Key) == bare(key) {
			return i, true
		}
	}
	return Item{}, false
}
