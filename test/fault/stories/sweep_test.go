package stories

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/test/fault"
)

// undisturbed tells a story twice without a fault, the first time that it is asked for.
func (s *stage) undisturbed(t *testing.T, story tale) *outcome {
	t.Helper()
	if known := s.told[story.name]; known != nil {
		return known
	}
	s.told[story.name] = agreed(t, story, s.performAll(t.Context(), []run{{tale: story}, {tale: story}}))
	return s.told[story.name]
}

// agreed returns the first of two undisturbed tellings. The second proves that
// what is compared does not differ by itself.
func agreed(t *testing.T, story tale, outcomes []*outcome) *outcome {
	t.Helper()
	for _, o := range outcomes {
		report(t, run{tale: story}, o)
	}
	for _, d := range compare(outcomes[0].state, outcomes[1].state) {
		t.Errorf("%s, undisturbed, does not always end in the same way: %s", story.name, d)
	}
	if t.Failed() {
		t.FailNow()
	}
	for _, w := range outcomes[0].writes {
		t.Logf("%s, write %s", story.name, w)
	}
	return outcomes[0]
}

// performAll makes all runs, several side by side.
func (s *stage) performAll(ctx context.Context, runs []run) []*outcome {
	out := make([]*outcome, len(runs))
	var wait sync.WaitGroup
	for i, r := range runs {
		wait.Go(func() { out[i] = s.perform(ctx, r) })
	}
	wait.Wait()
	return out
}

// sweep makes all runs of a story and holds them against the undisturbed one.
func (s *stage) sweep(t *testing.T, reference *outcome, runs []run) {
	t.Helper()
	began := time.Now()
	s.hold(t, reference, runs, s.performAll(t.Context(), runs))
	t.Logf("%s took %s", runs[0].tale.name, time.Since(began).Round(time.Second))
}

func (s *stage) hold(t *testing.T, reference *outcome, runs []run, outcomes []*outcome) {
	t.Helper()
	failures, missed := 0, 0
	for i, o := range outcomes {
		o.against(reference)
		if !o.reached(runs[i]) {
			missed++
			t.Logf("%s: there was no such write this time, only %d", runs[i], len(o.writes))
		}
		if o.failed() {
			failures++
		}
		report(t, runs[i], o)
	}
	t.Logf("COUNT %s: %d writes undisturbed; %d runs with a fault, %d more found no such write; %d failures",
		runs[0].tale.name, len(reference.writes), len(runs)-missed, missed, failures)
	if missed == len(runs) && len(reference.writes) > 0 {
		t.Error("no fault happened at all")
	}
}

// against compares the end of a run with that of the undisturbed one.
func (o *outcome) against(reference *outcome) {
	if o.state == nil || o.failed(checkRun) {
		return
	}
	for _, d := range compare(reference.state, o.state) {
		o.sayf(checkState, "%s", d)
	}
}

// reached tells whether all faults of the run happened.
func (o *outcome) reached(r run) bool {
	n := 0
	for _, f := range r.faults {
		if f.At == 0 {
			n++
		}
	}
	return len(o.fired)+n == len(r.faults) && (!r.lists || o.old > 0)
}

func report(t *testing.T, r run, o *outcome) {
	t.Helper()
	if !o.failed() {
		return
	}
	var text strings.Builder
	for _, p := range o.problems {
		fmt.Fprintf(&text, "  %s\n", p)
	}
	text.WriteString("writes:\n")
	for _, w := range o.writes {
		fmt.Fprintf(&text, "  %s\n", w)
	}
	const last = 3000
	if len(o.log) > last {
		o.log = "…" + o.log[len(o.log)-last:]
	}
	t.Errorf("%s\n%sthe operator's last words:\n%s", r, text.String(), o.log)
}

// kills are the runs with a kill before and after each of the writes, and
// around the act.
func kills(story tale, writes ...int) []run {
	var out []run
	for _, n := range writes {
		for _, when := range []fault.When{fault.Before, fault.After} {
			out = append(out, run{tale: story, faults: []fault.Plan{{At: n, When: when, Do: fault.Kill}}})
		}
	}
	return out
}

// upTo lists the numbers from first to last.
func upTo(first, last int) []int {
	var out []int
	for n := first; n <= last; n++ {
		out = append(out, n)
	}
	return out
}

// TestKilledAtEveryWrite kills the operator at every write of every story.
func TestKilledAtEveryWrite(t *testing.T) {
	if !all() {
		t.Skip("FAIRLEAD_FAULT=all runs it")
	}
	s := onStage(t)
	for _, story := range tales() {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			// One more than there were, since a run may need one more.
			s.sweep(t, reference, kills(story, upTo(0, len(reference.writes)+1)...))
		})
	}
}

// TestSomeFaults is the part of all that fits into every run of the tests: two
// small stories, all kinds of faults, at some writes.
func TestSomeFaults(t *testing.T) {
	if all() {
		t.Skip("FAIRLEAD_FAULT=all runs it all")
	}
	s := onStage(t)
	runs := slices.Concat(
		[]run{{tale: createSmall}, {tale: createSmall}},
		kills(createSmall, 3, 9), answers(createSmall, []int{8}, 500)[:1], answers(createSmall, []int{3}, 409), blinds(createSmall, []int{5})[2:],
	)
	outcomes := s.performAll(t.Context(), runs)
	reference := agreed(t, createSmall, outcomes[:2])
	s.hold(t, reference, runs[2:], outcomes[2:])
}
