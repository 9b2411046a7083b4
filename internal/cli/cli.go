// Package cli is the kubectl plugin: `kubectl fairlead`.
package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/internal/cli/act"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/explain"
	"github.com/fairlead-dev/fairlead/internal/cli/history"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/cli/migrate"
	"github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/self"
	"github.com/fairlead-dev/fairlead/internal/cli/status"
	"github.com/fairlead-dev/fairlead/internal/version"
)

// Command returns the plugin with all its verbs.
func Command(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	cmd := &cobra.Command{
		Use:   "kubectl-fairlead",
		Short: "See what Fairlead does with your data systems, and what it would do",
		Long: `See what Fairlead does with your data systems, and what it would do.

plan, status, history and explain write nothing. The other verbs print what would follow, ask, and
change nothing but annotations of the DorisCluster; runtime-config, which copies settings, also the
field by which it asks for them to be kept.

` + exit.HelpOfPlan + `
(--exit-code is a flag of plan; the other verbs end with 0 or 1.)`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fairlead"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags.AddFlags(cmd.PersistentFlags())
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return kube.Namespaces(cmd.Context(), flags), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return contexts(flags), cobra.ShellCompDirectiveNoFileComp
	})
	how := status.Command(flags, streams)
	how.AddCommand(self.StatusCommand(flags, streams))
	where := explain.Command(flags, streams)
	where.AddCommand(self.ExplainCommand(flags, streams))
	cmd.AddCommand(plan.Command(flags, streams), how, history.Command(flags, streams), where)
	cmd.AddCommand(act.Commands(flags, streams)...)
	cmd.AddCommand(migrate.Command(flags, streams))
	cmd.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { fmt.Fprintln(streams.Out, version.String()) },
	})
	return cmd
}

// contexts are those of the kubeconfig.
func contexts(flags *genericclioptions.ConfigFlags) []string {
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}
