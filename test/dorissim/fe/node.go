// Package fe is the stand-in's frontend: it serves SQL and HTTP, keeps the metadata with the other frontends (package
// quorum), and as master sends heartbeats to the backends and moves tablets.
//
// Its ports are those of fe.conf: edit_log_port (metadata among frontends), rpc_port (statements that a frontend
// passes on to the master), query_port (SQL) and http_port. As in Doris, only edit_log_port is open before the
// frontend has found its place in the cluster.
package fe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/conf"
	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/mysqlwire"
	"github.com/fairlead-dev/fairlead/test/dorissim/quorum"
)

// Options are what a frontend is made of.
type Options struct {
	// Home is DORIS_HOME, Conf is fe.conf's path.
	Home, Conf string
	// Host is the name or address that the others know this frontend by.
	Host string
	// Helper is a frontend of an existing cluster (host:edit_log_port) to join through; empty on the first start of
	// the first frontend.
	Helper string
	// Recover makes this frontend the only one of its cluster.
	Recover bool
	Version string
	// Bind is the address to listen on; empty means all.
	Bind   string
	Pace   Pace
	Getenv func(string) (string, bool)
	Now    func() time.Time
	Random func() float64
	Faults *fault.Set
	Log    *slog.Logger
	// Transport carries calls to other nodes; nil is the usual one.
	Transport http.RoundTripper
}

// Pace sets how fast a frontend does what the real one does in tens of seconds.
type Pace struct {
	Quorum quorum.Timing
	// Heartbeat is the interval of heartbeats to backends (real: 10 s).
	Heartbeat time.Duration
	// Schedule is the interval of the tablet scheduler, Moves how many tablets it moves or mends each time.
	Schedule time.Duration
	Moves    int
}

// DefaultPace is that of a container.
var DefaultPace = Pace{
	Quorum: quorum.Timing{
		Heartbeat: 300 * time.Millisecond, ElectionMin: 2 * time.Second, ElectionMax: 4 * time.Second, Commit: 8 * time.Second,
	},
	Heartbeat: time.Second, Schedule: time.Second, Moves: 4,
}

// Node is a frontend.
type Node struct {
	opt     Options
	custom  string
	metaDir string
	self    string
	quorum  *quorum.Node
	client  *http.Client
	start   time.Time
	sql     *mysqlwire.Server
	connID  atomic.Uint32
	seen    reports
	making  atomic.Int32 // how many tables are being made

	mu        sync.Mutex
	values    conf.Values
	listeners map[string]net.Listener
	writing   sync.Mutex // one INSERT at a time
}

// Open reads configuration and metadata and takes the metadata port.
func Open(opt Options) (*Node, error) {
	values, custom, err := conf.Load(opt.Conf, "fe_custom.conf", conf.Properties, opt.Getenv)
	if err != nil {
		return nil, err
	}
	n := &Node{
		opt: opt, values: values, custom: custom, start: opt.Now(), listeners: map[string]net.Listener{},
		client:  &http.Client{Timeout: 5 * time.Second, Transport: opt.Transport},
		metaDir: values.Text("meta_dir", filepath.Join(opt.Home, "doris-meta")),
	}
	if err := n.listen("edit_log_port", 9010); err != nil {
		return nil, err
	}
	n.self = meta.Addr(opt.Host, n.port("edit_log_port"))
	n.seen.init()
	n.quorum, err = quorum.Open(quorum.Options{
		Self: n.self, Dir: n.metaDir, Timing: opt.Pace.Quorum, Now: opt.Now, Random: opt.Random, Log: opt.Log,
		Transport: opt.Transport, Tell: n.tell, Hear: n.hear, Report: n.report,
	})
	if err != nil {
		_ = n.listeners["edit_log_port"].Close()
		return nil, err
	}
	return n, nil
}

func (n *Node) listen(key string, def int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(n.opt.Bind, strconv.Itoa(n.values.Int(key, def))))
	if err != nil {
		return fmt.Errorf("listen on %s: %w", key, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[key] = l
	return nil
}

func (n *Node) port(key string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l, ok := n.listeners[key]; ok {
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			return tcp.Port
		}
	}
	return n.values.Int(key, defaultPorts[key])
}

var defaultPorts = map[string]int{"http_port": 8030, "rpc_port": 9020, "query_port": 9030, "edit_log_port": 9010}

// Run finds the frontend's place in the cluster and serves until the context ends or the cluster drops it.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	n.serveHTTP(ctx, &wg, "edit_log_port", n.quorum.Handler())
	err := n.takePlace(ctx)
	if err == nil {
		wg.Go(func() { n.quorum.Run(ctx) })
		err = n.quorum.AwaitReady(ctx)
	}
	if err == nil {
		err = n.openPorts(ctx, &wg)
	}
	if err != nil {
		cancel(err)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	wg.Go(func() { n.heartbeats(ctx) })
	wg.Go(func() { n.schedule(ctx) })
	n.opt.Log.Info("frontend serves", "self", n.self, "version", n.opt.Version, "master", n.quorum.Status().Master)
	select {
	case <-ctx.Done():
		return nil
	case <-n.quorum.Removed():
		err := fmt.Errorf("current node %s is not added to the cluster, will exit", n.self)
		cancel(err)
		return err
	}
}

func (n *Node) openPorts(ctx context.Context, wg *sync.WaitGroup) error {
	for _, key := range []string{"http_port", "rpc_port", "query_port"} {
		if err := n.listen(key, defaultPorts[key]); err != nil {
			return err
		}
	}
	encrypted, err := n.values.TLS()
	if err != nil {
		return err
	}
	if encrypted != nil {
		n.mu.Lock()
		n.listeners["http_port"] = tls.NewListener(n.listeners["http_port"], encrypted)
		n.mu.Unlock()
	}
	n.serveHTTP(ctx, wg, "http_port", n.opt.Faults.Wrap(n.webHandler()))
	n.serveHTTP(ctx, wg, "rpc_port", n.rpcHandler())
	n.sql = n.sqlServer()
	n.sql.TLS, n.sql.OnlyTLS = encrypted, encrypted != nil
	wg.Go(func() {
		if err := n.opt.Faults.Accept(ctx, n.listeners["query_port"], func(c net.Conn) { n.serveSQL(ctx, c) }); err != nil {
			n.opt.Log.Error("serve SQL", "error", err)
		}
	})
	return nil
}

func (n *Node) serveHTTP(ctx context.Context, wg *sync.WaitGroup, key string, h http.Handler) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	l := n.listeners[key]
	wg.Go(func() { _ = server.Serve(l) })
	wg.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
}
