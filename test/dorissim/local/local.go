// Package local runs the stand-in's nodes inside the calling process, on free loopback ports, for tests.
package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/be"
	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/fe"
	"github.com/fairlead-dev/fairlead/test/dorissim/quorum"
)

// FastPace is a pace for tests: everything happens within a second or two.
var FastPace = fe.Pace{
	Quorum: quorum.Timing{
		Heartbeat: 100 * time.Millisecond, ElectionMin: 700 * time.Millisecond, ElectionMax: 1400 * time.Millisecond, Commit: 5 * time.Second,
	},
	Heartbeat: 200 * time.Millisecond, Schedule: 100 * time.Millisecond, Moves: 5,
}

// Cluster is a directory with nodes in it.
type Cluster struct {
	Dir     string
	Version string
	Pace    fe.Pace
	Log     *slog.Logger
	// Transport carries calls between nodes; nil is the usual one.
	Transport http.RoundTripper
	FEs       []*FE
	BEs       []*BE
}

// process is a node that runs or does not.
type process struct {
	stop context.CancelFunc
	done chan struct{}
	err  error // set before done is closed
}

func (p *process) start(ctx context.Context, run func(context.Context) error) {
	ctx, p.stop = context.WithCancel(ctx)
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		p.err = run(ctx)
	}()
}

// Stop ends the node and waits until it has ended. A node that does not run is left alone.
func (p *process) Stop() error {
	if p.stop == nil {
		return nil
	}
	p.stop()
	p.stop = nil
	return p.Wait()
}

// Wait returns the node's error once it has ended by itself.
func (p *process) Wait() error {
	<-p.done
	return p.err
}

// FE is a frontend with its directory and ports, which outlive its runs.
type FE struct {
	process
	cluster    *Cluster
	Home, Conf string
	// Host is the name that the others know it by: loopback unless it is set before
	// the start. The cluster's Transport has to lead there.
	Host                                  string
	EditLogPort, QueryPort, HTTPPort, RPC int
	Faults                                *fault.Set
}

// BE is a backend with its directory and ports, which outlive its runs.
type BE struct {
	process
	node                                  *be.Node
	cluster                               *Cluster
	Home, Conf                            string
	HeartbeatPort, BePort, HTTPPort, Brpc int
	Faults                                *fault.Set
}

const loopback = "127.0.0.1"

func url(port int) string { return "http://" + net.JoinHostPort(loopback, strconv.Itoa(port)) }

// Ports are given out below those that the kernel takes for outgoing connections, each
// once in a process, so that none is taken between here and the start of a node.
const (
	firstPort = 20000
	pastPorts = 32000
)

var nextPort struct {
	sync.Mutex
	port int
}

// ports finds free ports.
func ports(n int) ([]int, error) {
	nextPort.Lock()
	defer nextPort.Unlock()
	if nextPort.port == 0 { // other processes begin elsewhere
		nextPort.port = firstPort + rand.IntN(pastPorts-firstPort)
	}
	var out []int
	for range pastPorts - firstPort {
		if len(out) == n {
			return out, nil
		}
		port := nextPort.port
		if nextPort.port++; nextPort.port == pastPorts {
			nextPort.port = firstPort
		}
		if l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port))); err == nil {
			_ = l.Close()
			out = append(out, port)
		}
	}
	return nil, errors.New("find a free port: none is left")
}

// NewFE lays out a frontend without starting it. The extra lines go to its fe.conf.
func (c *Cluster) NewFE(extra string) (*FE, error) {
	p, err := ports(4)
	if err != nil {
		return nil, err
	}
	f := &FE{
		cluster: c, Home: filepath.Join(c.Dir, fmt.Sprintf("fe-%d", len(c.FEs))), Host: loopback,
		EditLogPort: p[0], QueryPort: p[1], HTTPPort: p[2], RPC: p[3],
	}
	f.Conf = filepath.Join(f.Home, "conf", "fe.conf")
	text := fmt.Sprintf("edit_log_port = %d\nquery_port = %d\nhttp_port = %d\nrpc_port = %d\n%s\n", p[0], p[1], p[2], p[3], extra)
	c.FEs = append(c.FEs, f)
	return f, writeConf(f.Conf, text)
}

