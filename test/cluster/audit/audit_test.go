package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func line(stage, verb, resource, subresource string, code int) string {
	return fmt.Sprintf(`{"kind":"Event","stage":%q,"verb":%q,"requestURI":"/x?watch=1","userAgent":"fairlead/v1 (linux)",`+
		`"user":{"username":"admin"},"objectRef":{"resource":%q,"subresource":%q,"namespace":"ns","name":"n"},`+
		`"responseStatus":{"code":%d},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z"}`+"\n",
		stage, verb, resource, subresource, code)
}

func TestSince(t *testing.T) {
	for _, tc := range []struct {
		name string
		log  string
		want []string // verb of each entry
	}{
		{name: "empty log has no entries"},
		{name: "answered request counts once", log: line("ResponseComplete", "get", "pods", "", 200), want: []string{"get"}},
		{name: "refused request counts as well", log: line("ResponseComplete", "get", "pods", "", 403), want: []string{"get"}},
		{name: "panicking request counts once", log: line("Panic", "get", "pods", "", 500), want: []string{"get"}},
		{
			name: "watch counts when it starts and not when it ends",
			log: line("ResponseStarted", "watch", "pods", "", 200) +
				line("ResponseComplete", "watch", "pods", "", 200),
			want: []string{"watch"},
		},
		{name: "watch that began before the mark does not count", log: line("ResponseComplete", "watch", "pods", "", 200)},
		{
			name: "exec streams and counts once",
			log: line("ResponseStarted", "get", "pods", "exec", 101) +
				line("ResponseComplete", "get", "pods", "exec", 101),
			want: []string{"get"},
		},
		{
			name: "line being written is left for later",
			log:  line("ResponseComplete", "list", "pods", "", 200) + `{"stage":"Resp`,
			want: []string{"list"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			before := "this part lies before the mark and is not read\n"
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			log := Open(path)
			mark, err := log.Mark()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(before+tc.log), 0o600); err != nil {
				t.Fatal(err)
			}
			entries, err := log.Since(mark)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, e.Verb)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMarkInTheMiddleOfALine: what is being written while the mark is set is not
// answered yet, and counts.
func TestMarkInTheMiddleOfALine(t *testing.T) {
	first, second := line("ResponseComplete", "get", "pods", "", 200), line("ResponseComplete", "list", "pods", "", 200)
	long := strings.Repeat("x", 200_000)
	for _, tc := range []struct{ name, before string }{
		{"nothing but a part", second[:10]},
		{"a part after a line", first + second[:10]},
		{"a part longer than what is read at once", first + `{"long":"` + long},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			if err := os.WriteFile(path, []byte(tc.before), 0o600); err != nil {
				t.Fatal(err)
			}
			log := Open(path)
			mark, err := log.Mark()
			if err != nil {
				t.Fatal(err)
			}
			whole := strings.TrimPrefix(tc.before, first)
			whole = tc.before[:len(tc.before)-len(whole)] + second
			if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
				t.Fatal(err)
			}
			entries, err := log.Since(mark)
			if err != nil || len(entries) != 1 || entries[0].Verb != "list" {
				t.Errorf("got %v, %v; want the line that was being written", entries, err)
			}
		})
	}
}

func TestSinceReportsABrokenLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte("not json\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path).Since(0); err == nil {
		t.Error("no error for a line that is no event")
	}
}

func TestLogThatDoesNotExistYetIsEmpty(t *testing.T) {
	log := Open(filepath.Join(t.TempDir(), "audit.log"))
	mark, err := log.Mark()
	if mark != 0 || err != nil {
		t.Errorf("Mark() = %d, %v; want 0 and no error", mark, err)
	}
	entries, err := log.Since(0)
	if len(entries) != 0 || err != nil {
		t.Errorf("Since(0) = %v, %v; want nothing", entries, err)
	}
}

func TestCount(t *testing.T) {
	entries := []Entry{
		{UserAgent: "fairlead/v1 (linux)", User: "system:serviceaccount:x:fairlead", Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "a"},
		{UserAgent: "fairlead/v1 (linux)", User: "system:serviceaccount:x:fairlead", Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "b"},
		{UserAgent: "fairlead/v1 (linux)", User: "system:serviceaccount:x:fairlead", Verb: "create", Resource: "events", Namespace: "a"},
		{UserAgent: "fairlead/v1 (linux)", User: "system:serviceaccount:x:fairlead", Verb: "watch", Resource: "pods"},
		{UserAgent: "kubectl/v1", User: "admin", Verb: "get", Resource: "pods", Namespace: "a"},
		{User: "nameless", Verb: "get", URI: "/metrics?x=1"},
	}
	for _, tc := range []struct {
		name   string
		filter Filter
		want   Counts
	}{
		{
			name:   "client by its user agent, events left out",
			filter: Filter{Client: "fairlead/", ExceptResources: []string{"events"}},
			want: Counts{
				{Client: "fairlead/v1", Verb: "patch", Resource: "pods/status"}: 2,
				{Client: "fairlead/v1", Verb: "watch", Resource: "pods"}:        1,
			},
		},
		{
			name:   "client by its user, writes only",
			filter: Filter{Client: "system:serviceaccount:x:fairlead", Verbs: Writes()},
			want: Counts{
				{Client: "fairlead/v1", Verb: "patch", Resource: "pods/status"}: 2,
				{Client: "fairlead/v1", Verb: "create", Resource: "events"}:     1,
			},
		},
		{
			name:   "one namespace, subresource left out",
			filter: Filter{Namespaces: []string{"a"}, ExceptResources: []string{"pods/status"}},
			want: Counts{
				{Client: "fairlead/v1", Verb: "create", Resource: "events"}: 1,
				{Client: "kubectl/v1", Verb: "get", Resource: "pods"}:       1,
			},
		},
		{
			name:   "request without agent or resource is counted under user and path",
			filter: Filter{Client: "nameless"},
			want:   Counts{{Client: "nameless", Verb: "get", Resource: "/metrics"}: 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Count(entries, tc.filter)); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
	all := Count(entries, Filter{})
	if got := all.Total(); got != len(entries) {
		t.Errorf("Total() = %d, want %d", got, len(entries))
	}
	if got := all.Total(Reads()...); got != 2 {
		t.Errorf("reads = %d, want 2: a watch is no read", got)
	}
	if first, _, _ := strings.Cut(all.String(), "\n"); !strings.Contains(first, "pods/status") {
		t.Errorf("the largest count does not come first: %q", first)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(line("ResponseComplete", "get", "pods", "", 200))
	f.Add("{}\n")
	f.Add("null\n{\"stage\":")
	f.Fuzz(func(t *testing.T, log string) {
		entries, err := parse(strings.NewReader(log))
		if err == nil && len(entries) > strings.Count(log, "\n") {
			t.Errorf("%d entries in %d lines", len(entries), strings.Count(log, "\n"))
		}
	})
}
