package act

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api/meta"
)

func pause(v *verb) *cobra.Command {
	return v.command(&cobra.Command{
		Use:   "pause KIND NAME",
		Short: "Stop all writes of the operator for one resource, but its status",
		Long: `Stop all writes of the operator for one resource, but its status, until resume. What
Kubernetes does by itself goes on: a Pod that is lost comes back on the newest
template of its set.`,
		Example: "  kubectl fairlead pause dcr doris -n analytics",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, subject, rest, err := v.subject(cmd.Context(), args)
			if err != nil {
				return err
			}
			if err := none(rest); err != nil {
				return err
			}
			if meta.Paused(subject.Cluster.Annotations) {
				v.screen().Linef("%s is paused already.", called(subject.Cluster))
				return nil
			}
			annotations := map[string]*string{meta.AnnotationPaused: new("true")}
			if err := v.preview(subject, annotations); err != nil {
				return err
			}
			return v.carry(cmd.Context(), s, subject, change{
				annotations: annotations,
				question:    fmt.Sprintf("Pause %s?", called(subject.Cluster)),
				done:        fmt.Sprintf("%s is paused.", called(subject.Cluster)),
			})
		},
	})
}

func resume(v *verb) *cobra.Command {
	return v.command(&cobra.Command{
		Use:     "resume KIND NAME",
		Short:   "Let the operator work on a paused resource again",
		Long:    `Let the operator work on a paused resource again. What waited is carried out at once.`,
		Example: "  kubectl fairlead resume dcr doris -n analytics",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, subject, rest, err := v.subject(cmd.Context(), args)
			if err != nil {
				return err
			}
			if err := none(rest); err != nil {
				return err
			}
			if !meta.Paused(subject.Cluster.Annotations) {
				v.screen().Linef("%s is not paused.", called(subject.Cluster))
				return nil
			}
			annotations := map[string]*string{meta.AnnotationPaused: nil}
			if err := v.preview(subject, annotations); err != nil {
				return err
			}
			return v.carry(cmd.Context(), s, subject, change{
				annotations: annotations,
				question:    fmt.Sprintf("Resume %s, so that this is carried out?", called(subject.Cluster)),
				done:        fmt.Sprintf("%s is resumed.", called(subject.Cluster)),
			})
		},
	})
}
