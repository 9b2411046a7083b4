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
	return fmt.Sprintf("%s %d; lost %s", strings.Join(r.Keys(), ","), r.Changed(), strings.Join(r.Losses(time.Time{}).Lost, "; "))
}

func TestFold(t *testing.T) {
	t.Parallel()
	type round struct {
		image string
		polls []Poll
	}
	one := func(polls ...Poll) round { return round{"1", polls} }
	three := one(said("n-0", "a", 0, "x=1"), said("n-1", "b", 0, "x=1"), said("n-2", "c", 0, "x=1"))
	tests := map[string]struct {
		rounds []round
		want   string
		nodes  int // of the component; one where it is left out
	}{
		"heard first: nothing is changed":    {rounds: []round{one(said("n-0", "a", 0, "x=1"), said("n-1", "b", 0, "x=1"))}, want: " 0; lost "},
		"changed on one node":                {rounds: []round{one(said("n-0", "a", 0, "x=1"), said("n-1", "b", 0, "x=1")), one(said("n-1", "b", 1, "x=2"))}, want: "x 1; lost "},
		"changed and changed back":           {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "a", 2, "x=1"))}, want: " 0; lost "},
		"heard first, one is another":        {rounds: []round{one(said("n-0", "a", 0, "x=2"), said("n-1", "b", 0, "x=1"), said("n-2", "c", 0, "x=1"))}, want: "x 1; lost "},
		"another than the file":              {rounds: []round{one(said("n-0", "a", 0, "x:other", "y:same"))}, want: "x 1; lost "},
		"kept through a restart":             {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=2"))}, want: "x 1; lost "},
		"lost by a restart":                  {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1"))}, want: " 0; lost n-0: x"},
		"one of two is lost, of a torn file": {rounds: []round{one(said("n-0", "a", 0, "x=1", "y=1")), one(said("n-0", "a", 1, "x=2", "y=2")), one(said("n-0", "b", 2, "x=1", "y=2"))}, want: "y 1; lost n-0: x"},
		"lost, and set again":                {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "b", 3, "x=2"))}, want: "x 1; lost "},
		"lost, and still so an hour later":   {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "b", 62, "x=1"))}, want: " 0; lost n-0: x"},
		"lost, and forgotten the next day":   {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "b", 1500, "x=1"))}, want: " 0; lost "},
		"lost, and restarted once more":      {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "c", 3, "x=1"))}, want: " 0; lost n-0: x"},
		"not clear now: as it was":           {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x:?"))}, want: "x 1; lost "},
		"another image with another default": {rounds: []round{one(said("n-0", "a", 0, "x=1")), {"2", []Poll{said("n-0", "b", 1, "x=5")}}}, want: " 0; lost "},
		"another image, still changed":       {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), {"2", []Poll{said("n-0", "b", 2, "x=2")}}}, want: "x 1; lost "},
		"another image, and lost":            {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), {"2", []Poll{said("n-0", "b", 2, "x=1")}}}, want: " 0; lost n-0: x"},
		"another image with another default, changed on one of two": {
			rounds: []round{one(said("n-0", "a", 0, "x=1"), said("n-1", "b", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), {"2", []Poll{said("n-0", "c", 2, "x=2")}}, {"2", []Poll{said("n-0", "c", 3, "x=2"), said("n-1", "d", 3, "x=5")}}},
			want:   "x 1; lost ", nodes: 2,
		},
		"two images later, lost": {
			rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), {"2", []Poll{said("n-0", "b", 2, "x=2")}}, {"3", []Poll{said("n-0", "c", 3, "x=1")}}},
			want:   " 0; lost n-0: x",
		},
		"another image, and each was changed since it was heard last": {
			rounds: []round{three, {"2", []Poll{said("n-0", "d", 1, "x=5")}}, {"2", []Poll{said("n-0", "d", 2, "x=5"), said("n-1", "e", 2, "x=6"), said("n-2", "f", 2, "x=7")}}},
			want:   "x 3; lost ", nodes: 3,
		},
		"another image, and one was changed since it was heard last": {
			rounds: []round{three, {"2", []Poll{said("n-0", "d", 1, "x=5")}}, {"2", []Poll{said("n-0", "d", 2, "x=5"), said("n-1", "e", 2, "x=1")}}},
			want:   "x 1; lost ", nodes: 3,
		},
		"another image, one was changed before, and the others since they were heard last": {
			rounds: []round{three, one(said("n-2", "c", 1, "x=7")), {"2", []Poll{said("n-2", "d", 2, "x=7")}}, {"2", []Poll{said("n-2", "d", 3, "x=7"), said("n-1", "e", 3, "x=6")}}, {"2", []Poll{said("n-2", "d", 4, "x=7"), said("n-1", "e", 4, "x=6"), said("n-0", "f", 4, "x=5")}}},
			want:   "x 3; lost ", nodes: 3,
		},
		"another image, and it is open whether one was changed": {
			rounds: []round{three, {"2", []Poll{said("n-0", "d", 1, "x=5")}}},
			want:   " 0; lost ", nodes: 3,
		},
		"another image with another default, and one was changed since it was heard last": {
			rounds: []round{three, {"2", []Poll{said("n-0", "d", 1, "x=5"), said("n-1", "e", 1, "x=8")}}, {"2", []Poll{said("n-0", "d", 2, "x=5"), said("n-1", "e", 2, "x=8"), said("n-2", "f", 2, "x=8")}}},
			want:   "x 1; lost ", nodes: 3,
		},
		"another image with another default, and two were changed before": {
			rounds: []round{three, one(said("n-0", "a", 1, "x=5"), said("n-1", "b", 1, "x=6")), {"2", []Poll{said("n-0", "d", 2, "x=5"), said("n-1", "e", 2, "x=6"), said("n-2", "f", 2, "x=8")}}},
			want:   "x 2; lost ", nodes: 3,
		},
		"another image that has no such setting": {
			rounds: []round{three, {"2", []Poll{said("n-0", "d", 1, "y=5")}}, one(said("n-0", "d", 1, "x=5"), said("n-1", "e", 1, "x=5"), said("n-2", "f", 1, "x=5"))},
			want:   " 0; lost ", nodes: 3,
		},
		"heard first, and most have not said anything yet": {
			rounds: []round{one(said("n-0", "a", 0, "x=2")), one(said("n-0", "a", 1, "x=2"), said("n-1", "b", 1, "x=1"), said("n-2", "c", 1, "x=1"))},
			want:   "x 1; lost ", nodes: 3,
		},
		"nobody answers: as it was":                                  {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one()}, want: "x 1; lost "},
		"a Pod that is not there any more":                           {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("gone", "a", 1, "x=2"))}, want: " 0; lost "},
		"a setting that came into the file":                          {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "b", 1, "x:same"))}, want: " 0; lost "},
		"changed, and the file says the same":                        {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "a", 2, "x:same"))}, want: " 0; lost "},
		"changed, and the file names it at the next start":           {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x:same"))}, want: " 0; lost "},
		"lost, and the file names it later":                          {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "a", 1, "x=2")), one(said("n-0", "b", 2, "x=1")), one(said("n-0", "c", 3, "x:same"))}, want: " 0; lost "},
		"another than the file, and lost":                            {rounds: []round{one(said("n-0", "a", 0, "x:same")), one(said("n-0", "a", 1, "x:other")), one(said("n-0", "b", 2, "x:same"))}, want: " 0; lost n-0: x"},
		"changed, then in the file, changed there as well, and lost": {rounds: []round{one(said("n-0", "a", 0, "x=1")), one(said("n-0", "b", 1, "x:same")), one(said("n-0", "b", 2, "x:other")), one(said("n-0", "c", 3, "x:same"))}, want: " 0; lost n-0: x"},
		"in the file, and nothing is clear":                          {rounds: []round{one(said("n-0", "a", 0, "x:other")), one(said("n-0", "b", 1, "x:??"))}, want: "x 1; lost "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var r Record
			for _, round := range test.rounds {
				c := Component{Image: round.image, Nodes: max(1, test.nodes), Exists: func(pod string) bool { return pod != "gone" }}
				r = Read(Fold(r, c, round.polls).String())
				if again := Fold(r, c, round.polls); again.String() != r.String() {
					t.Errorf("the same once more makes %s of %s", again, r)
				}
			}
			if got := brief(r); got != test.want {
				t.Errorf("%q, want %q (%s)", got, test.want, r)
			}
		})
	}
}

