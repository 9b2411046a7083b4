// Package demo_test checks on a real node the story that `make demo` tells.
package demo_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/demo"
)

// logged lets the story be read in the test's log.
type logged struct{ t *testing.T }

func (l logged) Write(p []byte) (int, error) {
	l.t.Log(string(p))
	return len(p), nil
}

func TestStoryOfTheDemonstration(t *testing.T) {
	if os.Getenv("FAIRLEAD_REAL_NODE") != "1" {
		t.Skip("needs a real node: set FAIRLEAD_REAL_NODE=1, as root on Linux")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 35*time.Minute)
	defer cancel()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	d := &demo.Demo{Root: root, Images: t.TempDir(), Out: logged{t}}
	d.Begin()
	if err := demo.BuildImages(ctx, root, d.Images, logged{t}); err != nil {
		t.Fatal(err)
	}
	if err := demo.BuildHelm(ctx, root, d.Images, logged{t}); err != nil {
		t.Fatal(err)
	}
	d.Cluster, err = cluster.Up(ctx, cluster.Options{Nodes: cluster.Real, Log: logged{t}, DieWithParent: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Cluster.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []func(context.Context) error{d.Install, d.Create} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.AwaitReady(ctx, 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	live, err := d.AwaitBackends(ctx, 3, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"doris-be-0", "doris-be-1", "doris-be-2"}, live); diff != "" {
		t.Errorf("live backends (-want +got):\n%s", diff)
	}
	clusters := createSmall(ctx, t, d) // they come up meanwhile
	t.Run("rows outlive the Pod they were written through", func(t *testing.T) { rowsOutlivePod(ctx, t, d) })
	t.Run("killing the operator restarts nothing", func(t *testing.T) { operatorKilled(ctx, t, d) })
	t.Run("a setting is changed without a restart and outlives one", func(t *testing.T) { settingOutlivesContainer(ctx, t, d) })
	var settings *kept
	t.Run("settings are changed in nodes that are killed while they write them", func(t *testing.T) { settings = settingsChanged(ctx, t, d) })
	t.Run("another version under queries, none of which fails", func(t *testing.T) { upgradedUnderQueries(ctx, t, d) })
	t.Run("the settings are there with another version, and counted", func(t *testing.T) {
		k := settings.goesOn(t)
		k.allThere(ctx, "another version")
		k.counted(ctx)
	})
	t.Run("new clusters keep settings where they have a claim", func(t *testing.T) { clusters.keepWhereTheyCan(ctx, t) })
	t.Run("a frontend is killed in the middle of writing its file", func(t *testing.T) { settings.goesOn(t).torn(ctx) })
	t.Run("the settings are there in a StatefulSet that is made again", func(t *testing.T) { settings.goesOn(t).setAgain(ctx) })
	t.Run("a bad image stops at one Pod, and mended it goes on by itself", func(t *testing.T) { badImageStopsAtOnePod(ctx, t, d) })
	t.Run("more memory without a restart", func(t *testing.T) { memoryWithoutRestart(ctx, t, d) })
	t.Run("larger disks without a restart", func(t *testing.T) { largerDisks(ctx, t, d) })
	t.Run("backends come and go without a lost row", func(t *testing.T) { backendsComeAndGo(ctx, t, d) })
	t.Run("observers come and go", func(t *testing.T) { observersComeAndGo(ctx, t, d) })
	// The last one: it uninstalls the operator, and installs it anew.
	t.Run("the chart under a running database", func(t *testing.T) { chartUnderARunningCluster(ctx, t, d) })
}

func rowsOutlivePod(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	if err := d.WriteRows(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.LosePod(ctx, demo.Name+"-be-1"); err != nil {
		t.Fatal(err)
	}
	n, err := d.CountRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n != "3" {
		t.Errorf("three rows were written, %s are there", n)
	}
}

// operatorKilled takes the operator's Pod away without notice and looks whether
// any Pod of the database was touched.
func operatorKilled(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	const uids = "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].restartCount}{\"\\n\"}{end}"
	before, err := d.Kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-o", uids)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Kubectl(ctx, "delete", "pod", "-n", "fairlead-system", "-l", "app.kubernetes.io/name=fairlead", "--grace-period=0", "--force"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Kubectl(ctx, "-n", "fairlead-system", "rollout", "status", "deployment/fairlead", "--timeout=180s"); err != nil {
		t.Fatal(err)
	}
	if err := d.AwaitReady(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	after, err := d.Kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-o", uids)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("Pods changed (-before +after):\n%s", diff)
	}
}
