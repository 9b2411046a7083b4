// Package inpods runs processes of the stand-in for Doris, a test double, for simulated
// Pods: one for each, which starts with the file that its Pod mounts, keeps its
// directory, and is reached by the address of the Pod.
package inpods

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/test/dorissim/local"
	"github.com/fairlead-dev/fairlead/test/simnode"
)

// Nodes are the processes for the Pods of one namespace. They are safe for concurrent
// use.
type Nodes struct {
	local *local.Cluster

	mu  sync.Mutex
	fes map[string]*local.FE
	bes map[string]*local.BE
	// pods names the Pod of an address, files what each has read at its start.
	pods   map[string]string
	files  map[string]string
	kept   map[string]string // what the init container of a Pod was given
	starts map[string]int
	// members are the addresses by which the frontends know the backends of Pods.
	members map[string]string
	dials   int
}

// New returns nodes whose files are below a directory.
func New(dir string) *Nodes {
	return &Nodes{
		local:   &local.Cluster{Dir: dir, Version: "4.1.3", Pace: local.FastPace, Log: slog.New(slog.DiscardHandler), Transport: here()},
		members: map[string]string{},
		fes:     map[string]*local.FE{}, bes: map[string]*local.BE{}, pods: map[string]string{}, files: map[string]string{}, kept: map[string]string{}, starts: map[string]int{},
	}
}

// here lets processes reach each other by the addresses of Pods: they are all here.
func here() http.RoundTripper {
	dialer := &net.Dialer{}
	return &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if _, port, err := net.SplitHostPort(address); err == nil {
			address = net.JoinHostPort("127.0.0.1", port)
		}
		return dialer.DialContext(ctx, network, address)
	}}
}

// The init container that keeps settings gives its Pod what it finds in the one directory
// in the other. No script runs on a simulated node; here its file is handed over.
const (
	keeper   = "runtime-config-init"
	found    = "/etc/fairlead/runtime-config/source/"
	mountDir = "/etc/doris/"
)

// Start is called by the simulated kubelet when a container starts.
func (n *Nodes) Start(ctx context.Context, p simnode.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch p.Container {
	case "fe", "be":
	case keeper:
		n.kept[p.Pod] = p.Files[found+"fe.conf"] + p.Files[found+"be.conf"] // it has one of them
		return
	default:
		return
	}
	n.pods[p.IP] = p.Pod
	n.starts[p.Pod]++
	file, mounted := p.Files[mountDir+p.Container+".conf"]
	if !mounted {
		file = n.kept[p.Pod]
	}
	n.files[p.Pod] = file
	var err error
	if p.Container == "fe" {
		err = n.startFE(ctx, p.Pod)
	} else {
		err = n.startBE(ctx, p)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "inpods: %s does not start: %v\n", p.Pod, err)
	}
}

func (n *Nodes) startFE(ctx context.Context, pod string) error {
	f := n.fes[pod]
	helper := ""
	if f == nil {
		var err error
		if f, err = n.local.NewFE(""); err != nil {
			return err
		}
		n.fes[pod] = f
		if first := n.local.FEs[0]; first != f {
			helper = first.Addr()
			if err := follow(ctx, first, f); err != nil {
				return err
			}
		}
	}
	ports := fmt.Sprintf("edit_log_port = %d\nquery_port = %d\nhttp_port = %d\nrpc_port = %d\nenable_fqdn_mode = false\n", f.EditLogPort, f.QueryPort, f.HTTPPort, f.RPC)
	if err := os.WriteFile(f.Conf, []byte(n.files[pod]+"\n"+ports), 0o600); err != nil {
		return err
	}
	return f.Start(ctx, helper)
}

