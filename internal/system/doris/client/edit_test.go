package client

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
)

// node is one node of the stand-in with the ways to read and change it.
type node struct {
	read   func(context.Context) ([]setting.Item, error)
	change func(ctx context.Context, key, value string) (Outcome, error)
}

// bring makes what a plan can make while the node runs, and plans again.
func (n node) bring(t *testing.T, in setting.Input) (made []string, after setting.Plan) {
	t.Helper()
	items, err := n.read(t.Context())
	must(t, err)
	in.Reported = items
	for _, c := range setting.Of(in).Live {
		got, err := n.change(t.Context(), c.Key, c.Value)
		must(t, err)
		if got != Applied {
			t.Errorf("%s: outcome is %q", c.Key, got)
		}
		made = append(made, c.Key)
	}
	in.Touched = append(slices.Clone(in.Touched), made...)
	in.Reported, err = n.read(t.Context())
	must(t, err)
	return made, setting.Of(in)
}

// TestEdits edits files and brings nodes of the stand-in there.
func TestEdits(t *testing.T) {
	c := startSim(t, "2.1.8", 1, 1)
	doris := New(root())
	f, b := sqlNode(c.FEs[0]), backNode(c.BEs[0])
	fe := node{
		read:   func(ctx context.Context) ([]setting.Item, error) { return doris.FrontendConfig(ctx, f) },
		change: func(ctx context.Context, k, v string) (Outcome, error) { return doris.ChangeFrontend(ctx, f, k, v) },
	}
	be := node{
		read:   func(ctx context.Context) ([]setting.Item, error) { return doris.BackendConfig(ctx, b) },
		change: func(ctx context.Context, k, v string) (Outcome, error) { return doris.ChangeBackend(ctx, b, k, v) },
	}
	fromFE := func(s string) map[string]string { return setting.Values(conf.Parse([]byte(s))) }
	fromBE := func(s string) map[string]string { return setting.BackendValues([]byte(s)) }
	for _, tc := range []struct {
		name             string
		node             node
		parse            func(string) map[string]string
		started, wanted  string
		touched          []string
		made, restart    []string
		invalid, runtime []string
	}{
		{
			"a frontend, several kinds at once", fe, fromFE,
			"qe_slow_log_ms = 5000\nquery_port = 1\n", "qe_slow_log_ms = 6000\nquery_port = 2\nenable_workload_group: FALSE\nbalance_load_score_threshold=0.25\nJAVA_OPTS=x\n",
			nil,
			[]string{"balance_load_score_threshold", "enable_workload_group", "qe_slow_log_ms"},
			[]string{"JAVA_OPTS", "query_port"},
			nil, nil,
		},
		{
			"a frontend, the file is again what it was", fe, fromFE,
			"qe_slow_log_ms = 5000\n", "qe_slow_log_ms = 5000\n",
			[]string{"qe_slow_log_ms"},
			[]string{"qe_slow_log_ms"},
			nil, nil, nil,
		},
		{
			"a frontend, somebody else changed it", fe, fromFE,
			"balance_load_score_threshold = 0.1\n", "balance_load_score_threshold = 0.1\n", nil, nil, nil, nil,
			[]string{"balance_load_score_threshold"},
		},
		{
			"a backend, several kinds at once", be, fromBE,
			"", "sys_log_level = WARNING\nmax_tablet_version_num = 3000\ncompaction_promotion_ratio = 0.123456789\nbe_port = 1\ndisable_auto_compaction = TRUE\n",
			nil,
			[]string{"compaction_promotion_ratio", "max_tablet_version_num", "sys_log_level"},
			[]string{"be_port"},
			[]string{"disable_auto_compaction"},
			nil,
		},
		{"a backend, a setting is taken out", be, fromBE, "sys_log_level = WARNING\n", "", nil, nil, []string{"sys_log_level"}, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made, after := tc.node.bring(t, setting.Input{Started: tc.parse(tc.started), Wanted: tc.parse(tc.wanted), Touched: tc.touched})
			keys := func(changes []setting.Change) []string {
				var out []string
				for _, c := range changes {
					out = append(out, c.Key)
				}
				return out
			}
			want := [][]string{tc.made, nil, tc.restart, tc.invalid, tc.runtime}
			got := [][]string{made, keys(after.Live), keys(after.Restart), keys(after.Invalid), after.Runtime}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("made, still to make, restart, invalid, runtime differ (-want +got):\n%s", diff)
			}
		})
	}
}
