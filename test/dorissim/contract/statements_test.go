package contract

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

func decode(r io.Reader, out any) error { return json.NewDecoder(r).Decode(out) }

// target is the FE of TestStatements: another Doris that the environment names, or one in this process.
func target(t *testing.T) *sql.DB {
	t.Helper()
	addr := os.Getenv("DORIS_CONTRACT_FE")
	user, password := os.Getenv("DORIS_CONTRACT_USER"), os.Getenv("DORIS_CONTRACT_PASSWORD")
	if addr == "" {
		c := start(t, 1, 1)
		addr, user, password = fmt.Sprintf("127.0.0.1:%d", c.FEs[0].QueryPort), "root", ""
	}
	db, err := local.Open(addr, user, password)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func ask(t *testing.T, db *sql.DB, statement string) ([]row, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return query(ctx, db, statement)
}

func columns(t *testing.T, db *sql.DB, statement string) []string {
	t.Helper()
	res, err := db.QueryContext(t.Context(), statement)
	must(t, err)
	defer func() { _ = res.Close() }()
	names, err := res.Columns()
	must(t, err)
	must(t, res.Err())
	return names
}

// TestStatements asks for nothing but SQL; it leaves nothing behind.
func TestStatements(t *testing.T) {
	db := target(t)
	t.Run("rows of nodes have the columns that are looked up by name", func(t *testing.T) {
		for statement, want := range map[string][]string{
			"show frontends": {"Name", "Host", "EditLogPort", "QueryPort", "Role", "IsMaster", "Join", "Alive", "CurrentConnected", "Version"},
			"show backends":  {"BackendId", "Host", "HeartbeatPort", "Alive", "SystemDecommissioned", "TabletNum", "Tag", "ErrMsg", "Version", "Status"},
			"show proc '/cluster_health/tablet_health'": {"DbName", "TabletNum", "HealthyNum"},
			"admin show frontend config":                {"Key", "Value", "IsMutable"},
			"show all grants":                           {"UserIdentity", "Password", "GlobalPrivs"},
		} {
			have := columns(t, db, statement)
			for _, name := range want {
				if !slices.Contains(have, name) {
					t.Errorf("%s has no column %s: %v", statement, name, have)
				}
			}
		}
	})
	t.Run("one frontend is master and one is the connected one", func(t *testing.T) {
		rs, err := ask(t, db, "SHOW FRONTENDS")
		must(t, err)
		if count(rs, "IsMaster", "true") != 1 || count(rs, "CurrentConnected", "Yes") != 1 {
			t.Errorf("got %v", rs)
		}
	})
	t.Run("what clients ask on their own is answered", func(t *testing.T) {
		for _, s := range []string{"select @@version_comment limit 1", "SET NAMES utf8mb4", "select 1", "show databases", "use mysql", "select database(), user()"} {
			if _, err := ask(t, db, s); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
	})
	t.Run("a wrong password is error 1045", func(t *testing.T) {
		config, err := mysql.ParseDSN(dsnOf(t, db))
		must(t, err)
		other, err := local.Open(config.Addr, "nobody_of_this_name", "wrong")
		must(t, err)
		defer func() { _ = other.Close() }()
		wantCode(t, other.PingContext(t.Context()), 1045)
	})
	t.Run("absent names have their MySQL error codes", func(t *testing.T) {
		for statement, code := range map[string]uint16{
			"select * from no_such_db.t": 1049, "use no_such_db": 1049, "this is no statement": 1064,
		} {
			_, err := ask(t, db, statement)
			wantCode(t, err, code)
		}
	})
}

// dsnOf asks the server where it is, since a handle does not tell.
func dsnOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	addr := os.Getenv("DORIS_CONTRACT_FE")
	if addr == "" {
		rs, err := ask(t, db, "show frontends")
		must(t, err)
		addr = rs[0]["Host"] + ":" + rs[0]["QueryPort"]
	}
	return fmt.Sprintf("x@tcp(%s)/", addr)
}

func wantCode(t *testing.T, err error, code uint16) {
	t.Helper()
	var sqlErr *mysql.MySQLError
	if !errors.As(err, &sqlErr) || sqlErr.Number != code {
		t.Errorf("got %v, want error %d", err, code)
	}
}

func TestLaterVersionsHaveTheColumnLiveSince(t *testing.T) {
	for version, want := range map[string]bool{"2.1.8": false, "4.1.2": false, "4.1.3": true, "4.2.0": true, "5.0": true} {
		c := newCluster(t)
		c.Version = version
		f, err := c.NewFE("")
		must(t, err)
		must(t, f.Start(running(t), ""))
		awaitServing(t, f)
		db, err := f.Open("root", "")
		must(t, err)
		for _, s := range []string{"show frontends", "show backends"} {
			if got := slices.Contains(columns(t, db, s), "LiveSince"); got != want {
				t.Errorf("%s: %s has LiveSince: %v", version, s, got)
			}
		}
		_ = db.Close()
	}
}

func TestAccounts(t *testing.T) {
	c := start(t, 2, 1)
	f := c.FEs[1] // everything goes through a frontend that is not the master
	as := func(user, password, statement string) error {
		db, err := f.Open(user, password)
		must(t, err)
		defer func() { _ = db.Close() }()
		_, err = ask(t, db, statement)
		return err
	}
	must(t, as("root", "", "CREATE USER 'oper'@'%' IDENTIFIED BY 'it''s secret'"))
	wantCode(t, as("oper", "it's secret", "ALTER SYSTEM ADD OBSERVER '127.0.0.1:1'"), 1227)
	must(t, as("root", "", "GRANT NODE_PRIV ON *.*.* TO oper"))
	must(t, as("oper", "it's secret", "ALTER SYSTEM ADD OBSERVER '127.0.0.1:1'"))
	must(t, as("oper", "it's secret", "show backends"))
	wantCode(t, as("oper", "it's secret", "create database d"), 1227)
	wantCode(t, as("oper", "wrong", "select 1"), 1045)
	wantCode(t, as("oper", "", "select 1"), 1045)
	// The built-in admin can never register nodes.
	wantCode(t, as("admin", "", "ALTER SYSTEM ADD OBSERVER '127.0.0.1:2'"), 1227)
	must(t, as("oper", "it's secret", "SET PASSWORD = PASSWORD('second')"))
	must(t, as("oper", "second", "select 1"))
	must(t, as("root", "", "ALTER USER oper IDENTIFIED BY 'third'"))
	wantCode(t, as("oper", "second", "select 1"), 1045)
	must(t, as("oper", "third", "select 1"))
	must(t, as("root", "", "SET PASSWORD FOR 'root' = PASSWORD('r00t')"))
	wantCode(t, as("root", "", "select 1"), 1045)
	must(t, as("root", "r00t", "select 1"))
}

func TestTheFirstRootPasswordComesFromTheConfiguration(t *testing.T) {
	c := newCluster(t)
	f, err := c.NewFE("initial_root_password = *668425423DB5193AF921380129F465A6425216D0") // password1
	must(t, err)
	must(t, f.Start(running(t), ""))
	awaitServing(t, f)
	for password, code := range map[string]uint16{"": 1045, "password2": 1045, "password1": 0} {
		db, err := f.Open("root", password)
		must(t, err)
		err = db.PingContext(t.Context())
		if code != 0 {
			wantCode(t, err, code)
		} else {
			must(t, err)
		}
		_ = db.Close()
	}
}

func TestFrontendSettings(t *testing.T) {
	c := newCluster(t)
	custom := filepath.Join(t.TempDir(), "made", "by-the-fe")
	f, err := c.NewFE("custom_config_dir = " + custom)
	must(t, err)
	must(t, f.Start(running(t), ""))
	awaitServing(t, f)
	setting := func() string {
		rs := rows(t, f, "ADMIN SHOW FRONTEND CONFIG LIKE 'qe_slow_log_ms'")
		if len(rs) != 1 {
			t.Fatalf("got %v", rs)
		}
		return rs[0]["Value"]
	}
	restart := func() {
		must(t, f.Stop())
		must(t, f.Start(running(t), ""))
		awaitServing(t, f)
	}
	if err := tryExec(f, `ADMIN SET FRONTEND CONFIG ("qe_slow_log_ms" = "soon")`); err == nil {
		t.Error("a text was taken for a number")
	}
	exec(t, f, `ADMIN SET FRONTEND CONFIG ("enable_workload_group" = "FALSE")`)
	if got := rows(t, f, "ADMIN SHOW FRONTEND CONFIG LIKE '%enable_workload_group'"); len(got) != 1 ||
		got[0]["Key"] != "experimental_enable_workload_group" || got[0]["Value"] != "false" {
		t.Errorf("a setting with a prefix is shown as %v", got)
	}
	exec(t, f, `ADMIN SET FRONTEND CONFIG ("qe_slow_log_ms" = "77")`)
	if got := setting(); got != "77" {
		t.Errorf("after ADMIN SET it is %s", got)
	}
	restart()
	if got := setting(); got != "5000" {
		t.Errorf("ADMIN SET is memory only, but after a restart it is %s", got)
	}
	if err := tryExec(f, `ADMIN SET FRONTEND CONFIG ("query_port" = "1")`); err == nil {
		t.Error("a fixed setting was changed")
	}
	set := func(user, query string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL()+"/api/_set_config?"+query, nil)
		must(t, err)
		req.SetBasicAuth(user, "")
		resp, err := client.Do(req)
		must(t, err)
		defer func() { _ = resp.Body.Close() }()
		var body struct{ Code int }
		must(t, decode(resp.Body, &body))
		return body.Code
	}
	if set("nobody", "qe_slow_log_ms=1&persist=true") == 0 {
		t.Error("anybody may change settings")
	}
	set("root", "qe_slow_log_ms=88&persist=true")
	set("root", "disable_balance=true&persist=true&reset_persist=false")
	file := filepath.Join(custom, "fe_custom.conf")
	before, err := os.Stat(file)
	must(t, err)
	restart()
	if got := setting(); got != "88" {
		t.Errorf("the persisted value is %s", got)
	}
	set("root", "disable_balance=true&persist=true") // drops the earlier keys
	after, err := os.Stat(file)
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("the file was replaced; the FE writes in place")
	}
	text, err := os.ReadFile(file)
	must(t, err)
	if got := string(text); !strings.HasPrefix(got, "#") || strings.Contains(got, "qe_slow") || !strings.Contains(got, "disable_balance=true") {
		t.Errorf("got %q", got)
	}
}