// follow adds a frontend to those that there are.
func follow(ctx context.Context, first, f *local.FE) error {
	db, err := first.Open("root", "")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		_, err := db.ExecContext(ctx, fmt.Sprintf("ALTER SYSTEM ADD FOLLOWER %q", f.Addr()))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// AddUser makes the account that the operator logs in with.
func (n *Nodes) AddUser(ctx context.Context, name, password string) error {
	db, err := n.local.FEs[0].Open("root", "")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for _, text := range []string{
		fmt.Sprintf("CREATE USER '%s' IDENTIFIED BY '%s'", name, password), fmt.Sprintf("GRANT ADMIN_PRIV ON *.*.* TO '%s'", name),
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (n *Nodes) startBE(ctx context.Context, p simnode.Process) error {
	b := n.bes[p.Pod]
	if b == nil {
		var err error
		if b, err = n.local.NewBE(""); err != nil {
			return err
		}
		n.bes[p.Pod] = b
	}
	ports := fmt.Sprintf("heartbeat_service_port = %d\nbe_port = %d\nwebserver_port = %d\nbrpc_port = %d\n", b.HeartbeatPort, b.BePort, b.HTTPPort, b.Brpc)
	if err := os.WriteFile(b.Conf, []byte(n.files[p.Pod]+"\n"+ports), 0o600); err != nil {
		return err
	}
	if err := b.Start(ctx); err != nil {
		return err
	}
	was, is := n.members[p.Pod], net.JoinHostPort(p.IP, strconv.Itoa(b.HeartbeatPort))
	n.members[p.Pod] = is
	go n.register(ctx, was, is)
	return nil
}

// register makes a backend known by the address of its Pod, as the entrypoint does,
// and no longer by that of the Pod before.
func (n *Nodes) register(ctx context.Context, was, is string) {
	statements := []string{fmt.Sprintf("ALTER SYSTEM ADD BACKEND %q", is)}
	if was != "" && was != is {
		statements = slices.Insert(statements, 0, fmt.Sprintf("ALTER SYSTEM DROPP BACKEND %q", was))
	}
	for deadline := time.Now().Add(time.Minute); len(statements) > 0 && ctx.Err() == nil && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		err := n.exec(ctx, statements[0])
		if err == nil || strings.Contains(err.Error(), "already exists") || strings.Contains(err.Error(), "does not exist") {
			statements = statements[1:]
		}
	}
}

// exec carries out a statement on any frontend that does it.
func (n *Nodes) exec(ctx context.Context, statement string) error {
	n.mu.Lock()
	frontends := slices.Clone(n.local.FEs)
	n.mu.Unlock()
	err := errors.New("there is no frontend")
	for _, f := range frontends {
		var db *sql.DB
		if db, err = f.Open("root", ""); err != nil {
			continue
		}
		_, err = db.ExecContext(ctx, statement)
		if _ = db.Close(); err == nil {
			return nil
		}
	}
	return err
}

// Close ends all processes.
func (n *Nodes) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.local.StopAll()
}

// Dials counts the connections that were asked for.
func (n *Nodes) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// Stop is called by the simulated kubelet when a container has ended.
func (n *Nodes) Stop(p simnode.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, p.IP)
	if f := n.fes[p.Pod]; f != nil && p.Container == "fe" {
		_ = f.Stop()
	}
	if b := n.bes[p.Pod]; b != nil && p.Container == "be" {
		_ = b.Kill()
	}
}

// Dial leads from the address of a Pod to its process.
func (n *Nodes) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.dials++
	pod := n.pods[host]
	at, known := n.port(pod, port)
	n.mu.Unlock()
	if !known {
		return nil, errors.New("no route to host")
	}
	var d net.Dialer
	return d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(at)))
}

func (n *Nodes) port(pod, port string) (int, bool) {
	if f := n.fes[pod]; f != nil {
		at, known := map[string]int{"9030": f.QueryPort, "8030": f.HTTPPort}[port]
		return at, known
	}
	if b := n.bes[pod]; b != nil && port == "8040" {
		return b.HTTPPort, true
	}
	return 0, false
}

// Settings is what the process of a Pod reports.
func (n *Nodes) Settings(ctx context.Context, pod string) ([]setting.Item, error) {
	n.mu.Lock()
	f, b := n.fes[pod], n.bes[pod]
	n.mu.Unlock()
	doris := client.New(client.Options{Credentials: client.Credentials{User: "root"}})
	switch {
	case f != nil:
		return doris.FrontendConfig(ctx, client.Node{Host: "127.0.0.1", Port: int32(f.QueryPort)})
	case b != nil:
		return doris.BackendConfig(ctx, client.Node{Host: "127.0.0.1", Port: int32(b.HTTPPort)})
	}
	return nil, fmt.Errorf("%s has no process", pod)
}

// Effective tells whether the process of a Pod has a setting, or has read it where
// it reports no such setting.
func (n *Nodes) Effective(ctx context.Context, pod, key, value string) bool {
	items, err := n.Settings(ctx, pod)
	if err != nil {
		return false
	}
	if item, found := setting.Find(items, key); found {
		return setting.Same(item.Type, item.Value, value)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Contains(n.files[pod], key+" = "+value+"\n")
}

// Started counts the starts of the processes of Pods.
func (n *Nodes) Started(pods []string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := 0
	for _, pod := range pods {
		sum += n.starts[pod]
	}
	return sum
}
