package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/counts"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestParseUsage(t *testing.T) {
	const status = "Name:\tfair lead\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nRssAnon:\t 512 kB\n"
	for _, tc := range []struct {
		name, stat, status string
		want               usage
		fails              bool
	}{
		{
			name: "program name with spaces and a parenthesis", status: status,
			stat: "42 (fair) lead) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 100 1 2",
			want: usage{cpu: 2 * time.Second, rss: 1 << 20, peak: 2 << 20, anonymous: 512 << 10},
		},
		{name: "cut short", status: status, stat: "42 (fairlead) S 1", fails: true},
		{name: "no memory", status: "Name:\tx\n", stat: "42 (x) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0", fails: true},
		{name: "empty", fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseUsage(tc.stat, tc.status)
			if (err != nil) != tc.fails {
				t.Fatalf("error is %v", err)
			}
			if !tc.fails && got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func FuzzParseUsage(f *testing.F) {
	f.Add("42 (x) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0", "VmHWM: 1 kB\nVmRSS: 1 kB\nRssAnon: 1 kB\n")
	f.Fuzz(func(_ *testing.T, stat, status string) {
		_, _ = parseUsage(stat, status) // must not panic
	})
}

func TestUsageOfThisProcess(t *testing.T) {
	u, err := processUsage(os.Getpid())
	if err != nil || u.rss < 1<<20 || u.peak < u.rss {
		t.Errorf("usage %+v, error %v", u, err)
	}
}

func TestAvailable(t *testing.T) {
	cluster := func(fe, be, isAvailable, ready string) *unstructured.Unstructured {
		phase := func(p string) map[string]any {
			return map[string]any{"componentCondition": map[string]any{"phase": p}}
		}
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"feStatus": phase(fe), "beStatus": phase(be),
			"conditions": []any{
				map[string]any{"type": "Available", "status": isAvailable}, map[string]any{"type": "Ready", "status": ready},
			},
		}}}
	}
	for _, tc := range []struct {
		name string
		obj  *unstructured.Unstructured
		want bool
	}{
		{"all say so", cluster("available", "available", "True", "True"), true},
		{"backend is not", cluster("available", "reconciling", "True", "True"), false},
		{"frontend is not", cluster("reconciling", "available", "True", "True"), false},
		{"condition Ready is missing", cluster("available", "available", "True", "False"), false},
		{"condition Available is not True", cluster("available", "available", "Unknown", "True"), false},
		{"no status yet", &unstructured.Unstructured{Object: map[string]any{}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := available(tc.obj); got != tc.want {
				t.Errorf("available is %t", got)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	if diff := cmp.Diff([]place{{"bench-0", "doris-0"}, {"bench-1", "doris-1"}, {"bench-0", "doris-2"}}, places(3, 2), cmp.AllowUnexported(place{})); diff != "" {
		t.Errorf("two namespaces (-want +got):\n%s", diff)
	}
	if got := places(3, 0); got[2].namespace != "bench-2" {
		t.Errorf("one namespace each: %v", got)
	}
}

func TestPercentile(t *testing.T) {
	sorted := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for p, want := range map[int]time.Duration{0: 1, 50: 5, 95: 10, 100: 10} {
		if got := percentile(sorted, p); got != want {
			t.Errorf("%d. percentile is %d, want %d", p, got, want)
		}
	}
	if percentile(nil, 50) != 0 {
		t.Error("percentile of nothing is not zero")
	}
}

func TestReport(t *testing.T) {
	tally := counts.Tally{ObjectWrites: 700, StatusWrites: 300, Events: 100, Reads: 5, Watches: 6, Refused: map[string]int{"404 get services": 2}, ByKey: audit.Counts{
		{Verb: "patch", Resource: "services"}: 400, {Verb: "patch", Resource: "statefulsets"}: 300,
		{Verb: "patch", Resource: "dorisclusters/status"}: 300, {Verb: "create", Resource: "events"}: 100,
		{Verb: "list", Resource: "pods"}: 5, {Verb: "watch", Resource: "pods"}: 6,
	}}
	r := report{machine: "a machine", options: options{ready: time.Second, foreignSize: 10240}}
	r.runs = []measured{
		{
			clusters: 100, floor: 4 * time.Second, created: time.Second, all: 8 * time.Second,
			each: []time.Duration{2 * time.Second, 8 * time.Second}, tally: tally, idleFor: 30 * time.Second,
			cpu: 2 * time.Second, idleCPU: 100 * time.Millisecond, atRest: usage{rss: 60 << 20, peak: 80 << 20, heap: 20 << 20},
			foreign: &foreignMemory{
				objects: 1000, before: usage{rss: 60 << 20, anonymous: 30 << 20, heap: 20 << 20},
				live: usage{rss: 61 << 20, anonymous: 30 << 20, heap: 20 << 20}, restarted: usage{rss: 60 << 20, anonymous: 31 << 20, heap: 21 << 20},
			},
		},
		{clusters: 7, all: time.Second, each: []time.Duration{time.Second}, idleFor: 30 * time.Second, idle: counts.Tally{Reads: 2}},
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.txt")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}
