// Command demo brings up everything on this machine: a Kubernetes cluster with
// a real node, the operator in it, and a Doris cluster, and shows it at work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
	"github.com/fairlead-dev/fairlead/test/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir := ""
	root := &cobra.Command{Use: "demo", Short: "The demonstration of the README", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().StringVar(&dir, "dir", defaultDir(), "directory of the demonstration's cluster")
	root.AddCommand(
		&cobra.Command{Use: "up", Args: cobra.NoArgs, Short: "Bring everything up", RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), dir) }},
		&cobra.Command{Use: "down", Args: cobra.NoArgs, Short: "Remove everything", RunE: func(cmd *cobra.Command, _ []string) error { return down(cmd.Context(), dir) }},
	)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func defaultDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "fairlead", "demo")
}

const intro = `This brings up, on this machine and for as long as you like:
  - a Kubernetes cluster with one real node (containerd, kubelet), in a network of its own
  - the operator, installed with its chart, charts/fairlead, by Helm
  - a Doris cluster of three frontends and three backends, from examples/doriscluster.yaml

Doris itself is played by a stand-in (docs/dorissim.md), as no image registry is used.
It installs Debian packages where they are missing (containerd, runc, CNI plugins and
others; each is named) and builds Kubernetes from source once, in about ten minutes on two cores.
"make demo-down" removes all but the packages, the cache of built programs, and bin/.
`

func up(ctx context.Context, dir string) error {
	if err := ownDirectory(dir); err != nil {
		return err
	}
	release, err := lock(dir)
	if err != nil {
		return err
	}
	defer release()
	if _, err := cluster.Open(filepath.Join(dir, "cluster")); err == nil {
		return fmt.Errorf("the demonstration is up already in %s; remove it with: make demo-down", dir)
	}
	fmt.Print(intro, "\n")
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	d := &demo.Demo{Root: root, Images: filepath.Join(dir, "images"), Out: os.Stdout}
	d.Begin()
	if err := os.MkdirAll(d.Images, 0o755); err != nil {
		return err
	}
	images := make(chan error, 1)
	go func() { images <- buildAll(ctx, d) }()
	d.Sayf("starting Kubernetes (its log: %s)", filepath.Join(dir, "cluster", "logs"))
	d.Cluster, err = cluster.Up(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Nodes: cluster.Real, Log: os.Stdout})
	if imagesErr := <-images; imagesErr != nil {
		err = errors.Join(err, imagesErr)
	}
	if err != nil {
		return err
	}
	d.Sayf("Kubernetes runs")
	return show(ctx, d, dir)
}

// buildAll makes what needs no cluster, while that one starts.
func buildAll(ctx context.Context, d *demo.Demo) error {
	d.Sayf("building the images, Helm, bin/cluster and bin/kubectl-fairlead, while Kubernetes starts")
	return errors.Join(
		demo.BuildImages(ctx, d.Root, d.Images, d.Out),
		demo.BuildHelm(ctx, d.Root, d.Images, d.Out),
		demo.BuildTools(ctx, d.Root, d.Out),
	)
}

func show(ctx context.Context, d *demo.Demo, dir string) error {
	for _, step := range []func(context.Context) error{d.Install, d.Create} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := d.AwaitReady(ctx, 10*time.Minute); err != nil {
		return err
	}
	live, err := d.AwaitBackends(ctx, 3, time.Minute)
	if err != nil {
		return err
	}
	d.Sayf("SHOW BACKENDS through the frontends' Service lists three live backends: %s", strings.Join(live, ", "))
	d.Sayf("writing three rows, then deleting the Pod of a backend")
	if err := d.WriteRows(ctx); err != nil {
		return err
	}
	if err := d.LosePod(ctx, demo.Name+"-be-1"); err != nil {
		return err
	}
	n, err := d.CountRows(ctx)
	if err != nil {
		return err
	}
	d.Sayf("SELECT COUNT(*) after the Pod was replaced: %s", n)
	if n != "3" {
		return fmt.Errorf("three rows were written and %s are there", n)
	}
	d.Sayf("done")
	fmt.Printf(next, dir, filepath.Join(dir, "cluster"))
	return nil
}

const next = `
What to try next, in this directory:

  eval "$(bin/cluster env --dir %[2]s)"     # kubectl of this cluster
  kubectl get dcr,pods,pvc -n analytics
  kubectl describe dcr doris -n analytics
  bin/kubectl-fairlead status doris -n analytics
  bin/kubectl-fairlead explain operator            # its options, and where they come from
  %[1]s/images/helm upgrade fairlead charts/fairlead -n fairlead-system --reset-then-reuse-values --set logging.level=debug
  sed 's/memory: 256Mi/memory: 300Mi/' examples/doriscluster.yaml \
    | bin/kubectl-fairlead plan -n analytics -f -  # what an edit would do
  make demo-down                                   # remove it all
`

func down(ctx context.Context, dir string) error {
	if err := ownDirectory(dir); err != nil {
		return err
	}
	release, err := lock(dir)
	if err != nil {
		return err
	}
	defer release()
	err = cluster.Down(context.WithoutCancel(ctx), filepath.Join(dir, "cluster"))
	if err != nil && !errors.Is(err, ledger.ErrNone) {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.Remove(lockFile(dir))); err != nil {
		return err
	}
	fmt.Println("The demonstration is gone.")
	return nil
}
