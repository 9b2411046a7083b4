// Command restarts measures how exactly the policy Auto restarts: it edits one
// setting at a time, 40 times, on a running cluster of three frontends and three
// backends, and counts the processes that were started against those that had to
// be, and the settings that are in effect against those that were changed.
//
//	go run ./test/bench/restarts
//
// The control plane is a real one, the nodes are simulated, the processes in the
// Pods are the stand-in for Doris (a test double), and the operator is the real
// one, which reaches them through its dialer.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/operator"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/inpods"
	"github.com/fairlead-dev/fairlead/test/simnode"
	"github.com/fairlead-dev/fairlead/test/story"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// edit is one edit of one setting. Without a value the setting is taken out of
// the file, and after is what holds then.
type edit struct {
	kind, key, value, after string
	restarts                bool
}

// edits are 20 of settings that can be changed while a process runs, and 20 of
// others: read at the start only, not known to the node, exported by the start
// script, or taken out of the file.
func edits() []edit {
	list := make([]edit, 0, 40)
	live := func(kind, key string, values ...string) {
		for _, v := range values {
			list = append(list, edit{kind: kind, key: key, value: v})
		}
	}
	fixed := func(kind, key string, values ...string) {
		for _, v := range values {
			list = append(list, edit{kind: kind, key: key, value: v, restarts: true})
		}
	}
	live("be", "max_tablet_version_num", "3000", "4000")
	live("be", "disable_auto_compaction", "true", "false")
	live("be", "compaction_promotion_ratio", "0.07")
	live("be", "compaction_task_num_per_disk", "5", "6")
	live("be", "sys_log_level", "WARNING", "INFO")
	live("be", "streaming_load_max_mb", "20480")
	fixed("be", "priority_networks", "10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16")
	fixed("be", "JAVA_OPTS", "-Xmx1g", "-Xmx2g")
	fixed("be", "no_such_setting", "1", "2")
	fixed("be", "storage_medium_migrate_count", "2")
	list = append(list,
		edit{kind: "be", key: "max_tablet_version_num", after: "2000", restarts: true},
		edit{kind: "be", key: "sys_log_level", after: "INFO", restarts: true},
	)
	live("fe", "qe_slow_log_ms", "6000", "7000")
	live("fe", "disable_balance", "true", "false")
	live("fe", "balance_load_score_threshold", "0.2")
	live("fe", "max_running_txn_num_per_db", "2000", "3000")
	live("fe", "enable_workload_group", "false")
	live("fe", "query_metadata_name_ids_timeout", "4", "5")
	fixed("fe", "qe_max_connection", "2048", "4096", "8192")
	fixed("fe", "storage_min_left_capacity_bytes", "4294967296", "8589934592")
	fixed("fe", "priority_networks", "10.0.0.0/8", "10.1.0.0/16")
	fixed("fe", "JAVA_OPTS", "-Xmx1g")
	fixed("fe", "no_such_setting", "1")
	list = append(list, edit{kind: "fe", key: "qe_slow_log_ms", after: "5000", restarts: true})
	return list
}

// bench is the cluster that is measured.
type bench struct {
	client client.Client
	nodes  *inpods.Nodes
	files  map[string]map[string]string
}

const (
	namespace = "bench"
	members   = 3
	patience  = 3 * time.Minute
)

const manifest = `
apiVersion: v1
kind: Secret
metadata: {name: admin, namespace: bench}
type: kubernetes.io/basic-auth
stringData: {username: op, password: only-a-test-double}
---
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris, namespace: bench}
spec:
  configUpdatePolicy: Auto
  authSecret: admin
  feSpec:
    replicas: 3
    image: "apache/doris:fe-4.1.3"
    configMapInfo: {configMapName: fe-conf}
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 3
    image: "apache/doris:be-4.1.3"
    configMapInfo: {configMapName: be-conf}
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
`

func run(ctx context.Context) (err error) {
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "bench-restarts-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	plane, err := cluster.Up(ctx, cluster.Options{Log: os.Stderr, DieWithParent: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Down(context.WithoutCancel(ctx))) }()
	b := &bench{nodes: inpods.New(dir), files: map[string]map[string]string{"fe": {"enable_fqdn_mode": "true"}, "be": {}}}
	defer func() { err = errors.Join(err, b.nodes.Close()) }()
	sim, err := simnode.Start(ctx, plane.RESTConfig(), simnode.Options{
		Start: simnode.Fixed(200 * time.Millisecond), OnStart: func(p simnode.Process) { b.nodes.Start(ctx, p) }, OnStop: b.nodes.Stop,
	})
	if err != nil {
		return err
	}
	defer sim.Stop()
	if err := b.install(ctx, plane); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, plane.RESTConfig(), operator.Options{
			Systems: []string{"doriscluster"}, MetricsAddress: "0", HealthAddress: "0", Workers: 2, Dial: b.nodes.Dial, Log: logr.Discard(),
		})
	}()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	return b.measure(ctx)
}

