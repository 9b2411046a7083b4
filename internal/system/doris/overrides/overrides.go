// Package overrides tells which settings of running nodes were changed there, from what
// the nodes report of themselves time and again. Everything in it is pure, and nothing
// that it returns or records holds a value.
package overrides

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Setting is what one poll tells of one setting of a node that can be changed while the
// node runs.
type Setting struct {
	Key string
	// InFile tells that the node's file says what it shall be, and Changed that it is
	// something else.
	InFile, Changed bool
	// Check is that of the value where no file says anything.
	Check string
	// Unclear tells that nothing can be said about the value now.
	Unclear bool
}

// changed tells whether somebody changed the setting, as far as that is known; check is
// that of the value which holds where no file says anything, or empty.
func (s Setting) changed(check string) (is, known bool) {
	switch {
	case s.Unclear, !s.InFile && check == "":
		return false, false
	case s.InFile:
		return s.Changed, true
	}
	return s.Check != check, true
}

// Poll is what one node said.
type Poll struct {
	Pod string
	// Start is the container that answered.
	Start    string
	At       time.Time
	Settings []Setting
}

// Record is what is remembered of a component.
type Record struct {
	// Image is that of which the checks are.
	Image string `json:"image"`
	// Nodes are those that were heard, by Pod.
	Nodes map[string]Node `json:"nodes,omitempty"`
	// Checks are those of the values that hold where no file says anything.
	Checks map[string]string `json:"checks,omitempty"`
	// Before are those of the image before, of settings that were changed. They count
	// until a node that does not have the change tells what holds now.
	Before map[string]string `json:"before,omitempty"`
	// File are the settings that the file names and that can be changed in a running node.
	File []string `json:"file,omitempty"`
}

// Node is what is remembered of a node.
type Node struct {
	// Start is the container that was heard last.
	Start string `json:"start"`
	// Changed has the settings that were changed there, and since when that is known.
	Changed map[string]string `json:"changed,omitempty"`
	// Lost has those that were changed, and are not any more since another container
	// runs, with the time that this was seen.
	Lost map[string]string `json:"lost,omitempty"`
}

// remembers is how long it is said that settings were lost.
const remembers = 24 * time.Hour

// checkLength is how many bytes of a digest are kept: enough to see nearly every change,
// and too few to find out by guessing a value that can be many things.
const checkLength = 2

// Check is a check of a value.
func Check(key, value string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", key, value))
	return hex.EncodeToString(sum[:checkLength])
}

// Read reads a record; an unreadable one is empty.
func Read(text string) Record {
	var r Record
	if json.Unmarshal([]byte(text), &r) != nil {
		return Record{}
	}
	return r
}

// String is the record as Read reads it.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic("record of overrides: " + err.Error()) // strings can be encoded
	}
	return string(text)
}

// Keys are the settings that are changed on some node, in order.
func (r Record) Keys() []string { return r.named(func(n Node) map[string]string { return n.Changed }) }

// Lost are the nodes that lost settings, with those, in order.
func (r Record) Lost() []string {
	var out []string
	for _, pod := range slices.Sorted(maps.Keys(r.Nodes)) {
		if keys := slices.Sorted(maps.Keys(r.Nodes[pod].Lost)); len(keys) > 0 {
			out = append(out, pod+": "+strings.Join(keys, ", "))
		}
	}
	return out
}

// Changed counts the nodes on which something is changed.
func (r Record) Changed() int {
	n := 0
	for _, node := range r.Nodes {
		if len(node.Changed) > 0 {
			n++
		}
	}
	return n
}

