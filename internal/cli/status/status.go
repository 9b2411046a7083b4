// Package status is the verb `kubectl fairlead status`: how a resource is, in
// the words of its conditions, and what is pending. It writes nothing.
package status

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
)

// options are the flags of the verb.
type options struct {
	genericiooptions.IOStreams
	flags    *genericclioptions.ConfigFlags
	all      bool
	watch    bool
	interval time.Duration
	output   string
	now      func() time.Time
}

// Command returns the verb.
func Command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, flags: flags, now: time.Now}
	cmd := &cobra.Command{
		Use:   "status [KIND NAME... | KIND/NAME... | NAME]",
		Short: "Print how DorisClusters are, and what is pending",
		Long: `Print how DorisClusters are, and what is pending: conditions, components, members,
the state of a roll, held sets with their digests, findings. Without a name, a line
for each of the namespace. Nothing is written.

--watch goes on until it is interrupted: on a terminal the screen is redrawn, to a
pipe or a file a line is printed whenever there is news.

` + exit.Help,
		Example: `  kubectl fairlead status dcr doris -n analytics
  kubectl fairlead status dcr/doris --watch
  kubectl fairlead status --all-namespaces`,
		ValidArgsFunction: kube.CompleteNames(flags),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "in all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on until interrupted")
	cmd.Flags().DurationVar(&o.interval, "interval", defaultInterval, "how often --watch looks")
	cliplan.OutputFlag(cmd, &o.output)
	return cmd
}

// defaultInterval is how often a watched resource is looked at, and
// shortestInterval how often that may be at most.
const (
	defaultInterval  = 2 * time.Second
	shortestInterval = 100 * time.Millisecond
)

func (o *options) run(ctx context.Context, args []string) error {
	names, all, err := kube.Names(args)
	if err != nil {
		return err
	}
	if err := o.validate(all); err != nil {
		return err
	}
	s, err := kube.Connect(o.flags)
	if err != nil {
		return err
	}
	look := func(ctx context.Context) (*looked, error) { return o.look(ctx, s, names, all) }
	if o.watch {
		return o.follow(ctx, look)
	}
	l, err := look(ctx)
	if err != nil {
		return err
	}
	return o.print(screen.New(o.Out, os.Getenv), l)
}

func (o *options) validate(all bool) error {
	switch {
	case o.all && !all:
		return errors.New("give either names or --all-namespaces")
	case o.watch && (o.output == "json" || o.output == "yaml"):
		return errors.New("--watch prints for people: leave -o out, or -o wide")
	case o.interval < shortestInterval:
		return fmt.Errorf("--interval is at least %s", shortestInterval)
	}
	return cliplan.CheckOutput(o.output)
}

// looked is what was seen: views of named resources, or a list.
type looked struct {
	views []View
	list  []dorisv1.DorisCluster
	all   bool
}

func (o *options) look(ctx context.Context, s *kube.Session, names []string, all bool) (*looked, error) {
	l := &looked{all: all}
	if all {
		namespace := s.Namespace
		if o.all {
			namespace = metav1.NamespaceAll
		}
		var err error
		if l.list, err = s.Clusters(ctx, namespace); err != nil {
			return nil, err
		}
		if o.output != "json" && o.output != "yaml" {
			return l, nil
		}
		for i := range l.list {
			if err := o.view(ctx, s, &l.list[i], l); err != nil {
				return nil, err
			}
		}
		return l, nil
	}
	for _, name := range names {
		dc, err := s.Cluster(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := o.view(ctx, s, dc, l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (o *options) view(ctx context.Context, s *kube.Session, dc *dorisv1.DorisCluster, l *looked) error {
	subject, err := cliplan.Look(ctx, s, dc, o.now())
	if err != nil {
		return err
	}
	r, err := subject.Plan(nil)
	if err != nil {
		return err
	}
	l.views = append(l.views, viewOf(subject, r))
	return nil
}

func (o *options) print(s screen.Screen, l *looked) error {
	if l.views == nil {
		l.views = []View{} // an empty list is not null
	}
	if done, err := cliplan.Encode(s, o.output, l.views); done {
		return err
	}
	if l.all && len(l.list) == 0 {
		s.Linef("No DorisClusters.")
		return nil
	}
	if l.all {
		printList(s, l.list, o.now())
		return nil
	}
	for i, v := range l.views {
		if i > 0 {
			s.Linef("")
		}
		printView(s, v, o.now(), o.output == "wide")
	}
	return nil
}

// follow looks again and again until it is interrupted. The first look has to
// succeed; later a failure is said, and looking goes on.
func (o *options) follow(ctx context.Context, look func(context.Context) (*looked, error)) error {
	s := screen.New(o.Out, os.Getenv)
	said := map[string]string{}
	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		l, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (first || apierrors.IsNotFound(err)):
			return err
		case s.Terminal:
			if err := o.redraw(s, l, err); err != nil {
				return err
			}
		default:
			o.news(s, l, err, said)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (o *options) redraw(s screen.Screen, l *looked, failed error) error {
	if failed != nil {
		s.Linef("%s", s.Painted(screen.Bad, screen.Clean("cannot look: "+failed.Error())))
		return nil //nolint:nilerr // it was said, and looking goes on
	}
	s.Clear()
	return o.print(s, l)
}

// news prints a line for each resource of which there is any.
func (o *options) news(s screen.Screen, l *looked, failed error, said map[string]string) {
	at := o.now().Format(time.TimeOnly)
	tell := func(key, text string) {
		if said[key] != text {
			said[key] = text
			s.Linef("%s %s", at, screen.Clean(text))
		}
	}
	if failed != nil {
		tell("", "cannot look: "+failed.Error())
		return
	}
	delete(said, "")
	for _, v := range l.views {
		tell(v.Namespace+"/"+v.Name, v.line())
	}
	for i := range l.list {
		dc := &l.list[i]
		v := View{Namespace: dc.Namespace, Name: dc.Name, Conditions: dc.Status.Conditions, Generation: dc.Generation, ObservedGeneration: dc.Status.ObservedGeneration}
		tell(dc.Namespace+"/"+dc.Name, v.line())
	}
}
