package audit

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Filter selects entries; an empty field selects all.
type Filter struct {
	Client     string   // prefix of the user agent, or the user's whole name
	Namespaces []string // any of them
	Verbs      []string // any of them
	// ExceptResources are left out, written as Key.Resource writes them:
	// "events", "leases".
	ExceptResources []string
}

// Key is what requests are counted by.
type Key struct {
	Client   string // first word of the user agent, or the user where there is none
	Verb     string // "watch" is a key of its own
	Resource string // resource, or resource/subresource
}

// Matches tells whether the filter selects the entry.
func (f Filter) Matches(e Entry) bool {
	switch {
	case f.Client != "" && e.User != f.Client && !strings.HasPrefix(e.UserAgent, f.Client):
		return false
	case len(f.Namespaces) > 0 && !slices.Contains(f.Namespaces, e.Namespace):
		return false
	case len(f.Verbs) > 0 && !slices.Contains(f.Verbs, e.Verb):
		return false
	}
	return !slices.Contains(f.ExceptResources, e.Resource) && !slices.Contains(f.ExceptResources, e.Key().Resource)
}

// Key returns the key that the entry is counted under.
func (e Entry) Key() Key {
	client, _, _ := strings.Cut(e.UserAgent, " ")
	if client == "" {
		client = e.User
	}
	resource := e.Resource
	switch {
	case resource == "":
		resource, _, _ = strings.Cut(e.URI, "?")
	case e.Subresource != "":
		resource += "/" + e.Subresource
	}
	return Key{Client: client, Verb: e.Verb, Resource: resource}
}

// Writes are the verbs that change objects.
func Writes() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection"}
}

// Reads are the verbs that read once; a watch is not among them.
func Reads() []string { return []string{"get", "list"} }

// Counts are numbers of requests.
type Counts map[Key]int

// Count counts the entries that the filter selects.
func Count(entries []Entry, f Filter) Counts {
	counts := Counts{}
	for _, e := range entries {
		if f.Matches(e) {
			counts[e.Key()]++
		}
	}
	return counts
}

// Total is the sum of the counts of the verbs, or of all verbs when none is named.
func (c Counts) Total(verbs ...string) int {
	total := 0
	for key, n := range c {
		if len(verbs) == 0 || slices.Contains(verbs, key.Verb) {
			total += n
		}
	}
	return total
}

// String lists the counts, one a line, the largest first.
func (c Counts) String() string {
	keys := make([]Key, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		if c[a] != c[b] {
			return c[a] > c[b]
		}
		return a.Client+" "+a.Verb+" "+a.Resource < b.Client+" "+b.Verb+" "+b.Resource
	})
	var b strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&b, "%6d  %-16s %-40s %s\n", c[key], key.Verb, key.Resource, key.Client)
	}
	return b.String()
}
