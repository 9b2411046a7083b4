// Package contract states, as tests, what the operator relies on in Doris. They run against the stand-in's nodes in
// this process. The tests of TestStatements ask for nothing but SQL and can be pointed at another Doris by the
// environment: DORIS_CONTRACT_FE=host:query_port, DORIS_CONTRACT_USER, DORIS_CONTRACT_PASSWORD.
package contract

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// patience bounds every wait; nothing takes that long unless it is broken.
const patience = 30 * time.Second

func newCluster(t *testing.T) *local.Cluster {
	t.Helper()
	c := &local.Cluster{Dir: t.TempDir(), Version: "2.1.8", Pace: local.FastPace, Log: testLog(t)}
	t.Cleanup(func() {
		if err := c.StopAll(); err != nil {
			t.Logf("a node ended with: %v", err)
		}
	})
	return c
}

// running is the context of nodes: it outlives the test's own, so that the cleanup decides how they end.
func running(t *testing.T) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}

func testLog(t *testing.T) *slog.Logger {
	t.Helper()
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return slog.New(slog.DiscardHandler)
}

// start brings up a cluster: the first FE alone, the others through it, then the BEs.
func start(t *testing.T, fes, bes int) *local.Cluster {
	t.Helper()
	c := newCluster(t)
	for range fes {
		addFE(t, c, "FOLLOWER")
	}
	for range bes {
		addBE(t, c)
	}
	if bes > 0 {
		eventually(t, "all backends alive", func() bool {
			return count(rows(t, c.FEs[0], "show backends"), "Alive", "true") == bes
		})
	}
	return c
}

func addFE(t *testing.T, c *local.Cluster, role string) *local.FE {
	t.Helper()
	f, err := c.NewFE("")
	must(t, err)
	helper := ""
	if len(c.FEs) > 1 {
		helper = c.FEs[0].Addr()
		exec(t, c.FEs[0], fmt.Sprintf("ALTER SYSTEM ADD %s %q", role, f.Addr()))
	}
	must(t, f.Start(running(t), helper))
	awaitServing(t, f)
	if helper != "" {
		eventually(t, "the new FE has joined", func() bool {
			return value(rows(t, c.FEs[0], "show frontends"), "EditLogPort", fmt.Sprint(f.EditLogPort), "Join") == "true"
		})
	}
	return f
}

func addBE(t *testing.T, c *local.Cluster) *local.BE {
	t.Helper()
	b, err := c.NewBE("grace_shutdown_wait_seconds = 2")
	must(t, err)
	must(t, b.Start(running(t)))
	exec(t, c.FEs[0], fmt.Sprintf("ALTER SYSTEM ADD BACKEND %q", b.Addr()))
	return b
}

func awaitServing(t *testing.T, f *local.FE) {
	t.Helper()
	eventually(t, "the FE serves", func() bool { return healthCode(f) == 0 })
}

// healthCode is the code of the FE's health body, or -1 if there is none.
func healthCode(f *local.FE) int {
	var body struct{ Code int }
	if err := getJSON(f.URL()+"/api/health", &body); err != nil {
		return -1
	}
	return body.Code
}

var client = &http.Client{Timeout: 3 * time.Second}

func getJSON(url string, out any) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return json.NewDecoder(resp.Body).Decode(out)
}

type row map[string]string

// query reads all rows by column names.
func query(ctx context.Context, db *sql.DB, statement string) ([]row, error) {
	res, err := db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Close() }()
	names, err := res.Columns()
	if err != nil {
		return nil, err
	}
	var out []row
	for res.Next() {
		values := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := res.Scan(into...); err != nil {
			return nil, err
		}
		r := row{}
		for i, name := range names {
			r[name] = values[i].String
		}
		out = append(out, r)
	}
	return out, res.Err()
}

func tryQuery(f *local.FE, statement string) ([]row, error) {
	db, err := f.Open("root", "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return query(ctx, db, statement)
}

func rows(t *testing.T, f *local.FE, statement string) []row {
	t.Helper()
	out, err := tryQuery(f, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return out
}

func tryExec(f *local.FE, statement string) error {
	_, err := tryQuery(f, statement)
	return err
}

func exec(t *testing.T, f *local.FE, statement string) {
	t.Helper()
	if err := tryExec(f, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func count(rs []row, column, want string) int {
	n := 0
	for _, r := range rs {
		if r[column] == want {
			n++
		}
	}
	return n
}

// value finds the row whose key column has the key, and returns another column of it.
func value(rs []row, keyColumn, key, column string) string {
	for _, r := range rs {
		if r[keyColumn] == key {
			return r[column]
		}
	}
	return ""
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
