package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The layers of an option of resources, and what each verb and planner is told.
func TestLayersOfAResource(t *testing.T) {
	t.Parallel()
	const both = "rollPause: 20s\nperNamespace: {shop: {rollPause: 30s}}\n"
	tests := map[string]struct {
		file, env, annotation, namespace string
		want                             string
		from                             Layer
		fault                            string
	}{
		"nothing is said: built in":                   {"", "", "", "shop", "10s", BuiltIn, ""},
		"the file says it for all":                    {"rollPause: 20s\n", "", "", "shop", "20s", FromFile, ""},
		"the namespace beats the file":                {both, "", "", "shop", "30s", OfNamespace, ""},
		"another namespace has what is said for all":  {both, "", "", "lab", "20s", FromFile, ""},
		"an annotation beats the namespace":           {both, "", "40s", "shop", "40s", Annotated, ""},
		"an annotation beats what is built in":        {"", "", "40s", "lab", "40s", Annotated, ""},
		"the environment beats them all":              {both, "50s", "40s", "shop", "50s", Environment, ""},
		"an annotation that is none: the next layer":  {both, "", "soon", "shop", "30s", OfNamespace, `fairlead.dev/roll-pause is "soon"; write a duration such as 30s or 5m`},
		"an annotation out of range: the next layer":  {"", "", "2h", "shop", "10s", BuiltIn, "fairlead.dev/roll-pause is 2h; write 1s to 1h"},
		"a fault is told also where it makes no odds": {"", "50s", "soon", "shop", "50s", Environment, `fairlead.dev/roll-pause is "soon"; write a duration such as 30s or 5m`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &Watcher{Sources: none()}
			w.Sources.Env = func(n string) (string, bool) { return test.env, n == "FAIRLEAD_ROLL_PAUSE" && test.env != "" }
			e, err := w.Sources.Effective(parsed(t, test.file))
			if err != nil {
				t.Fatal(err)
			}
			w.become(State{Effective: e})
			annotations := map[string]string{"other": "x"}
			if test.annotation != "" {
				annotations["fairlead.dev/roll-pause"] = test.annotation
			}
			var faults []string
			if test.fault != "" {
				faults = []string{test.fault}
			}
			want, err := time.ParseDuration(test.want)
			if err != nil {
				t.Fatal(err)
			}
			got := w.For(test.namespace, annotations)
			if diff := cmp.Diff(Resource{RollPause: want, DatabaseInterval: time.Minute, Faults: faults}, got); diff != "" {
				t.Errorf("the planner is told (-want +got):\n%s", diff)
			}
			rows, told := w.Record().For(w.Sources.Table, test.namespace, annotations)
			if diff := cmp.Diff(faults, told); diff != "" {
				t.Errorf("faults that people are told: %s", diff)
			}
			for _, row := range rows {
				if row.Option == "rollPause" && (row.Value != test.want || row.From != test.from) {
					t.Errorf("people are told %s from %s, want %s from %s", row.Value, row.From, test.want, test.from)
				}
			}
		})
	}
}

