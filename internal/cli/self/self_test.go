package self

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/config"
)

var update = flag.Bool("update", false, "write golden files anew")

// an operator with some of everything to tell.
func some() Operator {
	return Operator{
		Namespace: "fairlead-system", ConfigMap: "fairlead-operator", Leads: "fairlead-5d4c-x2x",
		Record: config.Record{
			Version: "v1", Leader: "fairlead-5d4c-x2x", Lease: "fairlead-system/fairlead", File: "/etc/fairlead/config.yaml",
			Options: []config.Row{
				{Option: "namespaces", Class: config.Startup, Value: "", From: config.BuiltIn},
				{Option: "workers", Class: config.Startup, Value: "16", From: config.BuiltIn, NeedsRestart: true, Wanted: "4"},
				{Option: "logLevel", Class: config.Dynamic, Value: "debug", From: config.Environment, Overridden: true},
				{Option: "rollPause", Class: config.Dynamic, Value: "10s", From: config.BuiltIn},
			},
			Namespaces: map[string]map[string]string{"shop": {"rollPause": "30s"}},
		},
	}
}

func golden(t *testing.T, name string, tell func(screen.Screen)) {
	t.Helper()
	var out bytes.Buffer
	tell(screen.New(&out, func(string) string { return "" }))
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-golden +printed):\n%s", path, diff)
	}
}

func TestStatusOfAnOperator(t *testing.T) {
	golden(t, "status-pending", func(s screen.Screen) { printStatus(s, some()) })
	op := some()
	op.Record.Refused = []string{"/etc/fairlead/config.yaml:4: workers is \"many\"; write a whole number"}
	op.Leads = "nobody"
	golden(t, "status-refused", func(s screen.Screen) { printStatus(s, op) })
	op.Record.File, op.Record.Refused, op.Record.Options = "", nil, nil
	golden(t, "status-without-file", func(s screen.Screen) { printStatus(s, op) })
}

func TestOptionsOfAnOperator(t *testing.T) {
	golden(t, "options", func(s screen.Screen) { printOptions(s, some()) })
	op := some()
	op.Record.Options, op.Faults = op.Record.For(config.Table(nil), "shop", map[string]string{"fairlead.dev/roll-pause": "soon"})
	golden(t, "options-of-a-resource", func(s screen.Screen) { printOptions(s, op) })
}

func TestWhoLeads(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := func(holder string, age time.Duration) coordinationv1.LeaseSpec {
		return coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)),
			RenewTime: &metav1.MicroTime{Time: now.Add(-age)},
		}
	}
	for name, test := range map[string]struct {
		lease  coordinationv1.LeaseSpec
		writer string
		want   string
	}{
		"the Pod that wrote the record":     {lease("fairlead-a_uid", time.Second), "fairlead-a", "fairlead-a"},
		"another, that has not written yet": {lease("fairlead-b_uid", time.Second), "fairlead-a", "fairlead-b, which has not told of itself yet: what follows is of fairlead-a"},
		"one that is gone":                  {lease("fairlead-a_uid", time.Minute), "fairlead-a", "nobody: fairlead-a has not renewed its lease for 1m0s"},
		"one that gave the lease back":      {lease("", time.Second), "fairlead-a", "nobody"},
		"no lease was ever taken":           {coordinationv1.LeaseSpec{}, "", "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaderOf(test.lease, test.writer, now); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhereAnOperatorWorks(t *testing.T) {
	for value, want := range map[string]bool{"": true, "shop": true, "lab,shop": true, "lab": false, "shopping": false} {
		r := config.Record{Options: []config.Row{{Option: "namespaces", Value: value}}}
		if worksIn(r, "shop") != want {
			t.Errorf("namespaces %q: got %t", value, !want)
		}
	}
}
