package act

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
)

// annotationRelease on a custom resource asks the operator to hand its workloads
// back.
const annotationRelease = meta.Prefix + "release"

func release(v *verb) *cobra.Command {
	undo := false
	cmd := v.command(&cobra.Command{
		Use:   "release KIND NAME",
		Short: "Hand the workloads of a resource back, to another operator or to nobody",
		Long: `Hand the workloads of a resource back, to another operator or to nobody: the operator
lets the StatefulSet controller replace Pods again (updateStrategy RollingUpdate),
gives up the ownership of its fields, and writes nothing any more but the status.
No object is deleted. From then on, Pods that are not on the newest template of their
set are replaced by the StatefulSet controller, without asking the database.`,
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
	_, released := subject.Cluster.Annotations[annotationRelease]
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
	if err := v.preview(subject, nil); err != nil {
		return err
	}
	printRelease(v.screen(), subject)
	return v.carry(ctx, s, subject, change{
		annotations: map[string]*string{annotationRelease: new("true")},
		question:    fmt.Sprintf("Release %s?", called(subject.Cluster)),
		done:        "Asked for the release.",
	})
}

func (v *verb) takeAgain(ctx context.Context, s *kube.Session, subject *plan.Subject) error {
	annotations := map[string]*string{annotationRelease: nil}
	if err := v.preview(subject, annotations); err != nil {
		return err
	}
	return v.carry(ctx, s, subject, change{
		annotations: annotations,
		question:    fmt.Sprintf("Let the operator work on %s again?", called(subject.Cluster)),
		done:        fmt.Sprintf("The operator works on %s again.", called(subject.Cluster)),
	})
}

// printRelease prints what the release means: for each set, and for each Pod that
// the StatefulSet controller would then replace.
func printRelease(s screen.Screen, subject *plan.Subject) {
	s.Linef("")
	s.Linef("%s", s.Painted(screen.Head, "With the release, none of the above is carried out any more, and:"))
	t := screen.Table{Indent: "  "}
	for _, name := range slices.Sorted(maps.Keys(subject.World.StatefulSets)) {
		set := subject.World.StatefulSets[name]
		t.Row(screen.Texts("StatefulSet/"+name, "spec.updateStrategy", string(set.Spec.UpdateStrategy.Type), "->", string(appsv1.RollingUpdateStatefulSetStrategyType))...)
	}
	s.Print(t)
	behind := subject.Behind()
	if len(behind) == 0 {
		s.Linef("  Every Pod is on the newest template of its set: the StatefulSet controller would replace none.")
		return
	}
	s.Linef("  %s", s.Painted(screen.Bad, "The StatefulSet controller would replace, at once and without asking the database:"))
	pods := screen.Table{Indent: "    "}
	for _, l := range behind {
		pods.Row(screen.Texts(l.Pod, "has "+l.Has, "would get "+l.Gets, list(l.Images))...)
	}
	s.Print(pods)
}
