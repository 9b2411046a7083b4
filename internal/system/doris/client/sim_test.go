package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// TestCluster reads and changes three frontends and two backends of the
// stand-in, which is a test double.
func TestCluster(t *testing.T) {
	c := startSim(t, "4.1.3", 3, 2)
	opt := root()
	dial, ever, open := watch()
	opt.Dial = dial
	doris := New(opt)
	ctx := t.Context()

	t.Run("the master is found through each frontend", func(t *testing.T) {
		for _, f := range c.FEs {
			at, list, err := doris.Master(ctx, []Node{sqlNode(f)})
			must(t, err)
			i := slices.IndexFunc(list, func(f Frontend) bool { return f.IsMaster && f.Connected })
			if len(list) != 3 || i < 0 || list[i].QueryPort != at.Port {
				t.Errorf("through %s the master is %s of %v", sqlNode(f), at, list)
			}
		}
	})
	t.Run("the master is found where candidates do not answer", func(t *testing.T) {
		gone := serveAndClose(t)
		at, _, err := doris.Master(ctx, []Node{gone, {Host: "bad host", Port: 1}, sqlNode(c.FEs[1])})
		must(t, err)
		if at == gone {
			t.Errorf("the master is %s, where nobody listens", at)
		}
	})
	t.Run("no candidate answers", func(t *testing.T) {
		_, _, err := doris.Master(ctx, []Node{serveAndClose(t)})
		wantKind(t, err, ErrUnreachable)
		_, _, err = doris.Master(ctx, nil)
		if !errors.Is(err, ErrNoMaster) {
			t.Errorf("without candidates the error is %v", err)
		}
	})
	t.Run("backends are listed", func(t *testing.T) {
		var list []Backend
		eventually(t, "the follower has heard of both", func() bool {
			var err error
			list, err = doris.Backends(ctx, sqlNode(c.FEs[2]))
			return err == nil && len(list) == 2 && list[0].Alive && list[1].Alive
		})
		for _, b := range list {
			i := slices.IndexFunc(c.BEs, func(x *local.BE) bool { return int32(x.HTTPPort) == b.HTTPPort })
			if i < 0 || !b.Alive || b.Decommissioned || b.TabletNum == nil || b.Tag.Location != "default" || b.State.Shutdown {
				t.Errorf("backend is %+v", b)
			}
		}
	})
	t.Run("a frontend's settings are listed", func(t *testing.T) {
		items, err := doris.FrontendConfig(ctx, sqlNode(c.FEs[0]))
		must(t, err)
		slow, _ := setting.Find(items, "qe_slow_log_ms")
		port, _ := setting.Find(items, "query_port")
		balance, _ := setting.Find(items, "disable_balance")
		if !slow.Mutable || slow.MasterOnly || port.Mutable || !balance.MasterOnly || slow.Value != "5000" || slow.Type != "long" {
			t.Errorf("settings are %v %v %v", slow, port, balance)
		}
	})
	t.Run("health is asked of both", func(t *testing.T) {
		f, err := doris.FrontendHealth(ctx, webNode(c.FEs[0]))
		must(t, err)
		b, err := doris.BackendHealth(ctx, backNode(c.BEs[0]))
		must(t, err)
		if f != (FrontendHealth{Ready: true, OnlineBackends: 2, TotalBackends: 2}) || !b.OK {
			t.Errorf("health is %+v and %+v", f, b)
		}
	})
	t.Run("settings of frontends", func(t *testing.T) { frontendSettings(t, doris, c.FEs) })
	t.Run("settings of a backend", func(t *testing.T) { backendSettings(t, doris, backNode(c.BEs[0])) })
	if ever.Load() == 0 {
		t.Error("the dialer was not used")
	}
	eventually(t, "no connection is open", func() bool { return open.Load() == 0 })
}

