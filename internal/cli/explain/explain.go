// Package explain is the verb `kubectl fairlead explain`: where the settings of a
// resource come from. It writes nothing, and prints a value only when it is asked to ask
// the nodes for it.
package explain

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

type options struct {
	genericiooptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	output string
	values valueFlags
	now    func() time.Time
}

// Command returns the verb.
func Command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, flags: flags, now: time.Now}
	cmd := &cobra.Command{
		Use:   "explain KIND NAME [KEY]",
		Short: "Say where settings come from",
		Long: `Say of each setting of a DorisCluster that does not come from the image where its
value comes from: a ConfigMap, the operator, or a change in a running node, with the
node and since when that is known. What was changed in running nodes is what the
operator saw last: it asks about once a minute. Nothing is written.

No value is printed, but with --values those that are in force, as each node says now. The
nodes are asked through the API server, as kubectl port-forward does; the account needs the
right to create pods/portforward. Values that may be credentials are hidden. Frontends want
an account of the database: --user, with --password-stdin, or else root without a password.
Secrets are read with --read-secrets alone: that of spec.authSecret, and those with the
certificates of a cluster that speaks TLS.

` + exit.Help,
		Example: `  kubectl fairlead explain dcr doris
  kubectl fairlead explain dcr/doris qe_slow_log_ms
  kubectl fairlead explain dcr doris streaming_load_max_mb --values`,
		ValidArgsFunction: kube.CompleteOne(flags, nil),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cliplan.OutputFlag(cmd, &o.output)
	o.values.add(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	name, rest, err := kube.One(args)
	if err != nil {
		return err
	}
	if len(rest) > 1 {
		return fmt.Errorf("one KEY, and not %d", len(rest))
	}
	if err := cliplan.CheckOutput(o.output); err != nil {
		return err
	}
	if err := o.values.check(); err != nil {
		return err
	}
	key := ""
	if len(rest) == 1 {
		key = rest[0]
	}
	s, err := kube.Connect(o.flags)
	if err != nil {
		return err
	}
	dc, err := s.Cluster(ctx, name)
	if err != nil {
		return err
	}
	subject, err := cliplan.Look(ctx, s, dc, o.now())
	if err != nil {
		return err
	}
	v := view{settings: doris.ExplainSettings(dc, subject.World, key), unheard: doris.Unheard(dc, subject.World), key: key}
	if o.values.show {
		if v.nodes, err = o.ask(ctx, s, subject, v); err != nil {
			return err
		}
	}
	return o.print(screen.New(o.Out, os.Getenv), v)
}

// view is what is printed.
type view struct {
	settings []doris.Explained
	// unheard are the components of which it is not known what was changed in their nodes.
	unheard []dorisv1.ComponentType
	// key is the setting that was asked for; empty for all.
	key string
	// nodes are what the nodes say, where they were asked.
	nodes []doris.Answer
}

func (o *options) print(out screen.Screen, v view) error {
	if v.settings == nil {
		v.settings = []doris.Explained{} // programs read a list
	}
	var encoded any = v.settings
	if v.nodes != nil {
		encoded = withValues{v.settings, v.nodes}
	}
	if done, err := cliplan.Encode(o.Out, o.output, encoded); done || err != nil {
		return err
	}
	switch {
	case len(v.settings) > 0:
		out.Print(table(v.settings))
	case v.key != "" && v.nobodyHas():
	case v.key != "":
		out.Linef("%s is as the image has it.", v.key)
	default:
		out.Linef("All settings are as the image has them.")
	}
	for _, kind := range v.unheard {
		out.Linef("What was changed in running nodes of %s is not known: the operator has not heard them yet.", kind)
	}
	o.printValues(out, v)
	return nil
}

func table(settings []doris.Explained) screen.Table {
	t := screen.Table{}
	t.Head("COMPONENT", "SETTING", "FROM", "WHERE", "SINCE", "MUTABLE", "NOTE")
	for i := range settings {
		e := &settings[i]
		note, mutable := "", ""
		switch {
		case e.Lost:
			note = "lost: the node was started then, and does not have it"
		case e.Contradicts:
			note = "wins over the ConfigMap, which says something else"
		}
		switch {
		case e.Mutable == nil:
		case *e.Mutable:
			mutable = "yes"
		default:
			mutable = "no"
		}
		t.Row(screen.Texts(string(e.Component), e.Key, string(e.Layer), cmp.Or(e.Pod, e.Source), e.Since, mutable, note)...)
	}
	return t
}
