// Package plan is the verb `kubectl fairlead plan`: it prints what the operator
// would do about a resource or a manifest, by running the same planner on the same
// inputs. It writes nothing.
package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/cli/manifest"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// options are the flags of the verb.
type options struct {
	genericiooptions.IOStreams
	flags     *genericclioptions.ConfigFlags
	files     []string
	recursive bool
	output    string
	exitCode  bool
	now       func() time.Time
}

// Command returns the verb.
func Command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, flags: flags, now: time.Now}
	cmd := &cobra.Command{
		Use:   "plan (-f FILE | KIND [NAME...] | KIND/NAME... | NAME)",
		Short: "Print what the operator would do, without doing it",
		Long: `Print what the operator would do about a DorisCluster, without doing it. Nothing
is written.

With -f, the plan is for the manifests as if they had been applied now: the spec
of each replaces the one in the cluster, its annotations are added. ConfigMaps,
Secrets and Namespaces in the files count as applied too; other kinds have no
part in a plan and are named. With a name, the plan is for the resource as it is
in the cluster; with a kind alone, for all of the namespace.

` + exit.HelpOfPlan,
		Example: `  kubectl fairlead plan -f doris.yaml
  kubectl fairlead plan -f manifests/ -R --exit-code
  kubectl fairlead plan dcr doris -n analytics
  kubectl fairlead plan dcr/doris -o yaml`,
		ValidArgsFunction: kube.CompleteNames(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or directory with manifests; - is standard input; may be repeated")
	cmd.Flags().BoolVarP(&o.recursive, "recursive", "R", false, "look into the directories below those of -f, too")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit with 2 when there are changes to apply, with 3 when something is held or refused")
	OutputFlag(cmd, &o.output)
	return cmd
}

// OutputFlag adds the flag -o.
func OutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json, yaml or wide; default: what people need on one screen")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml", "wide"}, cobra.ShellCompDirectiveNoFileComp))
}

// CheckOutput refuses what -o does not know.
func CheckOutput(output string) error {
	switch output {
	case "", "json", "yaml", "wide":
		return nil
	}
	return fmt.Errorf("--output is %q; write json, yaml or wide", output)
}

// Encode prints a value in the format of -o and tells whether it did.
func Encode(out io.Writer, output string, value any) (done bool, err error) {
	switch output {
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return true, e.Encode(value)
	case "yaml":
		b, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(b)
		}
		return true, err
	}
	return false, nil
}

func (o *options) validate(args []string) error {
	switch {
	case len(o.files) == 0 && len(args) == 0:
		return errors.New("nothing to plan: give -f FILE, or KIND NAME such as dcr doris")
	case len(o.files) > 0 && len(args) > 0:
		return errors.New("give either -f FILE or a name, not both")
	case o.recursive && len(o.files) == 0:
		return errors.New("--recursive is for -f")
	}
	return CheckOutput(o.output)
}

func (o *options) run(ctx context.Context, args []string) error {
	set, names, all := manifest.NewSet(), []string(nil), false
	var err error
	if len(o.files) == 0 {
		if names, all, err = kube.Names(args); err != nil {
			return err
		}
	}
	s, err := kube.Connect(o.flags)
	if err != nil {
		return err
	}
	if err := o.read(s, set); err != nil {
		return err
	}
	var results []Result
	if len(o.files) > 0 {
		results, err = o.manifests(ctx, s, set)
	} else {
		results, err = o.existing(ctx, s, names, all)
	}
	if err != nil {
		return err
	}
	if err := o.print(results); err != nil {
		return err
	}
	return status(results, o.exitCode)
}