// NewBE lays out a backend without starting it.
func (c *Cluster) NewBE(extra string) (*BE, error) {
	p, err := ports(4)
	if err != nil {
		return nil, err
	}
	b := &BE{
		cluster: c, Home: filepath.Join(c.Dir, fmt.Sprintf("be-%d", len(c.BEs))),
		HeartbeatPort: p[0], BePort: p[1], HTTPPort: p[2], Brpc: p[3],
	}
	b.Conf = filepath.Join(b.Home, "conf", "be.conf")
	text := fmt.Sprintf("heartbeat_service_port = %d\nbe_port = %d\nwebserver_port = %d\nbrpc_port = %d\n%s\n", p[0], p[1], p[2], p[3], extra)
	c.BEs = append(c.BEs, b)
	return b, writeConf(b.Conf, text)
}

func writeConf(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("lay out node: %w", err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("lay out node: %w", err)
	}
	return nil
}

// Start runs the frontend. The helper is another frontend's address, or empty for the first.
func (f *FE) Start(ctx context.Context, helper string) error {
	f.Faults = fault.New(time.Now)
	node, err := fe.Open(fe.Options{
		Home: f.Home, Conf: f.Conf, Host: f.Host, Helper: helper, Version: f.cluster.Version, Bind: loopback,
		Pace: f.cluster.Pace, Getenv: os.LookupEnv, Now: time.Now, Random: rand.Float64, Faults: f.Faults, Log: f.cluster.Log,
		Transport: f.cluster.Transport,
	})
	if err != nil {
		return err
	}
	f.start(ctx, node.Run)
	return nil
}

// Addr is the frontend's identity.
func (f *FE) Addr() string { return fmt.Sprintf("%s:%d", f.Host, f.EditLogPort) }

// URL is the base of the frontend's HTTP API.
func (f *FE) URL() string { return url(f.HTTPPort) }

// Open returns a database handle for an account of this frontend.
func (f *FE) Open(user, password string) (*sql.DB, error) {
	return Open(fmt.Sprintf("%s:%d", loopback, f.QueryPort), user, password)
}

// Open returns a database handle that keeps no connections.
func Open(addr, user, password string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = user, password, "tcp", addr
	config.Timeout, config.ReadTimeout, config.WriteTimeout = 2*time.Second, 10*time.Second, 10*time.Second
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(0)
	return db, nil
}

// Start runs the backend.
func (b *BE) Start(ctx context.Context) error {
	b.Faults = fault.New(time.Now)
	node, err := be.Open(be.Options{
		Home: b.Home, Conf: b.Conf, Version: b.cluster.Version, Bind: loopback, Getenv: os.LookupEnv, Now: time.Now,
		Faults: b.Faults, Log: b.cluster.Log, Transport: b.cluster.Transport,
	})
	if err != nil {
		return err
	}
	b.node = node
	b.start(ctx, node.Run)
	return nil
}

// Kill ends the backend at once, as a crash would.
func (b *BE) Kill() error {
	b.node.Kill()
	b.stop()
	b.stop = nil
	return b.Wait()
}

// Addr is the backend's identity.
func (b *BE) Addr() string { return fmt.Sprintf("%s:%d", loopback, b.HeartbeatPort) }

// URL is the base of the backend's HTTP API.
func (b *BE) URL() string { return url(b.HTTPPort) }

// StopAll ends all nodes.
func (c *Cluster) StopAll() error {
	var errs []error
	for _, b := range c.BEs {
		if b.stop != nil {
			errs = append(errs, b.Kill())
		}
	}
	for _, f := range c.FEs {
		errs = append(errs, f.Stop())
	}
	return errors.Join(errs...)
}