func TestFaults(t *testing.T) {
	c := start(t, 1, 1)
	f, b := c.FEs[0], c.BEs[0]
	fill(t, f, 1, 3)
	spoil := func(base, kind string) {
		resp, err := client.Post(base+"/dorissim/fault?kind="+kind, "", nil)
		must(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("fault %s: %s", kind, resp.Status)
		}
	}
	mend := func(base string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, base+"/dorissim/fault", nil)
		must(t, err)
		resp, err := client.Do(req)
		must(t, err)
		_ = resp.Body.Close()
	}
	t.Run("refuse closes the SQL port and cuts HTTP off", func(t *testing.T) {
		spoil(f.URL(), "refuse")
		eventually(t, "connections are refused", func() bool {
			err := tryExec(f, "select 1")
			return err != nil && strings.Contains(err.Error(), "refused")
		})
		if healthCode(f) != -1 {
			t.Error("health still answers")
		}
		mend(f.URL())
		eventually(t, "it serves again", func() bool { return tryExec(f, "select 1") == nil })
	})
	t.Run("hang answers nothing until it is over", func(t *testing.T) {
		spoil(f.URL(), "hang&for=700ms")
		began := time.Now()
		exec(t, f, "select 1")
		if took := time.Since(began); took < 500*time.Millisecond {
			t.Errorf("answered after %s", took)
		}
	})
	t.Run("wrong-password denies everybody", func(t *testing.T) {
		spoil(f.URL(), "wrong-password")
		wantCode(t, tryExec(f, "select 1"), 1045)
		mend(f.URL())
		exec(t, f, "select 1")
	})
	t.Run("unhealthy-tablets counts all tablets as unhealthy", func(t *testing.T) {
		health := func() string {
			return value(rows(t, f, "show proc '/cluster_health/tablet_health'"), "DbId", "Total", "HealthyNum")
		}
		spoil(f.URL(), "unhealthy-tablets")
		if got := health(); got != "0" {
			t.Errorf("%s tablets are healthy", got)
		}
		mend(f.URL())
		if got := health(); got != "6" {
			t.Errorf("%s tablets are healthy", got)
		}
	})
	t.Run("a backend that refuses heartbeats is not alive", func(t *testing.T) {
		spoil(b.URL(), "refuse")
		eventually(t, "it is seen dead", func() bool { return backend(t, f, b)["Alive"] == "false" })
		mend(b.URL())
		eventually(t, "it is seen alive", func() bool { return backend(t, f, b)["Alive"] == "true" })
	})
	t.Run("an unknown fault is refused", func(t *testing.T) {
		resp, err := client.Post(f.URL()+"/dorissim/fault?kind=gremlins", "", nil)
		must(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("got %s", resp.Status)
		}
	})
}
