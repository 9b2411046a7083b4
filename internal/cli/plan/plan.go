// Package plan is the verb `kubectl fairlead plan`: it prints what the operator
// would do about a manifest, by running the same planner on the same inputs. It
// writes nothing.
package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// options are the flags of the verb.
type options struct {
	genericiooptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	files  []string
	output string
	now    func() time.Time
}

// Command returns the verb.
func Command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, flags: flags, now: time.Now}
	cmd := &cobra.Command{
		Use:   "plan (-f FILE | NAME)",
		Short: "Print what the operator would do about a DorisCluster, without doing it",
		Long: `Print what the operator would do about a DorisCluster, without doing it.

With -f, the plan is for the manifest in the file (or - for standard input) as
if it had been applied now: its spec replaces the one in the cluster. ConfigMaps
in the same file count as applied too. With a name, the plan is for the resource
as it is in the cluster.`,
		Example: `  kubectl fairlead plan -f doris.yaml
  kubectl fairlead plan doris -n analytics
  kubectl fairlead plan -f doris.yaml -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file with the manifest; - is standard input")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml; default: a table for people")
	return cmd
}

func (o *options) validate(args []string) error {
	switch {
	case len(o.files) == 0 && len(args) == 0:
		return errors.New("nothing to plan: give -f FILE or the name of a DorisCluster")
	case len(o.files) > 0 && len(args) > 0:
		return errors.New("give either -f FILE or a name, not both")
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return fmt.Errorf("--output is %q; write json or yaml", o.output)
	}
	return nil
}

// Result is the plan for one resource; it is what -o prints.
type Result struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	plan.Plan `json:",inline"`
	// Next lists what the operator would do right away, up to the first thing
	// that it has to wait for.
	Next []string `json:"next,omitempty"`
}

func (o *options) run(ctx context.Context, args []string) error {
	c, namespace, err := kube.Client(o.flags)
	if err != nil {
		return err
	}
	in, err := o.inputs(ctx, c, namespace, args)
	if err != nil {
		return err
	}
	results := make([]Result, 0, len(in.clusters))
	for _, dc := range in.clusters {
		r, err := o.plan(ctx, in.reader(c), dc)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return o.print(results)
}

func (o *options) plan(ctx context.Context, c client.Reader, dc *dorisv1.DorisCluster) (Result, error) {
	system := doris.New(diff.New(kube.Scheme()))
	world, err := system.Observe(ctx, kube.Reader(c, dc), dc)
	if err != nil {
		return Result{}, fmt.Errorf("reading DorisCluster %q: %w", dc.Name, err)
	}
	p, err := system.Plan(dc, world, o.now())
	if err != nil {
		return Result{}, fmt.Errorf("planning DorisCluster %q: %w", dc.Name, err)
	}
	r := Result{Kind: dorisv1.Kind, Namespace: dc.Namespace, Name: dc.Name, Plan: p}
	for _, s := range p.Steps {
		r.Next = append(r.Next, nextLine(s))
	}
	return r, nil
}

func nextLine(s plan.Step) string {
	if w, ok := s.(plan.Wait); ok {
		return "wait: " + w.Message
	}
	return s.Target().String() + ": " + s.Why()
}

func (o *options) print(results []Result) error {
	switch o.output {
	case "json":
		e := json.NewEncoder(o.Out)
		e.SetIndent("", "  ")
		return e.Encode(results)
	case "yaml":
		b, err := yaml.Marshal(results)
		if err != nil {
			return err
		}
		_, err = o.Out.Write(b)
		return err
	}
	for i, r := range results {
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		if err := table(o.Out, r); err != nil {
			return err
		}
	}
	return nil
}

// shortest is how much of a value a table shows.
const shortest = 60

func short(v string) string {
	if len(v) > shortest {
		return v[:shortest-1] + "…"
	}
	return v
}

func linef(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
