package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/build"
	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
	"github.com/fairlead-dev/fairlead/test/cluster/node"
)

// realNodeVariable asks for the tests that install packages and run containers.
const realNodeVariable = "FAIRLEAD_REAL_NODE"

func needRealNode(t *testing.T) {
	t.Helper()
	if os.Getenv(realNodeVariable) != "1" {
		t.Skipf("set %s=1 to run this as root", realNodeVariable)
	}
}

// realCluster brings a cluster with a real node up, with the probe's image in it.
func realCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Up(t.Context(), cluster.Options{
		Dir: filepath.Join(t.TempDir(), "cluster"), Nodes: cluster.Real, Log: os.Stderr, DieWithParent: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		record := c.Record()
		// A test may have taken it down itself.
		if err := c.Down(context.Background()); err != nil && !errors.Is(err, ledger.ErrNone) {
			t.Error(err)
		}
		requireNothingLeft(t, c.Dir(), record)
	})
	if err := c.LoadImage(t.Context(), probeImage(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

func probeImage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "probe"), filepath.Join(dir, "probe.tar")
	compile := exec.Command("go", "build", "-o", program, "./testdata/probe")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v: %s", err, out)
	}
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := node.WriteImage(file, "docker.io/fairlead/probe:test", program); err != nil {
		t.Fatal(err)
	}
	return archive
}

// kubectl runs the cluster's kubectl and returns what it says.
func kubectl(t *testing.T, c *cluster.Cluster, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(c.Record().Kubectl, append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), err
}

func mustKubectl(t *testing.T, c *cluster.Cluster, args ...string) string {
	t.Helper()
	out, err := kubectl(t, c, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// probe runs the probe in Pod probe-0.
func probe(t *testing.T, c *cluster.Cluster, args ...string) (string, error) {
	t.Helper()
	return kubectl(t, c, append([]string{"exec", "probe-0", "--", "/probe"}, args...)...)
}

func requireProbe(t *testing.T, c *cluster.Cluster, want string, args ...string) {
	t.Helper()
	eventually(t, 20*time.Second, func() (bool, string) {
		got, err := probe(t, c, args...)
		return err == nil && strings.HasPrefix(got, want), fmt.Sprintf("probe %v says %q (%v), want %q", args, got, err, want)
	})
}

func applyProbe(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	mustKubectl(t, c, "apply", "-f", "testdata/probe.yaml")
	mustKubectl(t, c, "rollout", "status", "statefulset/probe", "--timeout=90s")
}

func TestRealNode(t *testing.T) {
	needRealNode(t)
	c := realCluster(t)
	applyProbe(t, c)

	t.Run("headless names and Services resolve and answer in a Pod", func(t *testing.T) {
		requireProbe(t, c, mustKubectl(t, c, "get", "pod", "probe-1", "-o", "jsonpath={.status.podIP}"),
			"lookup", "probe-1.headless.default.svc.cluster.local")
		requireProbe(t, c, mustKubectl(t, c, "get", "service", "balanced", "-o", "jsonpath={.spec.clusterIP}"), "lookup", "balanced")
		requireProbe(t, c, "probe-", "get", "http://balanced")
		requireProbe(t, c, "probe-1", "get", "http://probe-1.headless:8080")
	})
	t.Run("Services answer the host", func(t *testing.T) {
		for _, url := range []string{
			"http://" + mustKubectl(t, c, "get", "service", "balanced", "-o", "jsonpath={.spec.clusterIP}"),
			"http://" + c.Record().Network.Node + ":" + mustKubectl(t, c, "get", "service", "balanced", "-o", "jsonpath={.spec.ports[0].nodePort}"),
		} {
			client := http.Client{Timeout: 5 * time.Second}
			response, err := client.Get(url)
			if err != nil {
				t.Error(err)
				continue
			}
			response.Body.Close()
		}
	})
	t.Run("claim keeps its file when the Pod is replaced", func(t *testing.T) {
		if _, err := probe(t, c, "write", "/data/file", "kept"); err != nil {
			t.Fatal(err)
		}
		before := mustKubectl(t, c, "get", "pod", "probe-0", "-o", "jsonpath={.metadata.uid}")
		mustKubectl(t, c, "delete", "pod", "probe-0")
		mustKubectl(t, c, "rollout", "status", "statefulset/probe", "--timeout=90s")
		if after := mustKubectl(t, c, "get", "pod", "probe-0", "-o", "jsonpath={.metadata.uid}"); after == before {
			t.Fatal("the Pod was not replaced")
		}
		requireProbe(t, c, "kept", "read", "/data/file")
	})
	t.Run("logs are shown", func(t *testing.T) {
		if out := mustKubectl(t, c, "logs", "probe-0"); !strings.Contains(out, "serving as probe-0") {
			t.Errorf("logs = %q", out)
		}
	})
	t.Run("claim grows when asked", func(t *testing.T) {
		mustKubectl(t, c, "patch", "pvc", "data-probe-0", "-p", `{"spec":{"resources":{"requests":{"storage":"5Gi"}}}}`)
		mustKubectl(t, c, "wait", "pvc/data-probe-0", "--for=jsonpath={.status.capacity.storage}=5Gi", "--timeout=30s")
	})
	t.Run("deleted claim takes its data along", func(t *testing.T) {
		mustKubectl(t, c, "delete", "statefulset", "probe")
		mustKubectl(t, c, "delete", "pvc", "--all")
		eventually(t, 30*time.Second, func() (bool, string) {
			left, err := os.ReadDir(filepath.Join(c.Dir(), "volumes"))
			volumes, _ := kubectl(t, c, "get", "pv", "-o", "name")
			return err == nil && len(left) == 0 && volumes == "", fmt.Sprintf("left: %v, %q (%v)", left, volumes, err)
		})
	})
}

func TestTwoRealNodesDoNotMeet(t *testing.T) {
	needRealNode(t)
	var all []*cluster.Cluster
	for range 2 {
		c := realCluster(t)
		applyProbe(t, c)
		all = append(all, c)
	}
	if a, b := all[0].Record().Network, all[1].Record().Network; a.Pods == b.Pods {
		t.Errorf("both clusters have the network %s", a.Pods)
	}
	// The rules of one are not overwritten by the other's.
	for _, c := range all {
		requireProbe(t, c, "probe-", "get", "http://balanced")
	}
	if err := all[0].Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	requireProbe(t, all[1], "probe-", "get", "http://balanced")
}

func TestDownAfterUpOfARealNodeWasKilled(t *testing.T) {
	needRealNode(t)
	if _, err := build.Build(t.Context(), build.Options{Log: os.Stderr}, build.RealNode()...); err != nil {
		t.Fatal(err)
	}
	for _, m := range []moment{
		{after: 300 * time.Millisecond},
		{said: "etcd and API server started"},
		{said: "node started"},
		{said: "pause image imported"},
		{}, // it comes to its end
	} {
		t.Run(m.String(), func(t *testing.T) { killUp(t, cluster.Real, m) })
	}
}
