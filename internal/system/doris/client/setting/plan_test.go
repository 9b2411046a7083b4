package setting

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
)

// reported is what a frontend or backend of this test says of itself.
var reported = []Item{
	{Key: "level", Value: "INFO", Type: "std::string", Mutable: true},
	{Key: "limit", Value: "10", Type: "int", Mutable: true},
	{Key: "ratio", Value: "0.5", Type: "double", Mutable: true, MasterOnly: true},
	{Key: "port", Value: "9030", Type: "int"},
	{Key: "dir", Value: "/opt/doris/log", Type: "String"},
	{Key: "token", Value: "********", Type: "String", Mutable: true},
	{Key: "roots", Value: "a, b", Type: "std::vector<std::string>", Mutable: true},
	{Key: "experimental_group", Value: "true", Type: "boolean", Mutable: true},
}

type values = map[string]string

func TestPlan(t *testing.T) {
	home := func(name string) (string, bool) { return "/opt/doris", name == "DORIS_HOME" }
	for _, tc := range []struct {
		name string
		in   Input
		want Plan
	}{
		{"nothing in either file", Input{}, Plan{}},
		{
			"the node has the wanted values in another spelling",
			Input{Started: values{}, Wanted: values{"limit": "+10", "ratio": "0.50", "group": "TRUE"}},
			Plan{Same: []string{"group", "limit", "ratio"}},
		},
		{
			"a changed setting can be set while the node runs",
			Input{Started: values{"limit": "10"}, Wanted: values{"limit": "20"}},
			Plan{Live: []Change{{Key: "limit", Value: "20"}}},
		},
		{
			"a setting that only the master acts on is marked",
			Input{Started: values{}, Wanted: values{"ratio": "0.7"}},
			Plan{Live: []Change{{Key: "ratio", Value: "0.7", MasterOnly: true}}},
		},
		{
			"a changed setting that is read at the start only",
			Input{Started: values{"port": "9030"}, Wanted: values{"port": "9031"}},
			Plan{Restart: []Change{{Key: "port", Value: "9031", Reason: Immutable}}},
		},
		{
			"a list is not changed by a backend, whatever it says",
			Input{Started: values{}, Wanted: values{"roots": "a,c"}},
			Plan{Restart: []Change{{Key: "roots", Value: "a,c", Reason: Immutable}}},
		},
		{
			"a setting that the node does not know",
			Input{Started: values{}, Wanted: values{"limmit": "1"}},
			Plan{Restart: []Change{{Key: "limmit", Value: "1", Reason: Unknown}}},
		},
		{
			"a setting that the start script exports",
			Input{Started: values{"JAVA_OPTS": "-Xmx1g"}, Wanted: values{"JAVA_OPTS": "-Xmx2g"}},
			Plan{Restart: []Change{{Key: "JAVA_OPTS", Value: "-Xmx2g", Reason: Script}}},
		},
		{
			"what the node does not list and the file says as before",
			Input{Started: values{"JAVA_OPTS": "-Xmx1g", "limmit": "1"}, Wanted: values{"JAVA_OPTS": "-Xmx1g", "limmit": "1"}},
			Plan{Same: []string{"JAVA_OPTS", "limmit"}},
		},
		{
			"somebody changed it on the node, and the file says as before",
			Input{Started: values{"limit": "5"}, Wanted: values{"limit": "5"}},
			Plan{Runtime: []string{"limit"}},
		},
		{
			"the file is again what it was, after a change of ours",
			Input{Started: values{"limit": "5"}, Wanted: values{"limit": "5"}, Touched: []string{"limit"}},
			Plan{Live: []Change{{Key: "limit", Value: "5"}}},
		},
		{
			"the node started by an unknown file",
			Input{Wanted: values{"limit": "10", "level": "WARNING", "port": "1"}},
			Plan{
				Same: []string{"limit"}, Live: []Change{{Key: "level", Value: "WARNING"}},
				Restart: []Change{{Key: "port", Value: "1", Reason: Immutable}},
			},
		},
		{
			"a removed setting without a known default",
			Input{Started: values{"limit": "10"}},
			Plan{Restart: []Change{{Key: "limit", Default: true, Reason: Removed}}},
		},
		{
			"a removed setting that has its default already",
			Input{Started: values{"limit": "10"}, Defaults: values{"limit": "10"}},
			Plan{Same: []string{"limit"}},
		},
		{
			"a removed setting whose default can be set",
			Input{Started: values{"limit": "10"}, Defaults: values{"limit": "3"}},
			Plan{Live: []Change{{Key: "limit", Value: "3", Default: true}}},
		},
		{
			"a removed setting whose default is read at the start only",
			Input{Started: values{"port": "9030"}, Defaults: values{"port": "9999"}},
			Plan{Restart: []Change{{Key: "port", Value: "9999", Default: true, Reason: RemovedImmutable}}},
		},
		{
			"a setting that was added, set and removed again",
			Input{Started: values{}, Touched: []string{"limit"}, Defaults: values{"limit": "3"}},
			Plan{Live: []Change{{Key: "limit", Value: "3", Default: true}}},
		},
		{
			"a removed setting that the node does not know",
			Input{Started: values{"limmit": "1"}, Defaults: values{"limmit": "2"}},
			Plan{Restart: []Change{{Key: "limmit", Default: true, Reason: Removed}}},
		},
		{
			"a value that was emptied is removed",
			Input{Started: values{"limit": "10"}, Wanted: values{"limit": ""}},
			Plan{Restart: []Change{{Key: "limit", Default: true, Reason: Removed}}},
		},
		{
			"an assignment without a value says nothing",
			Input{Started: values{}, Wanted: values{"limit": ""}},
			Plan{Same: []string{"limit"}},
		},
		{
			"an assignment without a value, and an unknown start",
			Input{Wanted: values{"limit": ""}},
			Plan{Same: []string{"limit"}},
		},
		{
			"an emptied text of a backend is empty",
			Input{Started: values{"level": "INFO"}, Wanted: values{"level": ""}},
			Plan{Live: []Change{{Key: "level", Value: ""}}},
		},
		{
			"a value that the node would not start with",
			Input{Started: values{"limit": "10"}, Wanted: values{"limit": "ten", "port": "no"}},
			Plan{Invalid: []Change{{Key: "limit", Value: "ten", Reason: Unfit}, {Key: "port", Value: "no", Reason: Unfit}}},
		},
		{
			"a placeholder of a known variable",
			Input{Started: values{}, Wanted: values{"dir": "${DORIS_HOME}/log", "level": "${DORIS_HOME}"}, Env: home},
			Plan{Same: []string{"dir"}, Live: []Change{{Key: "level", Value: "/opt/doris"}}},
		},
		{
			"a placeholder of an unknown variable",
			Input{Started: values{"dir": "${A}"}, Wanted: values{"dir": "${A}", "level": "${B}"}, Env: home},
			Plan{Same: []string{"dir"}, Restart: []Change{{Key: "level", Value: "${B}", Reason: Placeholder}}},
		},
		{
			"a value that the node does not show",
			Input{Started: values{"token": "a"}, Wanted: values{"token": "b"}},
			Plan{Restart: []Change{{Key: "token", Value: "b", Reason: Masked}}},
		},
		{
			"a value that the node does not show, and the file says as before",
			Input{Started: values{"token": "a"}, Wanted: values{"token": "a"}},
			Plan{Same: []string{"token"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.in.Reported = reported
			if diff := cmp.Diff(tc.want, Of(tc.in)); diff != "" {
				t.Errorf("plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValuesReadsTheLastOfEqualKeys(t *testing.T) {
	f := conf.Parse([]byte("a = 1\n# b = 2\nA = 3\na: 4 \nc\n"))
	if diff := cmp.Diff(values{"a": "4", "A": "3", "c": ""}, Values(f)); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
	if got := Values(nil); len(got) != 0 {
		t.Errorf("a missing file has values: %v", got)
	}
}

func TestBackendValuesAreLines(t *testing.T) {
	text := "\ufeff\n# a = 1\n a = 1 \r\nb=c\\nd=e\\\nf: g\n  #h = 1\na = 2\n= 3\nlast"
	want := values{"a": "2", "b": `c\nd=e\`, "f: g": "", "last": "", "\ufeff": ""}
	if diff := cmp.Diff(want, BackendValues([]byte(text))); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
}

func FuzzBackendValues(f *testing.F) {
	f.Add("a = 1\n#b\n=\n c=d=e")
	f.Fuzz(func(t *testing.T, text string) {
		for k, v := range BackendValues([]byte(text)) {
			if k == "" || strings.ContainsAny(k, "=\n") || strings.HasPrefix(k, "#") || strings.Contains(v, "\n") {
				t.Errorf("%q = %q", k, v)
			}
		}
	})
}

func TestNothingPrintsAValue(t *testing.T) {
	const secret = "Zq7SeCrEt9"
	p := Of(Input{
		Reported: []Item{{Key: "a", Value: "x", Mutable: true}, {Key: "b", Value: "x"}, {Key: "c", Type: "int"}},
		Wanted:   values{"a": secret, "b": secret, "c": secret, "d": secret},
	})
	if len(p.Live) != 1 || len(p.Restart) != 2 || len(p.Invalid) != 1 {
		t.Fatalf("the plan is another: %v", p)
	}
	item := Item{Key: "k", Value: secret}
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("plan", "change", p.Live[0], "item", item)
	for _, text := range []string{
		fmt.Sprint(p), fmt.Sprintf("%+v", p), fmt.Sprintf("%#v", p), fmt.Sprintf("%v %+v %#v %s", item, item, item, item), out.String(),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("a value is printed: %s", text)
		}
	}
}

// anyInput draws a node and files about a few keys.
func anyInput(t *rapid.T) Input {
	keys := []string{"a", "b", "c", "d", "JAVA_OPTS"}
	value := rapid.SampledFrom([]string{"", "1", "01", "2", "true", "TRUE", "false", "0.5", "0.50", "x", "a,b", "${X}", "${Y}", mask})
	file := rapid.MapOf(rapid.SampledFrom(keys), value)
	in := Input{
		Wanted: file.Draw(t, "wanted"), Defaults: file.Draw(t, "defaults"),
		Touched: rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID[string]).Draw(t, "touched"),
		Env:     func(name string) (string, bool) { return "1", name == "X" },
	}
	if rapid.Bool().Draw(t, "start known") {
		in.Started = file.Draw(t, "started")
	}
	for _, k := range keys[:4] {
		if rapid.Bool().Draw(t, "listed") {
			in.Reported = append(in.Reported, Item{
				Key: k, Value: value.Draw(t, "reported"), Type: rapid.SampledFrom(typeNames).Draw(t, "type"),
				Mutable: rapid.Bool().Draw(t, "mutable"),
			})
		}
	}
	return in
}

func keysOf(changes []Change) []string {
	var keys []string
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	return keys
}

func TestPropertyEachKeyIsInOneSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		p := Of(in)
		var all []string
		for _, keys := range [][]string{p.Same, p.Runtime, keysOf(p.Live), keysOf(p.Restart), keysOf(p.Invalid)} {
			if !slices.IsSorted(keys) {
				t.Fatalf("not in order: %v", keys)
			}
			all = append(all, keys...)
		}
		slices.Sort(all)
		want := map[string]bool{}
		for _, m := range []values{in.Wanted, in.Started} {
			for k := range m {
				want[k] = true
			}
		}
		for _, k := range in.Touched {
			want[k] = true
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), all); diff != "" {
			t.Fatalf("keys differ (-want +got):\n%s", diff)
		}
	})
}

func TestPropertyLiveChangesAreMutableAndOthersSayWhy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		p := Of(in)
		for _, c := range p.Live {
			if item, listed := Find(in.Reported, c.Key); !listed || !item.Mutable || c.Reason != "" {
				t.Fatalf("%s is set on %v", c.Key, item)
			}
		}
		for _, c := range append(p.Restart, p.Invalid...) {
			if c.Reason == "" {
				t.Fatalf("%s has no reason", c.Key)
			}
		}
	})
}

func TestPropertyAfterTheLiveChangesThereAreNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		before := Of(in)
		after := in
		after.Reported = slices.Clone(in.Reported)
		after.Touched = append(slices.Clone(in.Touched), keysOf(before.Live)...)
		for _, c := range before.Live {
			for i := range after.Reported {
				if after.Reported[i].Key == c.Key {
					after.Reported[i].Value = c.Value
				}
			}
		}
		p := Of(after)
		for _, c := range p.Live {
			t.Fatalf("%s is to be set again", c.Key)
		}
		if diff := cmp.Diff(keysOf(before.Restart), keysOf(p.Restart)); diff != "" && !slices.ContainsFunc(after.Reported, Item.Hidden) {
			t.Fatalf("restarts differ (-before +after):\n%s", diff)
		}
	})
}

func TestPropertyAFileThatDidNotChangeAsksForNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		in.Started, in.Touched = in.Wanted, nil
		if p := Of(in); len(p.Live)+len(p.Restart)+len(p.Invalid) > 0 {
			t.Fatalf("it asks for %v", p)
		}
	})
}
