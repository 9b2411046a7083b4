package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-dev/fairlead/test/cluster/node"
	"github.com/fairlead-dev/fairlead/test/cluster/provisioner"
)

// The commands of this file are what "up" starts in the background; nobody
// calls them by hand.

func nodeInitCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:    "node-init",
		Short:  "Be the first process of a real node",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return node.Init(cmd.Context(), *dir, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		},
	}
}

func provisionerCommand() *cobra.Command {
	var kubeconfig string
	p := &provisioner.Provisioner{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	cmd := &cobra.Command{
		Use:    "provisioner",
		Short:  "Give claims directories of the node as their volumes",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			config.UserAgent = "fairlead-provisioner"
			config.QPS, config.Burst = 100, 200
			if p.Client, err = kubernetes.NewForConfig(config); err != nil {
				return err
			}
			return p.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the provisioner")
	cmd.Flags().StringVar(&p.Dir, "volumes", "", "directory of the volumes")
	cmd.Flags().StringVar(&p.Node, "node", "", "name of the node")
	return cmd
}
