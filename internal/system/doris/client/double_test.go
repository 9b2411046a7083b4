package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/mysqlwire"
)

// patience bounds waits for what must come.
const patience = 30 * time.Second

// short is the call timeout of tests that run into it, slack what a call may
// take beyond it on a busy machine.
const (
	short = 400 * time.Millisecond
	slack = 5 * time.Second
)

// sqlDouble is a test double of a frontend's SQL port: it answers every
// statement by a function.
type sqlDouble struct {
	user, password string
	tls            *tls.Config
	answer         func(sql string) (*mysql.Result, error)
}

func (s *sqlDouble) Query(sql string) (*mysql.Result, error) { return s.answer(sql) }
func (s *sqlDouble) Use(string) error                        { return nil }
func (s *sqlDouble) Close()                                  {}

// start serves until the test ends and returns where.
func (s *sqlDouble) start(t *testing.T) Node {
	t.Helper()
	server := &mysqlwire.Server{
		Version: "5.7.99", TLS: s.tls,
		Salt: func() []byte { return []byte("12345678901234567890") },
		Hash: func(user string) (string, bool) { return meta.PasswordHash(s.password), user == s.user },
		Open: func(string, string, uint32) mysqlwire.Session { return s },
	}
	return serve(t, func(c net.Conn) { server.Serve(c, 1) })
}

// serve hands connections to a function until the test ends.
func serve(t *testing.T, handle func(net.Conn)) Node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				handle(c)
			}()
		}
	}()
	return nodeOf(t, l.Addr().String())
}

func nodeOf(t *testing.T, addr string) Node {
	t.Helper()
	host, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(addr, "http://"), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return Node{Host: host, Port: int32(n)}
}

// texts makes a result of one column set and its rows.
func texts(t testing.TB, columns []string, rows ...[]string) *mysql.Result {
	t.Helper()
	cells := make([][]any, len(rows))
	for i, r := range rows {
		for _, v := range r {
			cells[i] = append(cells[i], []byte(v))
		}
	}
	res, err := mysqlwire.Rows(columns, cells)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// httpDouble is a test double of a node's HTTP port.
func httpDouble(t *testing.T, handle http.HandlerFunc) Node {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return nodeOf(t, s.URL)
}

// body answers every request with a text.
func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// counted counts the connections that are open.
type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// watch returns a dialer and the number of connections of it: ever opened, and
// open now.
func watch() (Dial, *atomic.Int64, *atomic.Int64) {
	var ever, open atomic.Int64
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		ever.Add(1)
		open.Add(1)
		return &counted{Conn: c, open: &open}, nil
	}, &ever, &open
}

// startSim runs frontends and backends of the stand-in, a test double.
func startSim(t *testing.T, version string, fes, bes int) *local.Cluster {
	t.Helper()
	c := &local.Cluster{Dir: t.TempDir(), Version: version, Pace: local.FastPace, Log: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() {
		if err := c.StopAll(); err != nil {
			t.Logf("a node ended with: %v", err)
		}
	})
	ctx := context.WithoutCancel(t.Context())
	doris := New(Options{Credentials: Credentials{User: "root"}})
	for i := range fes {
		f, err := c.NewFE("")
		must(t, err)
		helper := ""
		if i > 0 {
			helper = c.FEs[0].Addr()
			must(t, run(ctx, doris, sqlNode(c.FEs[0]), fmt.Sprintf("ALTER SYSTEM ADD FOLLOWER %q", f.Addr())))
		}
		must(t, f.Start(ctx, helper))
		eventually(t, "the frontend serves", func() bool {
			h, err := doris.FrontendHealth(ctx, webNode(f))
			return err == nil && h.Ready
		})
	}
	for range bes {
		b, err := c.NewBE("")
		must(t, err)
		must(t, b.Start(ctx))
		must(t, run(ctx, doris, sqlNode(c.FEs[0]), fmt.Sprintf("ALTER SYSTEM ADD BACKEND %q", b.Addr())))
	}
	eventually(t, "all nodes are alive", func() bool { return alive(ctx, doris, c) == fes+bes })
	return c
}

func alive(ctx context.Context, doris *Doris, c *local.Cluster) int {
	n := 0
	if len(c.FEs) == 0 {
		return 0
	}
	list, _ := doris.Frontends(ctx, sqlNode(c.FEs[0]))
	for _, f := range list {
		if f.Alive && f.Join {
			n++
		}
	}
	bes, _ := doris.Backends(ctx, sqlNode(c.FEs[0]))
	for _, b := range bes {
		if b.Alive {
			n++
		}
	}
	return n
}

func run(ctx context.Context, doris *Doris, at Node, sql string) error {
	_, err := doris.query(ctx, at, statement{op: "prepare", sql: sql})
	return err
}

func sqlNode(f *local.FE) Node  { return Node{Host: "127.0.0.1", Port: int32(f.QueryPort)} }
func webNode(f *local.FE) Node  { return Node{Host: "127.0.0.1", Port: int32(f.HTTPPort)} }
func backNode(b *local.BE) Node { return Node{Host: "127.0.0.1", Port: int32(b.HTTPPort)} }
func root() Options             { return Options{Credentials: Credentials{User: "root"}} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// wantKind fails unless the error is of a kind.
func wantKind(t *testing.T, err, kind error) *Error {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error is %v, want %v", err, kind)
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error %v is not one of this package", err)
	}
	return e
}

// serveAndClose returns where nobody listens any more.
func serveAndClose(t *testing.T) Node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return nodeOf(t, l.Addr().String())
}

// wantNoSecret fails if an error holds a secret, however it is printed.
func wantNoSecret(t *testing.T, err error, secret string) {
	t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if text := fmt.Sprintf(verb, err); strings.Contains(text, secret) {
			t.Errorf("the error holds a secret: %s", text)
		}
	}
}
