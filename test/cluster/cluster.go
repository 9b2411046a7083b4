// Package cluster runs a Kubernetes cluster on this machine: etcd, the API
// server, the controller manager and the scheduler as plain processes, and
// nodes of one of three kinds.
//
// Everything of one cluster lives in one directory, and everything it makes on
// the host is in the ledger of that directory, so that Down leaves nothing
// behind whatever happened to Up. Several clusters live side by side: ports,
// addresses and names are chosen among the free ones.
//
//	Up:   ledger → binaries → (network) → etcd, API server → controller
//	      manager, scheduler → (node) → ready
//	Down: processes → network interfaces → cgroups → files → ledger
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/cluster/build"
	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
	"github.com/fairlead-dev/fairlead/test/cluster/process"
)

// Nodes is the kind of nodes that a cluster has.
type Nodes string

// The kinds of nodes.
const (
	// None is a control plane alone: objects are stored and controllers act,
	// but no Pod runs. A test may run simulated nodes against it by itself.
	None Nodes = "none"
	// Simulated nodes are a test double: a program that says what a kubelet would say.
	Simulated Nodes = "simulated"
	// Real is one node with containerd, kubelet and kube-proxy. It needs root on Linux.
	Real Nodes = "real"
)

// Options say which cluster to bring up.
type Options struct {
	Dir     string    // the cluster's directory: absent or empty; default: a new temporary one
	Version string    // Kubernetes version without "v"; default: build.DefaultVersion
	Nodes   Nodes     // default: None
	Log     io.Writer // progress for a person; default: none
	// CacheDir holds the built programs; default: build.CacheDir().
	CacheDir string
	// Self is the hack/cluster program, which also runs as a background
	// process; default: built from this module with the go tool.
	Self string
	// Simulate are further flags of "hack/cluster simnode", for simulated nodes.
	Simulate []string
	// DieWithParent has the cluster's processes end when this process ends,
	// however it ends.
	DieWithParent bool
	// KeepOnFailure leaves a cluster that did not come up as it is, for a look
	// at its logs.
	KeepOnFailure bool

	madeDir bool
}

// ErrNotReady says that a directory holds a cluster whose Up did not come to its end.
var ErrNotReady = errors.New("cluster is not ready")

// Cluster is a running cluster.
type Cluster struct {
	dir    string
	ledger *ledger.Ledger
	config *rest.Config
}

// Up brings a cluster up and returns when it can be used. If it fails, it
// undoes what it did.
func Up(ctx context.Context, opts Options) (*Cluster, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	book, err := ledger.Create(opts.Dir, ledger.Record{
		ID:      newID(),
		Version: opts.Version,
		Nodes:   string(opts.Nodes),
		MadeDir: opts.madeDir,
	})
	if err != nil {
		return nil, fmt.Errorf("bring up a cluster: %w", err)
	}
	release, err := ledger.Lock(opts.Dir, 0)
	if err != nil {
		return nil, fmt.Errorf("bring up a cluster: %w", err)
	}
	s := &starter{opts: opts, ledger: book, id: book.Record().ID}
	err = s.run(ctx)
	release()
	if err != nil {
		err = fmt.Errorf("bring up a cluster in %s: %w", opts.Dir, err)
		if opts.KeepOnFailure {
			return nil, err
		}
		// The caller's context may be what ended Up; undoing still has to happen.
		return nil, errors.Join(err, Down(context.WithoutCancel(ctx), opts.Dir))
	}
	return Open(opts.Dir)
}

// Open returns the running cluster of a directory.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	book, err := ledger.Open(dir)
	if err != nil {
		return nil, err
	}
	if !book.Record().Ready {
		return nil, fmt.Errorf("%w: %q", ErrNotReady, dir)
	}
	c := &Cluster{dir: dir, ledger: book}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return nil, fmt.Errorf("open cluster %q: %w", dir, err)
	}
	c.config.QPS, c.config.Burst = 1000, 2000
	return c, nil
}

// Dir returns the cluster's directory.
func (c *Cluster) Dir() string { return c.dir }

// Record returns what the ledger knows of the cluster.
func (c *Cluster) Record() ledger.Record { return c.ledger.Record() }

// Kubeconfig returns the path of an administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, kubeconfigFile) }

// ClientCache returns the directory in which kubectl and Helm may keep what they asked
// the API server; it goes with the cluster, as nothing in a home directory would.
func (c *Cluster) ClientCache() string { return filepath.Join(c.dir, "client-cache") }

// RESTConfig returns an administrator's client configuration with a high rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Audit returns the API server's audit log.
func (c *Cluster) Audit() *audit.Log { return audit.Open(filepath.Join(c.dir, auditFile)) }

// Down ends the cluster and leaves nothing of it behind.
func (c *Cluster) Down(ctx context.Context) error { return Down(ctx, c.dir) }

// Dead returns the names of the processes that ought to run and do not.
func (c *Cluster) Dead() []string {
	var dead []string
	for _, p := range c.ledger.Record().Processes {
		if !process.Alive(p.PID, p.Start) {
			dead = append(dead, p.Name)
		}
	}
	return dead
}

func (o *Options) complete() error {
	if o.Version == "" {
		o.Version = build.DefaultVersion
	}
	if o.Nodes == "" {
		o.Nodes = None
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	switch o.Nodes {
	case None, Simulated:
	case Real:
		if os.Geteuid() != 0 {
			return errors.New("a real node needs root: containers, network interfaces and cgroups are made for it")
		}
	default:
		return fmt.Errorf("kind of nodes %q is not one of none, simulated, real", o.Nodes)
	}
	var err error
	if o.Dir == "" {
		o.madeDir = true
		o.Dir, err = os.MkdirTemp("", "fairlead-cluster-")
	} else {
		o.Dir, err = filepath.Abs(o.Dir)
	}
	return err
}

// newID draws the mark of a cluster.
func newID() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails, by its documentation
	return hex.EncodeToString(id[:])
}