func frontendSettings(t *testing.T, doris *Doris, fes []*local.FE) {
	t.Helper()
	ctx := t.Context()
	master, _, err := doris.Master(ctx, []Node{sqlNode(fes[0])})
	must(t, err)
	i := slices.IndexFunc(fes, func(f *local.FE) bool { return sqlNode(f) != master })
	other := fes[i]
	for _, tc := range []struct {
		name       string
		at         Node
		key, value string
		want       Outcome
		kind       error
	}{
		{"own setting of a follower", sqlNode(other), "qe_slow_log_ms", "77", Applied, nil},
		{"the same with blanks around it", sqlNode(other), "qe_slow_log_ms", " 78 ", Applied, nil},
		{"setting with a prefix that is not named", sqlNode(other), "enable_workload_group", "FALSE", Applied, nil},
		{"setting of the master, on it", master, "balance_load_score_threshold", "0.20", Applied, nil},
		{"setting of the master, through a follower", sqlNode(other), "disable_balance", "true", Different, nil},
		{"fixed setting", master, "query_port", "1", "", ErrRefused},
		{"setting that does not exist", master, "no_such_setting", "1", "", ErrRefused},
		{"value of another type", master, "qe_slow_log_ms", "Zq7SeCrEt9", "", ErrRefused},
		{"name that is none", master, `a" = "b") --`, "1", "", ErrInput},
		{"name of a parameter", master, "persist", "true", "", ErrInput},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := doris.ChangeFrontend(ctx, tc.at, tc.key, tc.value)
			if tc.kind == nil {
				must(t, err)
			} else {
				wantNoSecret(t, wantKind(t, err, tc.kind), "Zq7SeCrEt9")
			}
			if got != tc.want {
				t.Errorf("outcome is %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("setting of the master, on a follower alone", func(t *testing.T) {
		got, err := doris.ChangeFrontendLocal(ctx, webNode(other), sqlNode(other), "max_running_txn_num_per_db", "5")
		must(t, err)
		if got != Applied {
			t.Errorf("outcome is %q", got)
		}
		items, err := doris.FrontendConfig(ctx, master)
		must(t, err)
		if item, _ := setting.Find(items, "max_running_txn_num_per_db"); item.Value != "1000" {
			t.Error("it was set on the master too")
		}
	})
	t.Run("fixed setting over HTTP", func(t *testing.T) {
		_, err := doris.ChangeFrontendLocal(ctx, webNode(other), sqlNode(other), "query_port", "1")
		wantKind(t, err, ErrRefused)
	})
	t.Run("account that is unknown over HTTP", func(t *testing.T) {
		stranger := New(Options{Credentials: Credentials{User: "nobody", Password: "Zq7SeCrEt9"}})
		err := stranger.SetFrontendConfigLocal(ctx, webNode(other), "qe_slow_log_ms", "1")
		wantNoSecret(t, wantKind(t, err, ErrDenied), "Zq7SeCrEt9")
	})
}

func backendSettings(t *testing.T, doris *Doris, at Node) {
	t.Helper()
	for _, tc := range []struct {
		name, key, value string
		want             Outcome
		kind             error
	}{
		{"number", "max_tablet_version_num", "3000", Applied, nil},
		{"number in another spelling", "max_tablet_version_num", "+03001", Applied, nil},
		{"boolean", "disable_auto_compaction", "true", Applied, nil},
		{"fraction that is printed rounded", "compaction_promotion_ratio", "0.123456789", Applied, nil},
		{"text with everything in it", "sys_log_level", `a b+c&d=e%20"'é;#`, Applied, nil},
		{"fixed setting", "be_port", "1", "", ErrRefused},
		{"setting that does not exist", "no_such_setting", "Zq7SeCrEt9", "", ErrRefused},
		{"value of another type", "max_tablet_version_num", "Zq7SeCrEt9", "", ErrRefused},
		{"boolean in capitals, which a backend refuses", "disable_auto_compaction", "FALSE", "", ErrRefused},
		{"name of a parameter", "persist", "true", "", ErrInput},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := doris.ChangeBackend(t.Context(), at, tc.key, tc.value)
			if tc.kind == nil {
				must(t, err)
			} else {
				wantNoSecret(t, wantKind(t, err, tc.kind), "Zq7SeCrEt9")
			}
			if got != tc.want {
				t.Errorf("outcome is %q, want %q", got, tc.want)
			}
		})
	}
	items, err := doris.BackendConfig(t.Context(), at)
	must(t, err)
	if item, _ := setting.Find(items, "be_port"); item.Mutable || item.Type != "int32_t" {
		t.Errorf("setting is %v", item)
	}
}

func TestBackendOfAnOlderVersionAnswersWithOneObject(t *testing.T) {
	c := startSim(t, "2.0.15", 1, 1)
	doris := New(root())
	got, err := doris.ChangeBackend(t.Context(), backNode(c.BEs[0]), "max_tablet_version_num", "3000")
	must(t, err)
	if got != Applied {
		t.Errorf("outcome is %q", got)
	}
	_, err = doris.ChangeBackend(t.Context(), backNode(c.BEs[0]), "be_port", "1")
	wantKind(t, err, ErrRefused)
}