// torn is a poll of one node whose file may be cut short: settings with an exclamation
// mark came with another value than the container before had, and those with a plus were
// given another one since.
func torn(start string, minute int, settings ...string) Poll {
	p := Poll{Pod: "n-0", Start: start, At: noon.Add(time.Duration(minute) * time.Minute)}
	for _, text := range settings {
		p.Settings = append(p.Settings, Setting{
			Key: strings.Trim(text, "!+"), InFile: true, Changed: true, Other: strings.Contains(text, "!"), Again: strings.Contains(text, "+"),
		})
	}
	return p
}

// TestValuesThatCameBackAsOthers holds when it is said that a node has another value than it
// had of a setting that was changed in it.
func TestValuesThatCameBackAsOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		polls []Poll
		want  string
	}{
		"the same value":                        {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x")}},
		"another value":                         {polls: []Poll{torn("a", 0, "x", "y"), torn("b", 1, "x!", "y")}, want: "n-0: x"},
		"another value of two":                  {polls: []Poll{torn("a", 0, "x", "y"), torn("b", 1, "x!", "y!")}, want: "n-0: x, y"},
		"it was not known to be changed":        {polls: []Poll{torn("a", 0, "y"), torn("b", 1, "x!", "y")}},
		"heard first":                           {polls: []Poll{torn("b", 1, "x!")}},
		"set again":                             {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x!"), torn("b", 2, "x!+")}},
		"nobody knows any more what was before": {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x!"), torn("b", 2, "x")}, want: "n-0: x"},
		"nobody knew what was before":           {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x")}},
		"restarted once more, as it is":         {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x!"), torn("c", 2, "x")}, want: "n-0: x"},
		"gone by a further restart":             {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x!"), torn("c", 2, "y")}},
		"set again, and restarted with that":    {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x!"), torn("b", 2, "x!+"), torn("c", 3, "x")}},
		"set before it was heard again":         {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x!+")}},
		"the next day":                          {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x!"), torn("b", 1500, "x!")}},
		"and the day after, told once":          {polls: []Poll{torn("a", 0, "x"), torn("b", 1, "x!"), torn("b", 1500, "x!"), torn("b", 1501, "x!")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Record
			for _, poll := range test.polls {
				r = Read(Fold(r, alone, []Poll{poll}).String())
				if again := Fold(r, alone, []Poll{poll}); again.String() != r.String() {
					t.Errorf("the same once more makes %s of %s", again, r)
				}
			}
			if got := strings.Join(r.Losses(time.Time{}).Other, "; "); got != test.want {
				t.Errorf("%q, want %q (%s)", got, test.want, r)
			}
		})
	}
}

// TestKnownLossesAreNotTold holds that what a person knows of is left out, and what was
// seen later is not.
func TestKnownLossesAreNotTold(t *testing.T) {
	t.Parallel()
	r := Fold(Record{}, alone, []Poll{torn("a", 0, "x", "y")})
	r = Fold(r, alone, []Poll{torn("b", 1, "x")})
	r = Fold(r, alone, []Poll{torn("c", 5)})
	for minute, want := range map[int]string{0: "n-0: x, y", 1: "n-0: x", 4: "n-0: x", 5: ""} {
		losses := r.Losses(noon.Add(time.Duration(minute) * time.Minute))
		if got := strings.Join(losses.Lost, "; "); got != want {
			t.Errorf("known until minute %d: %q, want %q (%s)", minute, got, want, r)
		}
		if last := noon.Add(5 * time.Minute); want != "" && !losses.Until.Equal(last) {
			t.Errorf("known until minute %d: the last was at %s", minute, losses.Until)
		}
	}
}

// alone is a component of one node.
var alone = Component{Image: "1", Nodes: 1, Exists: func(string) bool { return true }}

func TestSinceIsWhenItWasFirstSeen(t *testing.T) {
	t.Parallel()
	r := Fold(Record{}, alone, []Poll{said("n-0", "a", 0, "x=1")})
	for minute := 1; minute < 4; minute++ {
		r = Fold(r, alone, []Poll{said("n-0", "a", minute, "x=2")})
	}
	if diff := cmp.Diff(map[string]string{"x": "2026-05-06T12:01:00Z"}, r.Nodes["n-0"].Changed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsOfTheFileAreNoted(t *testing.T) {
	t.Parallel()
	r := Fold(Record{}, alone, []Poll{said("n-0", "a", 0, "x=1", "z:same", "y:other", "w:??", "v:?")})
	if diff := cmp.Diff([]string{"w", "y", "z"}, r.File); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r = Fold(r, alone, nil); len(r.File) != 3 {
		t.Errorf("nobody answers, and noted are %v", r.File)
	}
	if r = Fold(r, alone, []Poll{said("n-0", "b", 1, "z:same")}); len(r.File) != 1 {
		t.Errorf("the file names one, and noted are %v", r.File)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "{}", `{"image":"1","nodes":{"n":{"start":"a","changed":{"x":"?"},"lost":{"y":""},"other":{"x":"?","y":"2026-05-06T12:00:00Z"}}},"checks":{"x":"0"},"before":{"x":"1","y":"2"},"file":["y"]}`, "null", "[1]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := Fold(Read(text), alone, []Poll{said("n", "b", 0, "x=1", "y:other")})
		if again := Read(r.String()); again.String() != r.String() {
			t.Errorf("%s is read as %s", r, again)
		}
	})
}
