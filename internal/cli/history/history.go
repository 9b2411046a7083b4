// Package history is the verb `kubectl fairlead history`: what was rolled, when, why
// and for whom. It reads the status of the resource, and writes nothing.
package history

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
)

// View is the history of one resource; it is what -o prints.
type View struct {
	Kind      string               `json:"kind"`
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	History   []dorisv1.RollRecord `json:"history"`
}

// options are the flags of the verb.
type options struct {
	genericiooptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	output string
	now    func() time.Time
}

// Command returns the verb.
func Command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, flags: flags, now: time.Now}
	cmd := &cobra.Command{
		Use:   "history KIND NAME... | KIND/NAME... | NAME",
		Short: "Print what was rolled, when, why and for whom",
		Long: `Print what was rolled, when, why and for whom: the newest changes of Pod templates of a
DorisCluster, at most 8 of a component and 20 of a cluster, the newest first. Nothing is
written, and nothing but the resource itself is read.

BY is the program that wrote the change, as the API server has it (its field manager);
people have no names there. -o wide shows everything that was different, and times.

` + exit.Help,
		Example: `  kubectl fairlead history dcr doris -n analytics
  kubectl fairlead history dcr/doris -o yaml`,
		ValidArgsFunction: kube.CompleteNames(flags),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cliplan.OutputFlag(cmd, &o.output)
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	names, all, err := kube.Names(args)
	if err != nil {
		return err
	}
	if err := cliplan.CheckOutput(o.output); err != nil {
		return err
	}
	s, err := kube.Connect(o.flags)
	if err != nil {
		return err
	}
	views := []View{}
	if all {
		list, err := s.Clusters(ctx, s.Namespace)
		if err != nil {
			return err
		}
		for i := range list {
			views = append(views, viewOf(&list[i]))
		}
	}
	for _, name := range names {
		dc, err := s.Cluster(ctx, name)
		if err != nil {
			return err
		}
		views = append(views, viewOf(dc))
	}
	return o.print(screen.New(o.Out, os.Getenv), views)
}

func viewOf(dc *dorisv1.DorisCluster) View {
	v := View{Kind: dorisv1.Kind, Namespace: dc.Namespace, Name: dc.Name, History: dc.Status.History}
	if v.History == nil {
		v.History = []dorisv1.RollRecord{} // an empty list is not null
	}
	return v
}

func (o *options) print(s screen.Screen, views []View) error {
	if done, err := cliplan.Encode(s, o.output, views); done {
		return err
	}
	if len(views) == 0 {
		s.Linef("No DorisClusters.")
	}
	for i, v := range views {
		if i > 0 {
			s.Linef("")
		}
		o.printView(s, v)
	}
	return nil
}

func (o *options) printView(s screen.Screen, v View) {
	head := fmt.Sprintf("%s %s/%s", v.Kind, v.Namespace, v.Name)
	if len(v.History) == 0 {
		s.Linef("%s: nothing was rolled yet", head)
		return
	}
	s.Linef("%s", s.Painted(screen.Head, head))
	t := screen.Table{Indent: "  "}
	t.Head("BEGAN", "COMPONENT", "OUTCOME", "PODS", "TOOK", "CAUSE", "BY", "WHAT")
	for _, r := range v.History {
		t.Row(screen.Cell{Text: o.began(r)}, screen.Cell{Text: string(r.Component)}, outcome(r), screen.Cell{Text: pods(r)}, screen.Cell{Text: took(r)},
			screen.Cell{Text: r.Cause}, screen.Cell{Text: strings.Join(r.By, ", ")}, screen.Cell{Text: o.what(r)})
	}
	s.Print(t)
}

func (o *options) began(r dorisv1.RollRecord) string {
	if o.output == "wide" {
		return r.Began.UTC().Format(time.RFC3339)
	}
	return duration.HumanDuration(o.now().Sub(r.Began.Time)) + " ago"
}

func outcome(r dorisv1.RollRecord) screen.Cell {
	c := screen.Cell{Text: string(r.Outcome), Paint: screen.Mind}
	switch r.Outcome {
	case dorisv1.RollDone:
		c.Paint = screen.Good
	case dorisv1.RollStopped, dorisv1.RollRolledBack:
		c.Paint = screen.Bad
	case dorisv1.RollUnderWay, dorisv1.RollOvertaken:
	}
	return c
}

func pods(r dorisv1.RollRecord) string {
	if r.Pods == 0 {
		return ""
	}
	return fmt.Sprint(r.Pods)
}

func took(r dorisv1.RollRecord) string {
	if r.Ended == nil {
		return ""
	}
	return duration.HumanDuration(r.Ended.Sub(r.Began.Time))
}

// what says what was different, and why it ended if it ended badly.
func (o *options) what(r dorisv1.RollRecord) string {
	text := ""
	if len(r.Changes) > 0 {
		text = r.Changes[0]
	}
	if n := len(r.Changes) - 1; n > 0 && o.output != "wide" {
		text += fmt.Sprintf(" (+%d)", n)
	}
	if o.output == "wide" {
		text = strings.Join(r.Changes, "; ") + " [" + r.Effect + "]"
	}
	if r.Message != "" {
		text += "; " + r.Message
	}
	return text
}