// TestFaults spoils the stand-in's nodes: every call ends, with an error that
// tells what it was.
func TestFaults(t *testing.T) {
	c := startSim(t, "2.1.8", 1, 1)
	f, b := c.FEs[0], c.BEs[0]
	opt := root()
	opt.CallTimeout = short
	dial, _, open := watch()
	opt.Dial = dial
	doris := New(opt)
	calls := map[string]func(context.Context) error{
		"frontends": func(ctx context.Context) error { _, err := doris.Frontends(ctx, sqlNode(f)); return err },
		"backends":  func(ctx context.Context) error { _, err := doris.Backends(ctx, sqlNode(f)); return err },
		"master":    func(ctx context.Context) error { _, _, err := doris.Master(ctx, []Node{sqlNode(f)}); return err },
		"frontend config": func(ctx context.Context) error {
			_, err := doris.FrontendConfig(ctx, sqlNode(f))
			return err
		},
		"frontend change": func(ctx context.Context) error {
			_, err := doris.ChangeFrontend(ctx, sqlNode(f), "qe_slow_log_ms", "1")
			return err
		},
		"frontend change over HTTP": func(ctx context.Context) error {
			return doris.SetFrontendConfigLocal(ctx, webNode(f), "qe_slow_log_ms", "1")
		},
		"frontend health": func(ctx context.Context) error { _, err := doris.FrontendHealth(ctx, webNode(f)); return err },
		"backend config":  func(ctx context.Context) error { _, err := doris.BackendConfig(ctx, backNode(b)); return err },
		"backend change": func(ctx context.Context) error {
			_, err := doris.ChangeBackend(ctx, backNode(b), "max_tablet_version_num", "1")
			return err
		},
		"backend health": func(ctx context.Context) error { _, err := doris.BackendHealth(ctx, backNode(b)); return err },
	}
	for _, kind := range []fault.Kind{fault.Hang, fault.Refuse} {
		must(t, f.Faults.Parse(string(kind)))
		must(t, b.Faults.Parse(string(kind)))
		if kind == fault.Refuse {
			eventually(t, "the SQL port is closed", func() bool {
				_, err := doris.Frontends(t.Context(), sqlNode(f))
				return err != nil && !errors.Is(err, context.DeadlineExceeded)
			})
		}
		for name, call := range calls {
			t.Run(name+" under "+string(kind), func(t *testing.T) {
				began := time.Now()
				err := call(t.Context())
				if took := time.Since(began); took > short+slack {
					t.Errorf("it took %s", took)
				}
				wantKind(t, err, ErrUnreachable)
				if over := errors.Is(err, context.DeadlineExceeded); over != (kind == fault.Hang) {
					t.Errorf("error is %v", err)
				}
			})
		}
		f.Faults.Clear("")
		b.Faults.Clear("")
		eventually(t, "the SQL port is open again", func() bool {
			_, err := doris.Frontends(t.Context(), sqlNode(f))
			return err == nil
		})
	}
	t.Run("the context's own deadline is nearer", func(t *testing.T) {
		must(t, f.Faults.Parse("hang"))
		defer f.Faults.Clear("")
		patient := New(root())
		ctx, cancel := context.WithTimeout(t.Context(), short)
		defer cancel()
		began := time.Now()
		_, err := patient.Frontends(ctx, sqlNode(f))
		if took := time.Since(began); took > short+slack {
			t.Errorf("it took %s", took)
		}
		if wantKind(t, err, ErrUnreachable); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("the context is cancelled", func(t *testing.T) {
		must(t, f.Faults.Parse("hang"))
		defer f.Faults.Clear("")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(short/4, cancel)
		_, err := New(root()).Frontends(ctx, sqlNode(f))
		if wantKind(t, err, ErrUnreachable); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("the password is wrong", func(t *testing.T) {
		must(t, f.Faults.Parse("wrong-password"))
		defer f.Faults.Clear("")
		_, err := doris.Frontends(t.Context(), sqlNode(f))
		if e := wantKind(t, err, ErrDenied); e.Code != 1045 {
			t.Errorf("code is %d", e.Code)
		}
		err = doris.SetFrontendConfigLocal(t.Context(), webNode(f), "qe_slow_log_ms", "1")
		wantKind(t, err, ErrDenied)
	})
	t.Run("the account may not do it", func(t *testing.T) {
		must(t, run(t.Context(), doris, sqlNode(f), "CREATE USER 'weak' IDENTIFIED BY 'Zq7SeCrEt9'"))
		weak := New(Options{Credentials: Credentials{User: "weak", Password: "Zq7SeCrEt9"}})
		_, err := weak.Backends(t.Context(), sqlNode(f))
		if e := wantKind(t, err, ErrDenied); e.Code != 1227 {
			t.Errorf("code is %d", e.Code)
		}
	})
	eventually(t, "no connection is open", func() bool { return open.Load() == 0 })
}
