// Package overrides tells which settings of running nodes were changed there, from what
// the nodes report of themselves time and again. Everything in it is pure, and nothing
// that it returns or records holds a value.
package overrides

import (
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
	// Other tells that the container came with another value than the one before had last,
	// and Again that it was given another one since. Both are false where nobody knows; they
	// are told of nodes whose file may be cut short.
	Other, Again bool
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
	// Before are those of the image before, of settings of which it is not known yet what
	// holds with this one. They count for settings that were changed already, and where
	// the nodes do not agree.
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
	// Other has those that are changed, and are otherwise than before since another
	// container runs, with the time that this was seen.
	Other map[string]string `json:"other,omitempty"`
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

// Losses are what nodes have lost.
type Losses struct {
	// Lost are the nodes that lost settings, with those, and Other the nodes that came back
	// with other values of changed settings; both in order.
	Lost, Other []string
	// Until is when the last of it was seen.
	Until time.Time
}

// Losses are what nodes have lost. What was seen until a person knew of it is left out.
func (r Record) Losses(known time.Time) Losses {
	var out Losses
	tell := func(pod string, seen map[string]string) []string {
		var keys []string
		for key, since := range seen {
			at, err := time.Parse(time.RFC3339, since)
			if err == nil && !at.After(known) {
				continue
			}
			keys = append(keys, key)
			if at.After(out.Until) {
				out.Until = at
			}
		}
		if len(keys) == 0 {
			return nil
		}
		slices.Sort(keys)
		return []string{pod + ": " + strings.Join(keys, ", ")}
	}
	for _, pod := range slices.Sorted(maps.Keys(r.Nodes)) {
		out.Lost = append(out.Lost, tell(pod, r.Nodes[pod].Lost)...)
		out.Other = append(out.Other, tell(pod, r.Nodes[pod].Other)...)
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

// Component is what has to be known of a component to make something of what its nodes say.
type Component struct {
	// Image is what all nodes that are asked run.
	Image string
	// Nodes is how many nodes it has, whether they answer or not. Its Pods are numbered.
	Nodes int
	// Exists tells which Pods there are, or shall be.
	Exists func(pod string) bool
}

// Fold adds to a record what the nodes of a component said.
func Fold(was Record, c Component, polls []Poll) Record {
	out := Record{Image: c.Image, Nodes: map[string]Node{}, Checks: map[string]string{}, Before: map[string]string{}, File: was.File}
	maps.Copy(out.Before, was.Before)
	if was.Image == c.Image {
		maps.Copy(out.Checks, was.Checks)
	} else {
		maps.Copy(out.Before, was.Checks)
	}
	for pod, node := range was.Nodes {
		if c.Exists(pod) {
			out.Nodes[pod] = node
		}
	}
	maps.Copy(out.Checks, out.votes(c.Nodes, polls))
	for _, poll := range polls {
		if c.Exists(poll.Pod) {
			out.Nodes[poll.Pod] = out.Nodes[poll.Pod].heard(poll, out.check)
		}
	}
	return out.tidy(polls)
}

// check is that of the value which a setting has where no file says anything. That of
// another image counts for a node on which the setting was changed already: if it
// restarts and has that value it has lost the change. Of other nodes it may be that the
// image has another value, and nothing is said until that is known.
func (r Record) check(key string, changed bool) string {
	if check := r.Checks[key]; check != "" || !changed {
		return check
	}
	return r.Before[key]
}

// vote is what nodes say of a setting of which it is not known what holds.
type vote struct {
	// for each check the nodes that have it
	count map[string]int
	// cast are the nodes that said something, and changed those on which the setting is
	// known to be changed: what they have says nothing of the others.
	cast, changed int
}

// votes finds the checks that are not known yet.
func (r Record) votes(nodes int, polls []Poll) map[string]string {
	all := map[string]*vote{}
	for _, poll := range polls {
		for _, s := range poll.Settings {
			if _, has := r.Checks[s.Key]; has || s.InFile || s.Unclear {
				continue
			}
			v := all[s.Key]
			if v == nil {
				v = &vote{count: map[string]int{}}
				all[s.Key] = v
			}
			if _, changed := r.Nodes[poll.Pod].Changed[s.Key]; changed && s.Check != r.Before[s.Key] {
				v.changed++
				continue
			}
			v.cast++
			v.count[s.Check]++
		}
	}
	out := map[string]string{}
	for key, v := range all {
		if check := v.outcome(nodes-v.changed, r.Before[key]); check != "" {
			out[key] = check
		}
	}
	return out
}

// outcome is the check that holds, of as many nodes as could say one; empty while that
// is open. Before is the one of the image before, which counts as soon as one node still
// has it. Where none has it, most nodes have to agree that there is another one now; if
// they do not, each of them has a change of its own.
func (v vote) outcome(nodes int, before string) string {
	most := ""
	for _, check := range slices.Sorted(maps.Keys(v.count)) {
		if v.count[check] > v.count[most] {
			most = check
		}
	}
	switch {
	case before == "" && 2*v.cast >= nodes:
		return most
	case before == "":
		return ""
	case v.count[before] > 0:
		return before
	case 2*v.count[most] > nodes:
		return most
	case v.cast >= nodes:
		return before
	}
	return ""
}

// tidy notes which settings the file names, and drops the checks that say nothing any more.
// One of a setting that the file names now stays: by it a node that had a change before
// is known to have taken it from the file.
func (r Record) tidy(polls []Poll) Record {
	named, there := map[string]bool{}, map[string]bool{}
	for _, poll := range polls {
		for _, s := range poll.Settings {
			there[s.Key] = true
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
		maps.DeleteFunc(r.Before, func(key, _ string) bool { return !there[key] })
	}
	for key := range r.Checks {
		delete(r.Before, key)
	}
	return r
}

// heard is what is remembered of a node after it was heard.
func (n Node) heard(poll Poll, check func(key string, changed bool) string) Node {
	out := Node{Start: poll.Start, Changed: map[string]string{}}
	settled := map[string]bool{} // by the file, which did not name them before
	for _, s := range poll.Settings {
		since, before := n.Changed[s.Key]
		is, known := s.changed(check(s.Key, before))
		switch {
		case before && (is || !known):
			out.Changed[s.Key] = since
		case is:
			out.Changed[s.Key] = stamp(poll.At)
		case known && s.InFile && check(s.Key, true) != "":
			settled[s.Key] = true
		}
	}
	out.Lost = n.lost(poll)
	maps.DeleteFunc(out.Lost, func(key, _ string) bool {
		_, there := out.Changed[key]
		return there || settled[key]
	})
	out.Other = n.other(poll, out.Changed)
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

// other are the settings that were known to be changed, and are otherwise than before
// since another container runs, until they are set again there.
func (n Node) other(poll Poll, changed map[string]string) map[string]string {
	out, restarted := map[string]string{}, n.Start != "" && n.Start != poll.Start
	for _, s := range poll.Settings {
		if _, is := changed[s.Key]; !is {
			continue
		}
		since, noted := n.Other[s.Key]
		if at, err := time.Parse(time.RFC3339, since); noted && (err != nil || poll.At.Sub(at) >= remembers) {
			continue
		}
		_, before := n.Changed[s.Key]
		switch {
		case s.Again:
		case noted:
			out[s.Key] = since
		case restarted && before && s.Other:
			out[s.Key] = stamp(poll.At)
		}
	}
	return out
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
