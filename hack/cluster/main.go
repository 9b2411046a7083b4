// Command cluster runs a local Kubernetes cluster for development and tests.
// See docs/local-cluster.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/test/cluster/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:           "cluster",
		Short:         "Run a Kubernetes cluster on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", defaultDir(),
		"directory of the cluster; one cluster each (default taken from $FAIRLEAD_CLUSTER_DIR if set)")
	cmd.AddCommand(upCommand(&dir), downCommand(&dir), statusCommand(&dir), envCommand(&dir), loadImageCommand(&dir),
		nodeInitCommand(&dir), provisionerCommand(), simnodeCommand(&dir))
	return cmd
}

func defaultDir() string {
	if dir := os.Getenv("FAIRLEAD_CLUSTER_DIR"); dir != "" {
		return dir
	}
	cache, err := build.CacheDir()
	if err != nil {
		return "fairlead-cluster"
	}
	return filepath.Join(cache, "clusters", "default")
}