func (b *bench) install(ctx context.Context, plane *cluster.Cluster) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), dorisv1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	if b.client, err = client.New(plane.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := story.Install(ctx, b.client, "config/install/fairlead.yaml", func(kind string) bool { return kind == "CustomResourceDefinition" }); err != nil {
		return err
	}
	if err := story.AwaitKind(ctx, b.client, patience); err != nil {
		return err
	}
	ns := &corev1.Namespace{}
	ns.Name = namespace
	if err := b.client.Create(ctx, ns); err != nil {
		return err
	}
	for _, kind := range []string{"fe", "be"} {
		if err := b.write(ctx, kind, true); err != nil {
			return err
		}
	}
	for _, u := range story.Documents(manifest) {
		if err := b.client.Create(ctx, &u); err != nil {
			return err
		}
	}
	return nil
}

// write writes the file of a component as it is wanted now.
func (b *bench) write(ctx context.Context, kind string, first bool) error {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(b.files[kind])) {
		fmt.Fprintf(&text, "%s = %s\n", key, b.files[kind][key])
	}
	cm := &corev1.ConfigMap{Data: map[string]string{kind + ".conf": text.String()}}
	cm.Name, cm.Namespace = kind+"-conf", namespace
	if first {
		return b.client.Create(ctx, cm)
	}
	return b.client.Update(ctx, cm)
}

func pods(kind string) []string {
	var out []string
	for n := range members {
		out = append(out, fmt.Sprintf("doris-%s-%d", kind, n))
	}
	return out
}

func (b *bench) measure(ctx context.Context) error {
	if err := b.await(ctx, "the cluster", func() bool { return b.settled(ctx) }); err != nil {
		return err
	}
	if err := b.nodes.AddUser(ctx, "op", "only-a-test-double"); err != nil {
		return err
	}
	began := time.Now()
	var needed, done, changed, inEffect, wrong int
	list := edits()
	for i, e := range list {
		needs, did, ok, err := b.one(ctx, e)
		if err != nil {
			return fmt.Errorf("edit %d (%s of %s): %w", i+1, e.key, e.kind, err)
		}
		needed, done = needed+needs, done+did
		changed, inEffect = changed+members, inEffect+ok
		if did != needs || ok != members {
			wrong++
		}
		fmt.Fprintf(os.Stderr, "bench: %2d of %d: %s %s: restarts needed %d, done %d; in effect on %d of %d\n", i+1, len(list), e.kind, e.key, needs, did, ok, members)
	}
	fmt.Printf("single-key edits                %d (%d mutable, %d not), 3 frontends and 3 backends\n", len(list), count(list, false), count(list, true))
	fmt.Printf("restarts needed / done          %d / %d = %.2f\n", needed, done, float64(needed)/float64(done))
	fmt.Printf("settings effective / changed    %d / %d = %.2f\n", inEffect, changed, float64(inEffect)/float64(changed))
	fmt.Printf("edits with a wrong restart      %d\n", wrong)
	fmt.Printf("connections to nodes            %d, in %s\n", b.nodes.Dials(), time.Since(began).Round(time.Second))
	if wrong > 0 {
		return errors.New("not exact")
	}
	return nil
}

func count(list []edit, restarts bool) int {
	n := 0
	for _, e := range list {
		if e.restarts == restarts {
			n++
		}
	}
	return n
}

// one makes one edit and waits until it is done, and a little longer, for
// restarts that should not be.
func (b *bench) one(ctx context.Context, e edit) (needed, done, effective int, err error) {
	before := b.nodes.Started(append(pods("fe"), pods("be")...))
	want := e.value
	if b.files[e.kind][e.key] = e.value; e.value == "" {
		delete(b.files[e.kind], e.key)
		want = e.after
	}
	if e.restarts {
		needed = members
	}
	if err := b.write(ctx, e.kind, false); err != nil {
		return 0, 0, 0, err
	}
	inEffect := func() int {
		n := 0
		for _, pod := range pods(e.kind) {
			if b.nodes.Effective(ctx, pod, e.key, want) {
				n++
			}
		}
		return n
	}
	started := func() int { return b.nodes.Started(append(pods("fe"), pods("be")...)) - before }
	// Where it is never so, the figures say it.
	_ = b.await(ctx, "the edit", func() bool { return started() >= needed && inEffect() == members && b.settled(ctx) })
	const longer = 1500 * time.Millisecond
	time.Sleep(longer)
	_ = b.await(ctx, "rest", func() bool { return b.settled(ctx) })
	return needed, started(), inEffect(), ctx.Err()
}

// settled tells whether the operator says that all is done, and all nodes answer.
func (b *bench) settled(ctx context.Context) bool {
	dc := &dorisv1.DorisCluster{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "doris"}, dc); err != nil {
		return false
	}
	for _, kind := range []string{meta.ConditionReady, meta.ConditionConfigurationInSync} {
		if !apimeta.IsStatusConditionTrue(dc.Status.Conditions, kind) {
			return false
		}
	}
	for _, pod := range append(pods("fe"), pods("be")...) {
		if _, err := b.nodes.Settings(ctx, pod); err != nil {
			return false
		}
	}
	return true
}

func (b *bench) await(ctx context.Context, what string, ok func() bool) error {
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come to rest within %s", what, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}
