package stories

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/test/fault"
)

// answers are the runs in which a write is refused with each code, and one
// that was carried out is told to have failed.
func answers(story tale, writes []int, codes ...int) []run {
	var out []run
	for _, n := range writes {
		for _, code := range codes {
			out = append(out, run{tale: story, faults: []fault.Plan{{At: n, When: fault.Before, Do: fault.Answer, Code: code}}})
		}
		out = append(out, run{tale: story, faults: []fault.Plan{{At: n, When: fault.After, Do: fault.Answer, Code: 503}}})
	}
	return out
}

// blinds are the runs in which the operator does not see, or not in time, what
// is there: watches that break or are late, a slow API server, and caches that
// are filled from long ago after a crash.
func blinds(story tale, writes []int) []run {
	var out []run
	for _, n := range writes {
		out = append(out,
			run{tale: story, faults: []fault.Plan{{At: n, When: fault.After, Do: fault.CutWatch}}},
			run{tale: story, faults: []fault.Plan{{At: n, When: fault.Before, Do: fault.HoldWatch, For: 2 * time.Second}}},
			run{tale: story, faults: []fault.Plan{{At: n, When: fault.Before, Do: fault.Delay, For: time.Second}}},
			run{tale: story, lists: true, faults: []fault.Plan{
				{At: n, When: fault.After, Do: fault.OldList}, {At: n, When: fault.After, Do: fault.Kill},
			}},
		)
	}
	return out
}

// TestRefusedAtEveryWrite refuses each write of a story, and tells a lie about
// each that was carried out.
func TestRefusedAtEveryWrite(t *testing.T) {
	if !all() {
		t.Skip("FAIRLEAD_FAULT=all runs it")
	}
	s := onStage(t)
	for _, story := range []tale{createSmall, imageChangeSmall} {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			s.sweep(t, reference, answers(story, upTo(1, len(reference.writes)), 409, 429, 500, 503))
		})
	}
}

// TestBlindAtEveryWrite takes the sight from the operator at each write.
func TestBlindAtEveryWrite(t *testing.T) {
	if !all() {
		t.Skip("FAIRLEAD_FAULT=all runs it")
	}
	s := onStage(t)
	for _, story := range []tale{createSmall, imageChange} {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			s.sweep(t, reference, blinds(story, upTo(1, len(reference.writes))))
		})
	}
}