// read reads the files, and says what of them has no part in the plan.
func (o *options) read(s *kube.Session, set *manifest.Set) error {
	reading := manifest.Reading{Scheme: kube.Scheme(), Namespace: s.Namespace, Chosen: s.Chosen}
	for _, name := range o.files {
		files, err := manifest.Files(name, o.recursive)
		if err != nil {
			return err
		}
		for _, f := range files {
			text, err := manifest.Read(f, o.In)
			if err != nil {
				return err
			}
			if err := set.Add(reading, f, text); err != nil {
				return err
			}
		}
	}
	for _, text := range set.Replaced {
		fmt.Fprintln(o.ErrOut, "Note:", text)
	}
	for _, text := range set.Ignored {
		fmt.Fprintf(o.ErrOut, "Note: no part of the plan: %s\n", text)
	}
	if len(o.files) > 0 && len(set.Clusters) == 0 {
		return fmt.Errorf("no DorisCluster in %s", strings.Join(o.files, ", "))
	}
	return nil
}

func (o *options) existing(ctx context.Context, s *kube.Session, names []string, all bool) ([]Result, error) {
	var clusters []*dorisv1.DorisCluster
	if all {
		list, err := s.Clusters(ctx, s.Namespace)
		if err != nil {
			return nil, err
		}
		for i := range list {
			clusters = append(clusters, &list[i])
		}
		if len(list) == 0 {
			fmt.Fprintf(o.ErrOut, "No DorisCluster in namespace %q.\n", s.Namespace)
		}
	}
	for _, name := range names {
		dc, err := s.Cluster(ctx, name)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, dc)
	}
	results := make([]Result, 0, len(clusters))
	for _, dc := range clusters {
		r, err := o.plan(ctx, s, dc)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func (o *options) manifests(ctx context.Context, s *kube.Session, set *manifest.Set) ([]Result, error) {
	results := make([]Result, 0, len(set.Clusters))
	for _, dc := range set.Clusters {
		have, err := s.Current(ctx, dc)
		if err != nil {
			return nil, err
		}
		r, err := o.plan(ctx, set.Over(s), onLive(dc, have))
		if err != nil {
			return nil, err
		}
		r.Manifest = true
		if have == nil {
			r.Notes = append([]string{"it does not exist yet and would be made"}, r.Notes...)
		}
		if have == nil && !set.Makes(dc.Namespace) && s.NoNamespace(ctx, dc.Namespace) {
			r.Notes = append([]string{fmt.Sprintf("namespace %q does not exist: make it first; kubectl apply would fail", dc.Namespace)}, r.Notes...)
		}
		results = append(results, r)
	}
	return results, nil
}

func (o *options) plan(ctx context.Context, c client.Reader, dc *dorisv1.DorisCluster) (Result, error) {
	subject, err := Look(ctx, c, dc, o.now())
	if err != nil {
		return Result{}, err
	}
	return subject.Plan(nil)
}

// onLive puts the spec of a manifest on the resource that exists, if any.
func onLive(dc, have *dorisv1.DorisCluster) *dorisv1.DorisCluster {
	if have == nil {
		return dc
	}
	merged := have.DeepCopy()
	merged.Spec = dc.Spec
	if merged.Annotations == nil {
		merged.Annotations = map[string]string{}
	}
	maps.Copy(merged.Annotations, dc.Annotations)
	return merged
}

func (o *options) print(results []Result) error {
	if done, err := Encode(o.Out, o.output, results); done {
		return err
	}
	s := screen.New(o.Out, os.Getenv)
	for i, r := range results {
		if i > 0 {
			s.Linef("")
		}
		Print(s, r, o.output == "wide")
	}
	return nil
}

// status is how the program ends: see exit.Help.
func status(results []Result, asked bool) error {
	changes, held := false, false
	for _, r := range results {
		n := r.Count()
		if n.Refused > 0 {
			return exit.StatusError(exit.Refused)
		}
		held = held || n.Held > 0 || n.Unapprovable > 0
		changes = changes || n.Pending
	}
	switch {
	case asked && held:
		return exit.StatusError(exit.Refused)
	case asked && changes:
		return exit.StatusError(exit.Changes)
	}
	return nil
}

// effectPaint is the colour of an effect.
func effectPaint(e plan.Effect) screen.Paint {
	switch e {
	case plan.EffectNone:
		return screen.Plain
	case plan.EffectRecreate, plan.EffectDataLoss:
		return screen.Bad
	default:
		return screen.Mind
	}
}
