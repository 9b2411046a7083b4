package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/build"
	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
)

func upCommand(dir *string) *cobra.Command {
	opts := cluster.Options{}
	nodes := string(cluster.None)
	cmd := &cobra.Command{
		Use:   "up [-- FLAGS OF SIMNODE]",
		Short: "Bring a cluster up, building its programs first if they are not in the cache",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (cmd.ArgsLenAtDash() != 0 || nodes != string(cluster.Simulated)) {
				return fmt.Errorf("unexpected argument %q: only flags of simnode, after --, with simulated nodes", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			opts.Dir, opts.Self, opts.Nodes, opts.Log = *dir, self, cluster.Nodes(nodes), cmd.ErrOrStderr()
			opts.Simulate = args
			c, err := cluster.Up(cmd.Context(), opts)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "The cluster is up. To use it: eval \"$(%s env --dir %s)\"\n", invocation(), c.Dir())
			return nil
		},
	}
	cmd.Flags().StringVar(&opts.Version, "version", build.DefaultVersion, "Kubernetes version")
	cmd.Flags().StringVar(&nodes, "nodes", nodes, "kind of nodes: none, simulated or real (needs root)")
	cmd.Flags().BoolVar(&opts.KeepOnFailure, "keep-on-failure", false, "leave a cluster that does not come up as it is, to look at its logs; `down` removes it")
	return cmd
}

// invocation is how the user called this program, as far as that can be repeated.
func invocation() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./hack/cluster"
	}
	return os.Args[0]
}

func downCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Take the cluster down and remove everything it made",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// An interrupt must not leave half of it standing.
			err := cluster.Down(context.WithoutCancel(cmd.Context()), *dir)
			if errors.Is(err, ledger.ErrNone) {
				fmt.Fprintf(cmd.ErrOrStderr(), "cluster: nothing to do: %v\n", err)
				return nil
			}
			return err
		},
	}
}

func statusCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say whether the cluster is up and which of its parts are not",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(*dir)
			if err != nil {
				return err
			}
			return status(cmd.Context(), cmd.OutOrStdout(), c)
		},
	}
}

func status(ctx context.Context, out io.Writer, c *cluster.Cluster) error {
	record := c.Record()
	fmt.Fprintf(out, "directory   %s\nkubernetes  v%s\nnodes       %s\nserver      %s\n",
		c.Dir(), record.Version, record.Nodes, record.Server)
	for _, p := range record.Processes {
		fmt.Fprintf(out, "process     %s (pid %d)\n", p.Name, p.PID)
	}
	if dead := c.Dead(); len(dead) > 0 {
		return fmt.Errorf("not running any more: %s; see %s", strings.Join(dead, ", "), filepath.Join(c.Dir(), "logs"))
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("ask the API server for its nodes: %w", err)
	}
	for _, node := range nodes.Items {
		state := "unknown"
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" {
				state = string(condition.Status)
			}
		}
		fmt.Fprintf(out, "node        %s (ready: %s)\n", node.Name, state)
	}
	return nil
}

func envCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print shell commands that point kubectl, of the cluster's version, and its plugin at the cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(*dir)
			if err != nil {
				return err
			}
			path := []string{quote(filepath.Dir(c.Record().Kubectl))}
			if plugin := pluginDirs(); len(plugin) > 0 {
				for _, dir := range plugin {
					path = append(path, quote(dir))
				}
			} else {
				fmt.Fprintln(cmd.ErrOrStderr(), "cluster: kubectl fairlead is not built, so it is not put on the PATH: make build, and ask again")
			}
			fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\nexport FAIRLEAD_CLUSTER_DIR=%s\nexport KUBECACHEDIR=%s\nexport PATH=%s:\"$PATH\"\n",
				quote(c.Kubeconfig()), quote(c.Dir()), quote(c.ClientCache()), strings.Join(path, ":"))
			return nil
		},
	}
}

// pluginDirs are the directories with the kubectl plugin and its completion:
// where this program lies, or else where `make build` puts it in the tree that
// holds the present directory. None when the plugin was not built.
func pluginDirs() []string {
	var candidates []string
	if self, err := os.Executable(); err == nil {
		candidates = append(candidates, filepath.Dir(self))
	}
	root := moduleRoot()
	if root != "" {
		candidates = append(candidates, filepath.Join(root, "bin"))
	}
	for _, dir := range candidates {
		if info, err := os.Stat(filepath.Join(dir, "kubectl-fairlead")); err != nil || info.IsDir() {
			continue
		}
		dirs := []string{dir}
		if root != "" {
			dirs = append(dirs, filepath.Join(root, "cmd", "kubectl-fairlead"))
		}
		return dirs
	}
	return nil
}

// moduleRoot is the top of the source tree that holds the present directory;
// empty outside of it.
func moduleRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "kubectl-fairlead", "main.go")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// quote makes a word of the text for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func loadImageCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "load-image ARCHIVE...",
		Short: "Import image archives (docker-archive or OCI) into the real node",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, archives []string) error {
			c, err := cluster.Open(*dir)
			if err != nil {
				return err
			}
			for _, archive := range archives {
				if err := c.LoadImage(cmd.Context(), archive); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
