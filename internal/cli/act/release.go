package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
)

func release(v *verb) *cobra.Command {
	undo := false
	cmd := v.command(&cobra.Command{
		Use:   "release KIND NAME",
		Short: "Hand the workloads of a resource back, to another operator or to nobody",
		Long: `Hand the workloads of a resource back, to another operator or to nobody: the operator
lets the StatefulSet controller replace Pods again (updateStrategy RollingUpdate),
gives up the ownership of its fields, and writes nothing any more but the status.
No object is deleted and no Pod is replaced: where a Pod is not on the newest template
of its set, which the StatefulSet controller would replace at once, nothing is handed
back.`,
		Example: "  kubectl fairlead release dcr doris -n analytics\n  kubectl fairlead release dcr doris --undo",
		RunE:    func(cmd *cobra.Command, args []string) error { return v.release(cmd.Context(), args, &undo) },
	})
	cmd.Flags().BoolVar(&undo, "undo", false, "take the workloads over again, as they are")
	return cmd
}

func (v *verb) release(ctx context.Context, args []string, undo *bool) error {
	s, subject, rest, err := v.subject(ctx, args)
	if err != nil {
		return err
	}
	if err := none(rest); err != nil {
		return err
	}
	released := meta.Released(subject.Cluster.Annotations)
	switch {
	case *undo && !released:
		v.screen().Linef("%s is not released.", called(subject.Cluster))
		return nil
	case *undo:
		return v.takeAgain(ctx, s, subject)
	case released:
		v.screen().Linef("%s is released already.", called(subject.Cluster))
		return nil
	}
	if err := movesNothing(v.screen(), subject); err != nil {
		return err
	}
	annotations := map[string]*string{meta.AnnotationRelease: new("true")}
	if err := v.preview(subject, annotations); err != nil {
		return err
	}
	return v.carry(ctx, s, subject, change{
		annotations: annotations,
		question:    fmt.Sprintf("Release %s?", called(subject.Cluster)),
		done:        "Asked for the release.",
		check:       func(again *plan.Subject) error { return movesNothing(v.screen(), again) },
	})
}

// movesNothing refuses a release by which the StatefulSet controller would replace
// Pods, and names them.
func movesNothing(s screen.Screen, subject *plan.Subject) error {
	behind := subject.Behind()
	if len(behind) == 0 {
		return nil
	}
	s.Linef("%s", s.Painted(screen.Bad, "The StatefulSet controller would replace these Pods at once, without asking the database:"))
	pods := screen.Table{Indent: "  "}
	for _, l := range behind {
		pods.Row(screen.Texts(l.Pod, "has "+l.Has, "would get "+l.Gets, list(l.Images))...)
	}
	s.Print(pods)
	return errors.New("nothing was changed: let the roll end, or approve what is held, and release it then")
}

func (v *verb) takeAgain(ctx context.Context, s *kube.Session, subject *plan.Subject) error {
	annotations := map[string]*string{meta.AnnotationRelease: nil}
	if err := v.preview(subject, annotations); err != nil {
		return err
	}
	return v.carry(ctx, s, subject, change{
		annotations: annotations,
		question:    fmt.Sprintf("Let the operator work on %s again?", called(subject.Cluster)),
		done:        fmt.Sprintf("The operator works on %s again.", called(subject.Cluster)),
	})
}
