package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/cluster/build"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
	"github.com/fairlead-dev/fairlead/test/cluster/process"
)

// These have the test binary bring a cluster up and nothing else, so that a
// test can kill it in the middle.
const (
	upDirVariable   = "FAIRLEAD_TEST_UP_DIR"
	upNodesVariable = "FAIRLEAD_TEST_UP_NODES"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(upDirVariable)
	if dir == "" {
		clustertest.Main(m, cluster.Options{})
	}
	_, err := cluster.Up(context.Background(), cluster.Options{
		Dir: dir, Nodes: cluster.Nodes(os.Getenv(upNodesVariable)), Log: os.Stderr,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// eventually polls until the condition holds.
func eventually(t *testing.T, within time.Duration, condition func() (bool, string)) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		ok, state := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, state)
		}
	}
}

func TestControllersAct(t *testing.T) {
	client, namespace := clustertest.Client(t), clustertest.Namespace(t)
	eventually(t, 20*time.Second, func() (bool, string) {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil, "no default service account"
	})
}

func TestAuditLogCountsTheRequestsOfAClient(t *testing.T) {
	c, namespace := clustertest.Shared(t), clustertest.Namespace(t)
	config := c.RESTConfig()
	config.UserAgent = "audited/" + namespace
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	mark, err := c.Audit().Mark()
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	for _, name := range []string{"a", "b"} {
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := maps.Get(t.Context(), "missing", metav1.GetOptions{}); err == nil {
		t.Fatal("a missing object was found")
	}
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch.Stop()
	entries, err := c.Audit().Since(mark)
	if err != nil {
		t.Fatal(err)
	}
	counts := audit.Count(entries, audit.Filter{Client: config.UserAgent})
	for verb, want := range map[string]int{"create": 2, "get": 1, "watch": 1, "": 4} {
		verbs := []string{verb}
		if verb == "" {
			verbs = nil
		}
		if got := counts.Total(verbs...); got != want {
			t.Errorf("%d requests of verb %q, want %d; all:\n%s", got, verb, want, counts)
		}
	}
}

func TestTwoClustersDoNotMeet(t *testing.T) {
	clustertest.Shared(t)
	other, err := cluster.Up(t.Context(), cluster.Options{Dir: filepath.Join(t.TempDir(), "other"), DieWithParent: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	namespace := clustertest.Namespace(t)
	client, err := kubernetes.NewForConfig(other.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err == nil {
		t.Errorf("namespace %s of one cluster is seen in the other", namespace)
	}
	if dead := other.Dead(); len(dead) > 0 {
		t.Errorf("dead in a running cluster: %v", dead)
	}
}

func TestDownAfterUpWasKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a cluster")
	}
	clustertest.Shared(t) // builds the programs first
	for _, m := range []moment{
		{after: 100 * time.Millisecond},
		{said: "etcd and API server started"},
		{said: "API server ready"},
		{}, // it comes to its end
	} {
		t.Run(m.String(), func(t *testing.T) { killUp(t, cluster.None, m) })
	}
}

func TestDownAfterUpWasKilledWhileItBuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Kubernetes")
	}
	compiled, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(compiled)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // no binaries there
	killUp(t, cluster.None, moment{said: "build kube-apiserver: started"})
}

// moment is when a process is killed: after a time, or when it has said something.
type moment struct {
	after time.Duration
	said  string
}

func (m moment) String() string {
	switch {
	case m.said != "":
		return "when it said " + m.said
	case m.after > 0:
		return "after " + m.after.String()
	}
	return "never"
}

// listener keeps what was said and calls heard when it is the awaited text.
// It is a test double for a person who watches a terminal.
type listener struct {
	all   bytes.Buffer
	await string
	heard func()
}

func (l *listener) Write(p []byte) (int, error) {
	n, err := l.all.Write(p)
	if l.await != "" && strings.Contains(l.all.String(), l.await) {
		l.heard()
	}
	return n, err
}

// killUp has another process bring a cluster up, kills that process at the
// moment (if it has not come to its end before) and requires that Down leaves
// nothing.
func killUp(t *testing.T, nodes cluster.Nodes, when moment) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "cluster")
	up := exec.Command(self)
	up.Env = append(os.Environ(), upDirVariable+"="+dir, upNodesVariable+"="+string(nodes))
	output := &listener{await: when.said, heard: func() { _ = up.Process.Kill() }}
	up.Stderr = output
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	if when.after > 0 {
		defer time.AfterFunc(when.after, func() { _ = up.Process.Kill() }).Stop()
	}
	err = up.Wait()
	t.Logf("up ended (%v) after it said:\n%s", err, &output.all)
	if killed := err != nil; killed != (when != moment{}) {
		t.Fatalf("up was killed: %t", killed)
	}
	book, err := ledger.Open(dir)
	if errors.Is(err, ledger.ErrNone) {
		t.Skip("killed before it did anything")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Down(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	requireNothingLeft(t, dir, book.Record())
}

func requireNothingLeft(t *testing.T, dir string, record ledger.Record) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster's directory is still there (%v)", err)
	}
	pids, err := process.Marked(record.ID)
	if err != nil || len(pids) > 0 {
		t.Errorf("processes of the cluster are left: %v, %v", pids, err)
	}
	for _, link := range record.Links {
		if found, err := net.InterfaceByName(link.Name); err == nil && found.HardwareAddr.String() == link.MAC {
			t.Errorf("link %s is left", link.Name)
		}
	}
	left, err := filepath.Glob("/sys/fs/cgroup/*/fairlead-" + record.ID)
	if err != nil || len(left) > 0 {
		t.Errorf("cgroups are left: %v, %v", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("mounts in the cluster's directory are left (%v)", err)
	}
}

func TestFailedUpTellsWhyAndUndoesItself(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a cluster")
	}
	cacheDir, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := build.Build(t.Context(), build.Options{Log: os.Stderr}, build.ControlPlane()...)
	if err != nil {
		t.Fatal(err)
	}
	cache, dir := t.TempDir(), filepath.Join(t.TempDir(), "cluster")
	for program, built := range programs {
		within, err := filepath.Rel(cacheDir, built)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(cache, within)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho no luck for "+program+" >&2\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err = cluster.Up(t.Context(), cluster.Options{Dir: dir, CacheDir: cache})
	if err == nil || !strings.Contains(err.Error(), "no luck for ") {
		t.Errorf("error = %v, want the end of the program's log", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed Up left its directory (%v)", err)
	}
}

func TestDownSparesAStrangersProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	own, err := process.StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// A ledger whose process id was recycled: it names this very test, with
	// another start time.
	_, err = ledger.Create(dir, ledger.Record{ID: "stale", Processes: []ledger.Process{{Name: "etcd", PID: os.Getpid(), Start: own + 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Down(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), 0); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	t.Run("no cluster", func(t *testing.T) {
		if _, err := cluster.Open(t.TempDir()); !errors.Is(err, ledger.ErrNone) {
			t.Errorf("error = %v, want ErrNone", err)
		}
	})
	t.Run("cluster whose up was cut short", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cluster")
		if _, err := ledger.Create(dir, ledger.Record{}); err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Open(dir); !errors.Is(err, cluster.ErrNotReady) {
			t.Errorf("error = %v, want ErrNotReady", err)
		}
	})
}

func TestUpRefusesAnUnknownKindOfNodes(t *testing.T) {
	if _, err := cluster.Up(t.Context(), cluster.Options{Dir: filepath.Join(t.TempDir(), "c"), Nodes: "imaginary"}); err == nil {
		t.Error("an unknown kind of nodes was accepted")
	}
}
