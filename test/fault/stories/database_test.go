package stories

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// database is what runs in the Pods of a scene whose operator speaks SQL: nodes of
// the stand-in for Doris, which is a test double, in this process. The Pods
// themselves are simulated. A backend's data goes with its Pod.
type database struct {
	cluster *local.Cluster
	first   *local.FE // where SQL goes
	client  client.Client
	// namespace of the Pods.
	namespace string
	stop      context.CancelFunc
	done      chan struct{}

	mu       sync.Mutex
	backends map[string]*local.BE // by Pod
	// observers are Pods of frontends that were registered. No process is behind
	// them: nothing is asked of an observer that leaves.
	observers map[string]bool
	// followers are the frontends that vote, by Pod. They outlive their Pods, as claims
	// do.
	followers map[string]*follower
	brokers   map[string]bool // Pods that were registered
	trouble   error
}

// asService lets nodes reach each other by the names of Pods: they are all here.
func asService() http.RoundTripper {
	dialer := &net.Dialer{}
	return &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err == nil && strings.HasSuffix(host, ".svc.cluster.local") {
			address = net.JoinHostPort("127.0.0.1", port)
		}
		return dialer.DialContext(ctx, network, address)
	}}
}

func openDatabase(ctx context.Context, c client.Client, namespace, dir string) (*database, error) {
	d := &database{
		cluster: &local.Cluster{Dir: dir, Version: "4.1.3", Pace: calmPace(), Log: slog.New(slog.DiscardHandler), Transport: asService()},
		client:  c, namespace: namespace, done: make(chan struct{}), backends: map[string]*local.BE{},
		observers: map[string]bool{}, followers: map[string]*follower{}, brokers: map[string]bool{},
	}
	fe, err := d.cluster.NewFE("")
	if err != nil {
		return nil, err
	}
	d.first, d.followers["doris-fe-0"] = fe, &follower{node: fe, runs: true}
	fe.Host = d.host("doris-fe-0", "fe")
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := fe.Start(ctx, ""); err != nil {
		d.stop()
		return nil, err
	}
	go d.follow(ctx)
	return d, nil
}

// host is the name of a Pod in the network.
func (d *database) host(pod, component string) string {
	return fmt.Sprintf("%s.doris-%s-internal.%s.svc.cluster.local", pod, component, d.namespace)
}

// address is where the frontend is asked.
func (d *database) address() string { return fmt.Sprintf("127.0.0.1:%d", d.first.QueryPort) }

func (d *database) close() error {
	d.stop()
	<-d.done
	return d.cluster.StopAll()
}

// follow starts a backend in each Pod that is ready, and ends that of a Pod that is
// gone, with all that it holds.
func (d *database) follow(ctx context.Context) {
	defer close(d.done)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := d.followOnce(ctx); err != nil && ctx.Err() == nil {
			d.mu.Lock()
			d.trouble = err
			d.mu.Unlock()
		}
	}
}

func (d *database) followOnce(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := d.client.List(ctx, pods, client.InNamespace(d.namespace), client.HasLabels{"app.doris.cluster"}); err != nil {
		return nil //nolint:nilerr // asked again at once
	}
	live := map[string]bool{}
	for i := range pods.Items {
		p := &pods.Items[i]
		live[p.Name] = true
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if err := d.joins(ctx, p, ready); err != nil {
			return fmt.Errorf("start the node of %s: %w", p.Name, err)
		}
	}
	maps.DeleteFunc(d.observers, func(name string, _ bool) bool { return !live[name] })
	maps.DeleteFunc(d.brokers, func(name string, _ bool) bool { return !live[name] })
	for name, f := range d.followers {
		if !live[name] {
			f.ends()
		}
	}
	for name, be := range d.backends {
		if live[name] {
			continue
		}
		delete(d.backends, name)
		_ = be.Kill()
		if err := os.RemoveAll(be.Home); err != nil {
			return err
		}
	}
	return nil
}

