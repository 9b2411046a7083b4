// Package be is the stand-in's backend: it answers the master's heartbeats, keeps tablets in its storage roots, and
// serves the health and configuration calls of a Doris BE.
//
// Its ports are those of be.conf: heartbeat_service_port (heartbeats), be_port (tablet work), brpc_port (reads) and
// webserver_port (HTTP API). Stopping is graceful: first the health body and the heartbeats say so, then running reads
// are waited for.
package be

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/conf"
	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/wire"
)

// Options are what a backend is made of.
type Options struct {
	// Home is DORIS_HOME; relative places of be.conf lie below it.
	Home string
	// Conf is be.conf's path.
	Conf    string
	Version string
	// Bind is the address to listen on; empty means all.
	Bind   string
	Getenv func(string) (string, bool)
	Now    func() time.Time
	Faults *fault.Set
	Log    *slog.Logger
	// Transport carries calls to other nodes; nil is the usual one.
	Transport http.RoundTripper
}

// DefaultGrace is how long a stopping backend waits for running reads unless be.conf says otherwise. The real one
// waits 120 s.
const DefaultGrace = 5 * time.Second

// noticeWait bounds how long a stopping backend waits for the master to hear of it.
const noticeWait = 2500 * time.Millisecond

// Node is a backend.
type Node struct {
	opt    Options
	custom string
	store  *store
	start  time.Time
	client *http.Client

	exiting   atomic.Bool
	ready     atomic.Bool
	fragments atomic.Int64
	noticed   chan struct{}
	killed    chan struct{}
	notice    sync.Once

	mu        sync.Mutex
	values    conf.Values
	clusterID int64
	listeners map[string]net.Listener
}

// ports are the keys of be.conf with their defaults.
var ports = []struct {
	key string
	def int
}{{"heartbeat_service_port", 9050}, {"be_port", 9060}, {"webserver_port", 8040}, {"brpc_port", 8060}}

// Open reads the configuration and the storage and takes the ports.
func Open(opt Options) (*Node, error) {
	values, custom, err := conf.Load(opt.Conf, "be_custom.conf", conf.Lines, opt.Getenv)
	if err != nil {
		return nil, err
	}
	roots := Roots(values.Text("storage_root_path", filepath.Join(opt.Home, "storage")))
	s, err := openStore(roots)
	if err != nil {
		return nil, err
	}
	id, err := s.clusterID()
	if err != nil {
		return nil, err
	}
	n := &Node{
		opt: opt, custom: custom, store: s, start: opt.Now(), values: values, clusterID: id,
		client: &http.Client{Timeout: 10 * time.Second, Transport: opt.Transport}, noticed: make(chan struct{}),
		killed:    make(chan struct{}),
		listeners: map[string]net.Listener{},
	}
	encrypted, err := values.TLS()
	if err != nil {
		return nil, err
	}
	for _, p := range ports {
		addr := net.JoinHostPort(opt.Bind, strconv.Itoa(values.Int(p.key, p.def)))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			n.closeListeners()
			return nil, fmt.Errorf("listen on %s: %w", p.key, err)
		}
		if n.listeners[p.key] = l; p.key == "webserver_port" && encrypted != nil {
			n.listeners[p.key] = tls.NewListener(l, encrypted)
		}
	}
	return n, nil
}

func (n *Node) closeListeners() {
	for _, l := range n.listeners {
		_ = l.Close()
	}
}

// Port returns the number that a port key was given.
func (n *Node) Port(key string) int {
	if tcp, ok := n.listeners[key].Addr().(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// Run serves until the context ends and then stops gracefully.
func (n *Node) Run(ctx context.Context) error {
	handlers := map[string]http.Handler{
		"heartbeat_service_port": n.heartbeatHandler(), "be_port": n.tabletHandler(),
		"webserver_port": n.opt.Faults.Wrap(n.webHandler()), "brpc_port": n.scanHandler(),
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	failed := make(chan error, len(ports))
	for _, p := range ports {
		server := &http.Server{Handler: handlers[p.key], ReadHeaderTimeout: 10 * time.Second}
		wg.Go(func() {
			if err := server.Serve(n.listeners[p.key]); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", p.key, err)
			}
		})
		wg.Go(func() {
			<-serving.Done()
			_ = server.Close()
		})
	}
	n.ready.Store(true)
	n.opt.Log.Info("backend started", "version", n.opt.Version, "heartbeatPort", n.Port("heartbeat_service_port"))
	var err error
	select {
	case <-n.killed:
	case <-ctx.Done():
		n.drain()
	case err = <-failed:
	}
	stop()
	wg.Wait()
	return err
}

// Kill makes Run return at once, as a crash would. It is called at most once.
func (n *Node) Kill() { close(n.killed) }

// drain tells the world that the backend stops and waits for what still runs.
func (n *Node) drain() {
	n.exiting.Store(true)
	n.mu.Lock()
	grace := DefaultGrace
	if s := n.values.Int("grace_shutdown_wait_seconds", -1); s >= 0 {
		grace = time.Duration(s) * time.Second
	}
	known := n.clusterID != 0
	n.mu.Unlock()
	n.opt.Log.Info("stopping", "fragments", n.fragments.Load(), "grace", grace)
	if known {
		select {
		case <-n.noticed:
		case <-time.After(min(grace, noticeWait)):
		}
	}
	deadline := time.After(grace)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n.fragments.Load() > 0 {
		select {
		case <-deadline:
			n.opt.Log.Warn("stopped with running fragments", "fragments", n.fragments.Load())
			return
		case <-tick.C:
		}
	}
}

func (n *Node) heartbeatHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.PathHeartbeat, wire.Handle(n.onHeartbeat))
	return mux
}

