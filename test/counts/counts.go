// Package counts tells tests what a client has cost the API server, out of
// the audit log, and when it has come to rest.
package counts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
)

// Client is one client of the API server, known by how its user agent starts.
type Client struct {
	Log   *audit.Log
	Agent string
}

// Tally is what a client's requests come to. Each request is in one number.
type Tally struct {
	// ObjectWrites and StatusWrites change objects; Events are told apart, as
	// is the leader's lease.
	ObjectWrites, StatusWrites, Events, Leases int
	// Reads are gets and lists, Watches the watches that began.
	Reads, Watches int
	// Refused counts those of all the above that the API server did not grant,
	// by code, verb and resource: "404 get services".
	Refused map[string]int
	// ByKey has every request by verb and resource.
	ByKey audit.Counts
}

// Writes are the object and status writes together.
func (t Tally) Writes() int { return t.ObjectWrites + t.StatusWrites }

// Restless is what an idle client makes none of: everything but watches and
// the lease.
func (t Tally) Restless() int { return t.Writes() + t.Events + t.Reads }

// String says it in one line, for a failing test, with the requests below.
func (t Tally) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s", t.Summary(), t.ByKey)
	for _, what := range slices.Sorted(maps.Keys(t.Refused)) {
		fmt.Fprintf(&text, "%6d  refused: %s\n", t.Refused[what], what)
	}
	return text.String()
}

// Summary says it in one line.
func (t Tally) Summary() string {
	return fmt.Sprintf("%d object writes, %d status writes, %d events, %d reads, %d watches, %d lease requests",
		t.ObjectWrites, t.StatusWrites, t.Events, t.Reads, t.Watches, t.Leases)
}

// Of tallies a client's requests, in the given namespaces or, with none, all.
func Of(entries []audit.Entry, agent string, namespaces ...string) Tally {
	filter := audit.Filter{Client: agent, Namespaces: namespaces}
	t := Tally{ByKey: audit.Count(entries, filter), Refused: map[string]int{}}
	for _, e := range entries {
		if !filter.Matches(e) || !strings.HasPrefix(e.UserAgent, agent) {
			continue
		}
		count(&t, e)
		if e.Code >= 400 {
			key := e.Key()
			t.Refused[fmt.Sprintf("%d %s %s", e.Code, key.Verb, key.Resource)]++
		}
	}
	return t
}

func count(t *Tally, e audit.Entry) {
	switch {
	case e.Resource == "leases":
		t.Leases++
	case e.Verb == "watch":
		t.Watches++
	case e.Verb == "get" || e.Verb == "list" || e.Verb == "head":
		t.Reads++
	case e.Resource == "events":
		t.Events++
	case e.Subresource == "status":
		t.StatusWrites++
	default:
		t.ObjectWrites++
	}
}

// Since tallies what the client asked for after the mark.
func (c Client) Since(mark audit.Mark, namespaces ...string) (Tally, error) {
	entries, err := c.Log.Since(mark)
	if err != nil {
		return Tally{}, err
	}
	return Of(entries, c.Agent, namespaces...), nil
}

// pollEvery is how often the log is looked at for more.
const pollEvery = 100 * time.Millisecond

// Settle waits until the client has made no request for the given time,
// watches and the lease apart, and returns when its last request was made:
// what it did until then is all it does. It fails when the context ends first.
func (c Client) Settle(ctx context.Context, quiet time.Duration) (time.Time, error) {
	mark, err := c.Log.Mark()
	if err != nil {
		return time.Time{}, err
	}
	last := time.Now()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			t, err := c.Since(mark)
			if err != nil {
				return last, err
			}
			return last, fmt.Errorf("%s did not come to rest for %s: %w; at last it made %s", c.Agent, quiet, context.Cause(ctx), t)
		case now := <-ticker.C:
			next, err := c.Log.Mark()
			if err != nil {
				return last, err
			}
			t, err := c.Since(mark)
			if err != nil {
				return last, err
			}
			if t.Restless() > 0 {
				last, mark = now, next
				continue
			}
			if now.Sub(last) >= quiet {
				return last, nil
			}
		}
	}
}