// joins makes a member of a Pod that is ready and none yet.
func (d *database) joins(ctx context.Context, p *corev1.Pod, ready bool) error {
	switch component := p.Labels["app.kubernetes.io/component"]; {
	case !ready:
	case component == "fe" && (elects(p) || d.followers[p.Name] != nil): // with metadata it stays what it was
		return d.follows(ctx, p)
	case component == "fe":
		d.registers(ctx, d.observers, p.Name, fmt.Sprintf(`ALTER SYSTEM ADD OBSERVER "%s:9010"`, d.host(p.Name, component)))
	case component == "broker":
		d.registers(ctx, d.brokers, p.Name, fmt.Sprintf(`ALTER SYSTEM ADD BROKER broker001 "%s:8000"`, d.host(p.Name, component)))
	case d.backends[p.Name] == nil:
		return d.starts(ctx, p.Name, component)
	}
	return nil
}

// registers says once for each Pod who it is, as the entrypoint does.
func (d *database) registers(ctx context.Context, known map[string]bool, pod, statement string) {
	if known[pod] {
		return
	}
	err := d.exec(ctx, statement) // tried again at once
	known[pod] = err == nil || strings.Contains(err.Error(), "already exists")
}

// starts runs a backend and registers it, as the entrypoint does.
func (d *database) starts(ctx context.Context, pod, component string) error {
	extra := ""
	if component == "cn" {
		extra = "be_node_role = computation"
	}
	be, err := d.cluster.NewBE(extra)
	if err != nil {
		return err
	}
	if err := be.Start(ctx); err != nil {
		return err
	}
	d.backends[pod] = be
	return d.insists(ctx, fmt.Sprintf(`ALTER SYSTEM ADD BACKEND "%s:%d"`, d.host(pod, component), be.HeartbeatPort))
}

// insists says something to the database until that is done.
func (d *database) insists(ctx context.Context, statement string) error {
	for {
		err := d.exec(ctx, statement)
		if err == nil || strings.Contains(err.Error(), "already exists") {
			return nil
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the story is over
		}
		time.Sleep(50 * time.Millisecond) // the pace of trying again, as the entrypoint does
	}
}

func (d *database) open() (*sql.DB, error) { return d.first.Open("root", "") }

func (d *database) exec(ctx context.Context, statement string) error {
	db, err := d.open()
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// column lists one column of an answer.
func (d *database) column(ctx context.Context, statement, name string) ([]string, error) {
	db, err := d.open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out []string
	for rows.Next() {
		values := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		for i := range names {
			if strings.EqualFold(names[i], name) || name == "" && i == 0 {
				out = append(out, values[i].String)
			}
		}
	}
	return out, rows.Err()
}

// written is how many rows are written, to tablets with one copy each.
const written = 40

// fill waits until n backends are alive and writes rows.
func (d *database) fill(ctx context.Context, n int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		alive, err := d.column(ctx, "SHOW BACKENDS", "Alive")
		if err == nil && len(alive) == n && !strings.Contains(strings.Join(alive, " "), "false") {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("of %d backends alive are %v: %w", n, alive, err)
		}
	}
	var values []string
	for i := range written {
		values = append(values, fmt.Sprintf("(%d, 'v%d')", i, i))
	}
	for _, s := range []string{
		"CREATE DATABASE shop",
		`CREATE TABLE shop.orders (id INT, name VARCHAR(32)) DISTRIBUTED BY HASH(id) BUCKETS 12 PROPERTIES ("replication_num" = "1")`,
		"INSERT INTO shop.orders VALUES " + strings.Join(values, ", "),
	} {
		if err := d.exec(ctx, s); err != nil {
			return fmt.Errorf("%.40s: %w", s, err)
		}
	}
	return nil
}

// holds says what is missing until exactly n backends are members, and every row is
// there.
func (d *database) holds(ctx context.Context, n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.trouble != nil {
		return d.trouble.Error()
	}
	hosts, err := d.column(ctx, "SHOW BACKENDS", "Host")
	if err != nil {
		return err.Error()
	}
	if len(hosts) != n {
		return fmt.Sprintf("members are %v", hosts)
	}
	if leaving, err := d.column(ctx, "SHOW BACKENDS", "SystemDecommissioned"); err != nil || strings.Contains(strings.Join(leaving, " "), "true") {
		return fmt.Sprintf("still decommissioned: %v %v", leaving, err)
	}
	count, err := d.column(ctx, "SELECT COUNT(*) FROM shop.orders", "")
	if err != nil {
		return "the rows cannot be read: " + err.Error()
	}
	if count[0] != fmt.Sprint(written) {
		return fmt.Sprintf("%s of %d rows are there", count[0], written)
	}
	return ""
}
