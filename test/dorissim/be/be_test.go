package be

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/wire"
)

func TestRoots(t *testing.T) {
	cases := map[string]struct {
		setting string
		want    []string
	}{
		"one path":                            {"/data", []string{"/data"}},
		"several paths":                       {"/a;/b;", []string{"/a", "/b"}},
		"a medium at the end is cut off":      {"/a.SSD;/b.hdd", []string{"/a", "/b"}},
		"options after commas are cut off":    {"/a,medium:ssd,capacity:50;/b.HDD,capacity:1", []string{"/a", "/b"}},
		"a dot elsewhere belongs to the path": {"/a.b/c;/d.e", []string{"/a.b/c", "/d.e"}},
		"blanks around entries do not matter": {" /a ; /b ", []string{"/a", "/b"}},
		"nothing at all gives no path":        {"", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Roots(c.setting)); diff != "" {
				t.Errorf("roots differ (-want +got):\n%s", diff)
			}
		})
	}
}

func text(s string) [][]*string { return [][]*string{{&s}} }

func TestStore(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore([]string{dir})
	must(t, err)
	must(t, s.replace(7, nil))
	must(t, s.write(wire.Write{ID: 7, Version: 2, Rows: text("two")}))
	must(t, s.write(wire.Write{ID: 7, Version: 3, Rows: text("left behind by a write that failed elsewhere")}))
	must(t, s.write(wire.Write{ID: 7, Version: 3, Rows: text("three")}))
	if err := s.write(wire.Write{ID: 7, Version: 5}); err == nil {
		t.Error("a version was skipped")
	}
	if err := s.write(wire.Write{ID: 8, Version: 2}); err == nil {
		t.Error("a tablet came from nowhere")
	}
	f, err := os.OpenFile(s.file(7), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"v":4,"rows":[["half a li`)
	must(t, err)
	must(t, f.Close())

	s, err = openStore([]string{dir})
	must(t, err)
	if got := s.report()[7].Version; got != 3 {
		t.Errorf("after a crash the version is %d, want 3", got)
	}
	rows, err := s.scan(wire.Tablet{ID: 7, Version: 3})
	must(t, err)
	if len(rows) != 2 || *rows[1][0] != "three" {
		t.Errorf("got %d rows", len(rows))
	}
	if rows, err = s.scan(wire.Tablet{ID: 7, Version: 2}); err != nil || len(rows) != 1 {
		t.Errorf("the earlier version has %d rows, error %v", len(rows), err)
	}
	if _, err := s.scan(wire.Tablet{ID: 7, Version: 4}); err == nil {
		t.Error("a version that is not there was read")
	}
	must(t, s.drop(7))
	if _, err := os.Stat(filepath.Dir(s.file(7))); !os.IsNotExist(err) {
		t.Errorf("the dropped tablet's directory: %v", err)
	}
}

// TestStopping follows a backend that is told to stop while a read runs: the health body and the heartbeat say so, new
// reads are refused, and the running one ends well.
func TestStopping(t *testing.T) {
	home := t.TempDir()
	conf := filepath.Join(home, "be.conf")
	must(t, os.WriteFile(conf, []byte("be_port=0\nbrpc_port=0\nwebserver_port=0\nheartbeat_service_port=0\ngrace_shutdown_wait_seconds=20\n"), 0o644))
	faults := fault.New(time.Now)
	n, err := Open(Options{
		Home: home, Conf: conf, Version: "2.1.8", Bind: "127.0.0.1", Getenv: os.LookupEnv, Now: time.Now, Faults: faults,
		Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	must(t, n.store.replace(1, nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	addr := func(key string) string { return fmt.Sprintf("127.0.0.1:%d", n.Port(key)) }
	ask := func(key, path string, in, out any) error {
		return wire.Service{Client: http.DefaultClient, Addr: addr(key), Path: path}.Call(t.Context(), in, out)
	}
	var alive wire.Alive
	must(t, ask("heartbeat_service_port", wire.PathHeartbeat, wire.Heartbeat{ClusterID: 5}, &alive))
	if alive.Error != "" || alive.Shutdown {
		t.Errorf("got %+v", alive)
	}
	must(t, faults.Parse("hang"))
	read := make(chan error, 1)
	go func() { read <- ask("brpc_port", wire.PathScan, wire.Tablet{ID: 1, Version: 1}, nil) }()
	await(t, "the read runs", func() bool { return n.fragments.Load() == 1 })
	stop()
	await(t, "new reads are refused", func() bool {
		return n.exiting.Load() && ask("brpc_port", wire.PathScan, wire.Tablet{ID: 1, Version: 1}, nil) != nil
	})
	faults.Clear("")
	must(t, <-read)
	if err := ask("heartbeat_service_port", wire.PathHeartbeat, wire.Heartbeat{ClusterID: 5}, &alive); err == nil && !alive.Shutdown {
		t.Error("the heartbeat of a stopping backend does not say so")
	}
	must(t, <-ended)
	if n.fragments.Load() != 0 {
		t.Error("it ended with a running read")
	}
}

func TestHealthIsInTheBody(t *testing.T) {
	n := &Node{}
	for _, c := range []struct {
		ready, exiting bool
		want           string
	}{{false, false, "Server is not available"}, {true, false, "OK"}, {true, true, "Server is not available"}} {
		n.ready.Store(c.ready)
		n.exiting.Store(c.exiting)
		w := &recorder{header: http.Header{}}
		n.health(w, nil)
		var body struct{ Status string }
		must(t, json.Unmarshal(w.body, &body))
		if body.Status != c.want || w.code != 0 {
			t.Errorf("ready %v, exiting %v: %q with code %d", c.ready, c.exiting, body.Status, w.code)
		}
	}
}

type recorder struct {
	header http.Header
	body   []byte
	code   int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(b []byte) (int, error) { r.body = append(r.body, b...); return len(b), nil }

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
