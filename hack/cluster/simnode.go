package main

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-dev/fairlead/test/simnode"
)

// simnodeCommand simulates nodes until it is interrupted. It needs the API
// server alone: `up` can run it before the cluster is ready.
func simnodeCommand(dir *string) *cobra.Command {
	opts := simnode.Options{}
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "simnode",
		Short: "Simulate nodes (a test double of kubelets) in the cluster, until interrupted",
		Long: `Simulate nodes in the cluster, until interrupted. Pods on them become Ready after
a delay, but no container runs. Delays are written as 1s (fixed), 1s..3s
(uniform) or ~2s (exponential with that mean). See docs/simulated-nodes.md.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				kubeconfig = filepath.Join(*dir, "kubeconfig")
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("read the cluster's kubeconfig: %w", err)
			}
			opts.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return simnode.Run(cmd.Context(), config, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the API server (default: that of the cluster's directory)")
	flags.IntVar(&opts.Nodes, "nodes", 3, "number of nodes")
	flags.Uint64Var(&opts.Seed, "seed", 1, "seed of the drawn delays")
	for _, d := range []struct {
		name  string
		field *simnode.Delay
		value string
		usage string
	}{
		{"start", &opts.Start, "1s", "delay until a bound Pod's containers run"},
		{"ready", &opts.Ready, "0s", "delay from there until containers with probes are ready"},
		{"restart", &opts.Restart, "1s", "delay until a container that went down runs again"},
		{"stop", &opts.Stop, "0s", "delay until a deleted Pod is gone"},
		{"run", &opts.Run, "1s", "delay until the containers of a Job's Pod exit"},
		{"resize", &opts.Resize, "0s", "delay until an accepted resize is done"},
		{"provision", &opts.Provision, "0s", "delay until a claim has its volume"},
		{"grow", &opts.Grow, "0s", "delay of each half of a claim's growth"},
	} {
		*d.field = mustDelay(d.value)
		flags.Var(&delayFlag{d.field, d.value}, d.name, d.usage)
	}
	return cmd
}

// delayFlag reads a delay from the command line.
type delayFlag struct {
	delay *simnode.Delay
	text  string
}

func (f *delayFlag) String() string { return f.text }
func (f *delayFlag) Type() string   { return "delay" }

func (f *delayFlag) Set(text string) error {
	delay, err := simnode.ParseDelay(text)
	if err != nil {
		return err
	}
	*f.delay, f.text = delay, text
	return nil
}

// mustDelay reads a delay that is written in this file.
func mustDelay(text string) simnode.Delay {
	delay, err := simnode.ParseDelay(text)
	if err != nil {
		panic(err)
	}
	return delay
}