func TestFaultsInWhatIsSaidForNamespaces(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"no mapping":                      {"perNamespace: [shop]\n", "f:3: perNamespace is no mapping of names to what is said of them"},
		"no mapping below":                {"perNamespace:\n  shop: 30s\n", "f:4: perNamespace.shop is no mapping of names to what is said of them"},
		"no name of a namespace":          {"perNamespace:\n  Shop: {rollPause: 30s}\n", `f:4: perNamespace names "Shop", which is no name of a namespace`},
		"a namespace twice":               {"perNamespace:\n  shop: {rollPause: 30s}\n  shop: {}\n", "f:5: perNamespace has shop twice, first in line 4"},
		"an option twice":                 {"perNamespace:\n  shop:\n    rollPause: 30s\n    rollPause: 30s\n", "f:6: perNamespace.shop has rollPause twice, first in line 5"},
		"an unknown option":               {"perNamespace:\n  shop:\n    colour: red\n", `f:5: unknown option "colour"; known are databaseInterval, rollPause`},
		"an option in another spelling":   {"perNamespace:\n  shop:\n    roll-pause: 30s\n", `f:5: unknown option "roll-pause"; write rollPause`},
		"an option of the whole operator": {"perNamespace:\n  shop:\n    workers: 3\n", "f:5: workers is one of the operator as a whole, and not of namespace shop: set it beside perNamespace"},
		"a number without a unit":         {"perNamespace:\n  shop:\n    rollPause: 30\n", "f:5: rollPause is 30, which has no unit; write 30s or 5m"},
		"too short":                       {"databaseInterval: 5s\n", "f:3: databaseInterval is 5s; write 1m to 1h"},
		"no duration":                     {"rollPause: a while\n", `f:3: rollPause is "a while"; write a duration such as 30s or 5m`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f", []byte(head+test.text), Table(systems))
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestWhatIsSaidForANamespaceIsInForceWithoutARestart(t *testing.T) {
	w := watch(t, "perNamespace: {shop: {rollPause: 30s}, lab: {rollPause: 5s}}\n")
	w.edit("perNamespace: {shop: {rollPause: 40s}, lab: {rollPause: 5s}}\n")
	w.need([]string{"info"}, Report{Reason: ReasonReloaded, Message: "in force without a restart: perNamespace (shop)"})
	if r := w.For("shop", nil); r.RollPause != 40*time.Second {
		t.Errorf("the pause is %s", r.RollPause)
	}
	w.edit("perNamespace: {lab: {rollPause: 5s}, more: {}}\n")
	w.need([]string{"info"}, Report{Reason: ReasonReloaded, Message: "in force without a restart: perNamespace (shop)"})
	if r := w.For("shop", nil); r.RollPause != 10*time.Second {
		t.Errorf("the pause is %s", r.RollPause)
	}
}

// What the leader writes of itself, in each state of the file.
func TestRecordTellsOfTheFile(t *testing.T) {
	w := watch(t, "workers: 2\ndialVia: socks5://proxy.example:1080\n")
	told := w.Told()
	w.edit("workers: 4\nlogLevel: debug\ndialVia: socks5://other.example:1080\n")
	select {
	case <-told:
	default:
		t.Error("nobody is told that the state is another one")
	}
	r := w.Record()
	if diff := cmp.Diff([]string{"dialVia", "workers"}, r.Pending()); diff != "" {
		t.Errorf("options that need a restart: %s", diff)
	}
	rows := map[string]Row{}
	for _, row := range r.Options {
		rows[row.Option] = row
	}
	want := map[string]Row{
		"workers":   {Option: "workers", Class: Startup, Value: "2", From: FromFile, NeedsRestart: true, Wanted: "4"},
		"logLevel":  {Option: "logLevel", Class: Dynamic, Value: "debug", From: FromFile},
		"dialVia":   {Option: "dialVia", Class: Startup, Value: "(not shown)", From: FromFile, NeedsRestart: true, Wanted: "(not shown)"},
		"rollPause": {Option: "rollPause", Class: Dynamic, Value: "10s", From: BuiltIn},
	}
	for key, row := range want {
		if diff := cmp.Diff(row, rows[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}

	w.edit("workers: none\ncolour: red\n")
	r = w.Record()
	refused := []string{w.file() + `:3: workers is "none"; write a whole number`, w.file() + `:4: unknown option "colour"`}
	if len(r.Refused) != 2 || r.Refused[0] != refused[0] || !strings.HasPrefix(r.Refused[1], refused[1]) {
		t.Errorf("refused: %q", r.Refused)
	}
	if r.Options[8].Value != "debug" {
		t.Errorf("the former configuration is not in the record: %+v", r.Options[8])
	}
	text, err := r.Encode()
	if err != nil || strings.Contains(text, "example") {
		t.Fatalf("the record shows where the proxy is, %v:\n%s", err, text)
	}
	again, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("read again: %s", diff)
	}

	w.edit("workers: 2\ndialVia: socks5://proxy.example:1080\n")
	if r = w.Record(); len(r.Refused)+len(r.Pending()) > 0 {
		t.Errorf("the file is as at start, and the record says %q, %q", r.Refused, r.Pending())
	}
}

// An operator without a file has a record all the same.
func TestRecordWithoutAFile(t *testing.T) {
	w := &Watcher{Sources: none()}
	if _, err := w.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if r := w.Record(); len(r.Options) != len(w.Sources.Table) || r.File != "" || r.Options[8].From != BuiltIn {
		t.Errorf("got %+v", r)
	}
}
