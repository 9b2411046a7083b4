// Package act holds the verbs of the kubectl plugin by which a person speaks to
// the operator: approve, pause, resume, restart, release. Each prints what would
// follow, asks, and sets an annotation of the custom resource; nothing else is
// ever written.
package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
)

// verb is what all verbs of this package have.
type verb struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	yes   bool
	now   func() time.Time
}

// Commands returns the verbs.
func Commands(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) []*cobra.Command {
	v := func() *verb { return &verb{IOStreams: streams, flags: flags, now: time.Now} }
	return []*cobra.Command{approve(v()), pause(v()), resume(v()), restart(v()), release(v())}
}

// command finishes a command: what all verbs say and take.
func (v *verb) command(cmd *cobra.Command) *cobra.Command {
	cmd.Long += "\n\nIt prints what would follow and asks; only the DorisCluster itself is changed.\n\n" + exit.Help
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = kube.CompleteOne(v.flags, nil)
	}
	return cmd
}

// subject reads the one resource that the arguments name, and returns the
// arguments after it.
func (v *verb) subject(ctx context.Context, args []string) (*kube.Session, *plan.Subject, []string, error) {
	name, rest, err := kube.One(args)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := kube.Connect(v.flags)
	if err != nil {
		return nil, nil, nil, err
	}
	subject, err := v.look(ctx, s, name)
	return s, subject, rest, err
}

func (v *verb) look(ctx context.Context, s *kube.Session, name string) (*plan.Subject, error) {
	dc, err := s.Cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	return plan.Look(ctx, s, dc, v.now())
}

// none refuses arguments that a verb does not take.
func none(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q: one resource at a time", rest[0])
	}
	return nil
}

// change is what a verb is about to do.
type change struct {
	annotations map[string]*string
	// question is asked; done is said afterwards.
	question, done string
	// check, when set, holds that the change still is what was agreed to, on a
	// resource that was read again.
	check func(*plan.Subject) error
}

// attempts is how often a write is tried on a resource whose status alone keeps
// changing.
const attempts = 5

// carry asks, and sets the annotations.
func (v *verb) carry(ctx context.Context, s *kube.Session, subject *plan.Subject, c change) error {
	if !v.yes {
		v.screen().Linef("")
		if err := screen.Confirm(ctx, v.In, v.Out, c.question); err != nil {
			return err
		}
	}
	agreed := subject.Cluster
	for range attempts {
		err := s.Annotate(ctx, subject.Cluster.DeepCopy(), c.annotations)
		if err == nil {
			v.screen().Linef("%s", c.done)
			v.screen().Linef("Follow it with: kubectl fairlead status %s/%s -n %s --watch", kube.ShortKind, agreed.Name, agreed.Namespace)
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		// Its status changes while the operator works; what was agreed to does not.
		if subject, err = v.look(ctx, s, agreed.Name); err != nil {
			return err
		}
		if !unchanged(agreed, subject.Cluster) {
			return errors.New("the resource was changed by somebody else meanwhile, so the plan above may not hold; nothing was changed: look again")
		}
		if c.check == nil {
			continue
		}
		if err := c.check(subject); err != nil {
			return err
		}
	}
	return fmt.Errorf("the resource keeps changing (%d attempts); nothing was changed: try again", attempts)
}

// unchanged tells whether nothing that a person writes differs.
func unchanged(a, b *dorisv1.DorisCluster) bool {
	return a.UID == b.UID && a.Generation == b.Generation && maps.Equal(a.Annotations, b.Annotations)
}

func (v *verb) screen() screen.Screen { return screen.New(v.Out, os.Getenv) }

// preview prints the plan with other annotations.
func (v *verb) preview(subject *plan.Subject, annotations map[string]*string) error {
	r, err := subject.Plan(annotations)
	if err != nil {
		return err
	}
	plan.Print(v.screen(), r, false)
	return nil
}

// called names a resource in a sentence.
func called(dc *dorisv1.DorisCluster) string {
	return fmt.Sprintf("DorisCluster %s/%s", dc.Namespace, dc.Name)
}

func list(words []string) string { return strings.Join(words, ", ") }