// onHeartbeat answers the master of the cluster that the storage belongs to, and refuses others.
func (n *Node) onHeartbeat(ctx context.Context, in wire.Heartbeat) (wire.Alive, error) {
	if n.opt.Faults.Active(fault.Refuse) {
		return wire.Alive{}, errors.New("heartbeats are refused on request")
	}
	if err := n.opt.Faults.Wait(ctx, fault.Hang); err != nil {
		return wire.Alive{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.clusterID == 0 {
		if err := n.store.setClusterID(in.ClusterID); err != nil {
			return wire.Alive{}, err
		}
		n.clusterID = in.ClusterID
	}
	if n.clusterID != in.ClusterID {
		return wire.Alive{Error: fmt.Sprintf("invalid cluster id: %d. ignore.", in.ClusterID)}, nil
	}
	exiting := n.exiting.Load()
	if exiting {
		n.notice.Do(func() { close(n.noticed) })
	}
	total, free := capacity(n.store.roots[0])
	return wire.Alive{
		Version: n.opt.Version, NodeRole: n.values.Text("be_node_role", "mix"),
		BePort: n.Port("be_port"), HTTPPort: n.Port("webserver_port"), BrpcPort: n.Port("brpc_port"),
		ArrowPort: n.values.Int("arrow_flight_sql_port", -1), StartTimeMs: n.start.UnixMilli(), Shutdown: exiting,
		Fragments: int(n.fragments.Load()), Cores: runtime.NumCPU(), TotalBytes: total, FreeBytes: free, MemByte: memory(),
		Tablets: n.store.report(),
	}, nil
}

func (n *Node) tabletHandler() http.Handler {
	type none struct{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.PathCreate, wire.Handle(func(_ context.Context, t wire.Tablet) (none, error) {
		return none{}, n.store.replace(t.ID, nil)
	}))
	mux.HandleFunc("POST "+wire.PathWrite, wire.Handle(func(_ context.Context, w wire.Write) (none, error) {
		return none{}, n.store.write(w)
	}))
	mux.HandleFunc("POST "+wire.PathDrop, wire.Handle(func(_ context.Context, t wire.Tablet) (none, error) {
		return none{}, n.store.drop(t.ID)
	}))
	mux.HandleFunc("POST "+wire.PathFetch, wire.Handle(func(_ context.Context, t wire.Tablet) ([]wire.Batch, error) {
		return n.store.read(t.ID)
	}))
	mux.HandleFunc("POST "+wire.PathClone, wire.Handle(func(ctx context.Context, c wire.Clone) (none, error) {
		return none{}, n.clone(ctx, c)
	}))
	return mux
}

func (n *Node) clone(ctx context.Context, c wire.Clone) error {
	var batches []wire.Batch
	err := wire.Service{Client: n.client, Addr: c.Source, Path: wire.PathFetch}.Call(ctx, wire.Tablet{ID: c.ID, Version: c.Version}, &batches)
	if err != nil {
		return fmt.Errorf("clone tablet %d: %w", c.ID, err)
	}
	kept := batches[:0]
	have := int64(1)
	for _, b := range batches {
		if b.Version <= c.Version {
			kept, have = append(kept, b), b.Version
		}
	}
	if have < c.Version {
		return fmt.Errorf("clone tablet %d: the source has version %d, not %d", c.ID, have, c.Version)
	}
	return n.store.replace(c.ID, kept)
}

func (n *Node) scanHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.PathScan, wire.Handle(func(ctx context.Context, t wire.Tablet) ([][]*string, error) {
		if n.exiting.Load() {
			return nil, errors.New("the backend is shutting down")
		}
		n.fragments.Add(1)
		defer n.fragments.Add(-1)
		if err := n.opt.Faults.Wait(ctx, fault.Hang); err != nil {
			return nil, err
		}
		return n.store.scan(t)
	}))
	return mux
}
