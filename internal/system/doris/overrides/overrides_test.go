package overrides

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

// said is a poll: settings as key=value without a file, key:same or key:other with one,
// and key:? where nothing is clear, of one that the file names if it is key:??.
func said(pod, start string, minute int, settings ...string) Poll {
	p := Poll{Pod: pod, Start: start, At: noon.Add(time.Duration(minute) * time.Minute)}
	for _, text := range settings {
		if key, value, free := strings.Cut(text, "="); free {
			p.Settings = append(p.Settings, Setting{Key: key, Check: Check(key, value)})
			continue
		}
		key, file, _ := strings.Cut(text, ":")
		p.Settings = append(p.Settings, Setting{Key: key, InFile: file != "?", Changed: file == "other", Unclear: file[0] == '?'})
	}
	return p
}

// brief is a record in few words: what is changed and what is lost, node by node.
func brief(r Record) string {
	return fmt.Sprintf("%s %d; lost %s", strings.Join(r.Keys(), ","), r.Changed(), strings.Join(r.Lost(), "; "))
}

func TestFold(t *testing.T) {
	t.Parallel()
	type round struct {
		image string
		polls []Poll
	}
	one := func(polls ...Poll) round { return round{"1", polls} }
	tests := map[string]struct {
		rounds []round
		want   string
	}{
		"heard first: nothing is changed":    {[]round{one(said("n-0", "a", 0, "x=1"), said("n-1", "b", 0, "x=1"))}, " 0; lost "},
		"changed on one node":                {[]round{one(said("n-0", "a", 0, "x=1"), said("n-1", "b", 0, "x=1")), one(said("n-1", "b", 1, "x=2"))}, "x 1; lost "},
		"changed and changed back":           {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "a", 2, "x=1"))}, " 0; lost "},
		"heard first, one is another":        {[]round{one(said("n-0", "a", 0, "x=2"), said("n-1", "b", 0, "x=1"), said("n-2", "c", 0, "x=1"))}, "x 1; lost "},
		"another than the file":              {[]round{one(said("n-0", "a", 0, "x:other", "y:same"))}, "x 1; lost "},
		"kept through a restart":             {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=2"))}, "x 1; lost "},
		"lost by a restart":                  {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1"))}, " 0; lost n-0: x"},
		"one of two is lost, of a torn file": {[]round{one(said("n-0", "a", 0, "x=1", "y=1")), one(said("n-0", "a", 1, "x=2", "y=2")), one(said("n-0", "b", 2, "x=1", "y=2"))}, "y 1; lost n-0: x"},
		"lost, and set again":                {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "b", 3, "x=2"))}, "x 1; lost "},
		"lost, and still so an hour later":   {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "b", 62, "x=1"))}, " 0; lost n-0: x"},
		"lost, and forgotten the next day":   {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "b", 1500, "x=1"))}, " 0; lost "},
		"lost, and restarted once more":      {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "c", 3, "x=1"))}, " 0; lost n-0: x"},
		"not clear now: as it was":           {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x:?"))}, "x 1; lost "},
		"another image with another default": {[]round{one(said("n-0", "a", 0, "x=1")), {"2", []Poll{said("n-0", "b", 1, "x=5")}}}, " 0; lost "},
		"another image, still changed":       {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), {"2", []Poll{said("n-0", "b", 2, "x=2")}}}, "x 1; lost "},
		"another image, and lost":            {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), {"2", []Poll{said("n-0", "b", 2, "x=1")}}}, " 0; lost n-0: x"},
		"another image with another default, changed on one of two": {
			[]round{one(said("n-0", "a", 0, "x=1"), said("n-1", "b", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), {"2", []Poll{said("n-0", "c", 2, "x=2")}}, {"2", []Poll{said("n-0", "c", 3, "x=2"), said("n-1", "d", 3, "x=5")}}},
			"x 1; lost ",
		},
		"two images later, lost": {
			[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), {"2", []Poll{said("n-0", "b", 2, "x=2")}}, {"3", []Poll{said("n-0", "c", 3, "x=1")}}},
			" 0; lost n-0: x",
		},
		"nobody answers: as it was":                                  {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one()}, "x 1; lost "},
		"a Pod that is not there any more":                           {[]round{one(said("n-0", "a", 0, "x=1")), one(said("gone", "a", 1, "x=2"))}, " 0; lost "},
		"a setting that came into the file":                          {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "b", 1, "x:same"))}, " 0; lost "},
		"changed, and the file says the same":                        {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "a", 2, "x:same"))}, " 0; lost "},
		"changed, and the file names it at the next start":           {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x:same"))}, " 0; lost "},
		"lost, and the file names it later":                          {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "c", 3, "x:same"))}, " 0; lost "},
		"another than the file, and lost":                            {[]round{one(said("n-0", "a", 0, "x:same")), one(said("n-0", "a", 1, "x:other")), one(said("n-0", "b", 2, "x:same"))}, " 0; lost n-0: x"},
		"changed, then in the file, changed there as well, and lost": {[]round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "b", 1, "x:same")), one(said("n-0", "b", 2, "x:other")), one(said("n-0", "c", 3, "x:same"))}, " 0; lost n-0: x"},
		"in the file, and nothing is clear":                          {[]round{one(said("n-0", "a", 0, "x:other")), one(said("n-0", "b", 1, "x:??"))}, "x 1; lost "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var r Record
			for _, round := range test.rounds {
				there := func(pod string) bool { return pod != "gone" }
				r = Read(Fold(r, round.image, round.polls, there).String())
				if again := Fold(r, round.image, round.polls, there); again.String() != r.String() {
					t.Errorf("the same once more makes %s of %s", again, r)
				}
			}
			if got := brief(r); got != test.want {
				t.Errorf("%q, want %q (%s)", got, test.want, r)
			}
		})
	}
}

func TestSinceIsWhenItWasFirstSeen(t *testing.T) {
	t.Parallel()
	there := func(string) bool { return true }
	r := Fold(Record{}, "1", []Poll{said("n-0", "a", 0, "x=1")}, there)
	for minute := 1; minute < 4; minute++ {
		r = Fold(r, "1", []Poll{said("n-0", "a", minute, "x=2")}, there)
	}
	if diff := cmp.Diff(map[string]string{"x": "2026-05-06T12:01:00Z"}, r.Nodes["n-0"].Changed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsOfTheFileAreNoted(t *testing.T) {
	t.Parallel()
	there := func(string) bool { return true }
	r := Fold(Record{}, "1", []Poll{said("n-0", "a", 0, "x=1", "z:same", "y:other", "w:??", "v:?")}, there)
	if diff := cmp.Diff([]string{"w", "y", "z"}, r.File); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r = Fold(r, "1", nil, there); len(r.File) != 3 {
		t.Errorf("nobody answers, and noted are %v", r.File)
	}
	if r = Fold(r, "1", []Poll{said("n-0", "b", 1, "z:same")}, there); len(r.File) != 1 {
		t.Errorf("the file names one, and noted are %v", r.File)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "{}", `{"image":"1","nodes":{"n":{"start":"a","changed":{"x":"?"},"lost":{"y":""}}},"checks":{"x":"0"},"before":{"x":"1","y":"2"},"file":["y"]}`, "null", "[1]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := Fold(Read(text), "1", []Poll{said("n", "b", 0, "x=1", "y:other")}, func(string) bool { return true })
		if again := Read(r.String()); again.String() != r.String() {
			t.Errorf("%s is read as %s", r, again)
		}
	})
}