func (r Record) named(of func(Node) map[string]string) []string {
	keys := map[string]bool{}
	for _, node := range r.Nodes {
		for key := range of(node) {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// Fold adds to a record what the nodes of a component said, which all run an image.
// Exists tells which Pods there are, or shall be.
func Fold(was Record, image string, polls []Poll, exists func(pod string) bool) Record {
	out := Record{Image: image, Nodes: map[string]Node{}, Checks: map[string]string{}, Before: map[string]string{}, File: was.File}
	if was.Image == image {
		maps.Copy(out.Checks, was.Checks)
		maps.Copy(out.Before, was.Before)
	} else {
		out.Before = was.ofChanged()
	}
	for pod, node := range was.Nodes {
		if exists(pod) {
			out.Nodes[pod] = node
		}
	}
	maps.Copy(out.Checks, out.votes(polls))
	for _, poll := range polls {
		if exists(poll.Pod) {
			out.Nodes[poll.Pod] = out.Nodes[poll.Pod].heard(poll, out.check)
		}
	}
	return out.tidy(polls)
}

// check is that of the value which a setting has where no file says anything.
func (r Record) check(key string) string { return cmp.Or(r.Checks[key], r.Before[key]) }

// ofChanged are the checks of the settings that are changed on some node. They count for
// another image too, until that is known to have another value: who restarts with it and
// has the old one has lost the change.
func (r Record) ofChanged() map[string]string {
	out := map[string]string{}
	for _, key := range r.Keys() {
		if check := r.check(key); check != "" {
			out[key] = check
		}
	}
	return out
}

// votes finds the checks that are not known yet: what most nodes say, of those on which
// the setting is not changed.
func (r Record) votes(polls []Poll) map[string]string {
	count := map[string]map[string]int{}
	for _, poll := range polls {
		for _, s := range poll.Settings {
			_, changed := r.Nodes[poll.Pod].Changed[s.Key]
			if _, has := r.Checks[s.Key]; has || s.InFile || s.Unclear || changed && s.Check != r.Before[s.Key] {
				continue
			}
			if count[s.Key] == nil {
				count[s.Key] = map[string]int{}
			}
			count[s.Key][s.Check]++
		}
	}
	out := map[string]string{}
	for key, votes := range count {
		for _, check := range slices.Sorted(maps.Keys(votes)) {
			if votes[check] > votes[out[key]] {
				out[key] = check
			}
		}
	}
	return out
}

// tidy notes which settings the file names, and drops the checks that say nothing any more.
// One of a setting that the file names now stays: by it a node that had a change before
// is known to have taken it from the file.
func (r Record) tidy(polls []Poll) Record {
	named := map[string]bool{}
	for _, poll := range polls {
		for _, s := range poll.Settings {
			if s.InFile {
				named[s.Key] = true
			}
			if s.InFile && s.Changed && !s.Unclear {
				delete(r.Checks, s.Key)
				delete(r.Before, s.Key)
			}
		}
	}
	if len(polls) > 0 {
		r.File = slices.Sorted(maps.Keys(named))
	}
	for key := range r.Checks {
		delete(r.Before, key)
	}
	return r
}

// heard is what is remembered of a node after it was heard.
func (n Node) heard(poll Poll, check func(key string) string) Node {
	out := Node{Start: poll.Start, Changed: map[string]string{}}
	settled := map[string]bool{} // by the file, which did not name them before
	for _, s := range poll.Settings {
		since, before := n.Changed[s.Key]
		is, known := s.changed(check(s.Key))
		switch {
		case before && (is || !known):
			out.Changed[s.Key] = since
		case is:
			out.Changed[s.Key] = stamp(poll.At)
		case known && s.InFile && check(s.Key) != "":
			settled[s.Key] = true
		}
	}
	out.Lost = n.lost(poll)
	maps.DeleteFunc(out.Lost, func(key, _ string) bool {
		_, there := out.Changed[key]
		return there || settled[key]
	})
	return out
}

// lost are the settings that a node may have lost: those that it was said to have lost,
// and all that were changed in it if another container answers.
func (n Node) lost(poll Poll) map[string]string {
	out := map[string]string{}
	for key, since := range n.Lost {
		if at, err := time.Parse(time.RFC3339, since); err == nil && poll.At.Sub(at) < remembers {
			out[key] = since
		}
	}
	if n.Start != "" && n.Start != poll.Start {
		for key := range n.Changed {
			out[key] = stamp(poll.At)
		}
	}
	return out
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
