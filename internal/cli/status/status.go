// Package status is the verb `kubectl fairlead status`: how a resource is, in
// the words of its conditions, and what is pending.
package status

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
)

// Command returns the verb.
func Command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:     "status [NAME]",
		Short:   "Print how DorisClusters are",
		Example: "  kubectl fairlead status doris -n analytics\n  kubectl fairlead status --all-namespaces",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, err := kube.Client(flags)
			if err != nil {
				return err
			}
			if all {
				namespace = metav1.NamespaceAll
			}
			list, err := clusters(cmd.Context(), c, namespace, args)
			if err != nil {
				return err
			}
			return printAll(streams.Out, list)
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "in all namespaces")
	return cmd
}

func clusters(ctx context.Context, c client.Reader, namespace string, names []string) ([]dorisv1.DorisCluster, error) {
	if len(names) == 0 {
		list := &dorisv1.DorisClusterList{}
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing DorisClusters: %w", err)
		}
		return list.Items, nil
	}
	dc := &dorisv1.DorisCluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names[0]}, dc); err != nil {
		return nil, fmt.Errorf("reading DorisCluster %q: %w", names[0], err)
	}
	return []dorisv1.DorisCluster{*dc}, nil
}

func printAll(out io.Writer, list []dorisv1.DorisCluster) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "No DorisClusters.")
		return err
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printOne(out, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func printOne(out io.Writer, dc *dorisv1.DorisCluster) error {
	fmt.Fprintf(out, "DorisCluster %s/%s", dc.Namespace, dc.Name)
	if dc.Status.ObservedGeneration != dc.Generation {
		fmt.Fprint(out, "   (the newest spec has not been seen by the operator yet)")
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, c := range dc.Status.Conditions {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	fmt.Fprintln(w, "  \t\t\t")
	component(w, "fe", dc.Status.FeStatus)
	component(w, "be", dc.Status.BeStatus)
	return w.Flush()
}

func component(w io.Writer, name string, s *dorisv1.ComponentStatus) {
	if s == nil {
		return
	}
	parts := []string{fmt.Sprintf("%d running", len(s.RunningInstances))}
	if n := len(s.CreatingInstances); n > 0 {
		parts = append(parts, fmt.Sprintf("%d starting", n))
	}
	if n := len(s.FailedInstances); n > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", n))
	}
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", name, s.ComponentCondition.Phase, strings.Join(parts, ", "), s.ComponentCondition.Message)
}
