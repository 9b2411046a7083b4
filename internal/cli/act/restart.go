package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// restartKeys are the annotations by which a restart is asked for, by component.
func restartKeys() map[string]string {
	keys := map[string]string{}
	for _, c := range doris.Components() {
		keys[string(c)] = doris.RestartAnnotation(c)
	}
	return keys
}

func restart(v *verb) *cobra.Command {
	var components []string
	cmd := v.command(&cobra.Command{
		Use:   "restart KIND NAME --component fe|be|cn|broker",
		Short: "Restart the Pods of a component, one by one",
		Long: `Restart the Pods of a component, one by one, by the rules of every other roll: each
when all others are ready, through the Eviction API.`,
		Example: `  kubectl fairlead restart dcr doris --component be
  kubectl fairlead restart dcr/doris --component fe,be --yes`,
		RunE: func(cmd *cobra.Command, args []string) error { return v.restart(cmd.Context(), args, components) },
	})
	known := slices.Sorted(maps.Keys(restartKeys()))
	cmd.Flags().StringSliceVar(&components, "component", nil, "component to restart: "+list(known))
	_ = cmd.RegisterFlagCompletionFunc("component", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (v *verb) restart(ctx context.Context, args, components []string) error {
	keys := restartKeys()
	if len(components) == 0 {
		return errors.New("say what to restart: --component fe, be, cn or broker")
	}
	for _, c := range components {
		if keys[c] == "" {
			return fmt.Errorf("component %q cannot be restarted by this version; it knows %s", c, list(slices.Sorted(maps.Keys(keys))))
		}
	}
	s, subject, rest, err := v.subject(ctx, args)
	if err != nil {
		return err
	}
	if err := none(rest); err != nil {
		return err
	}
	annotations := map[string]*string{}
	for _, c := range components {
		if !has(subject.Cluster, c) {
			return fmt.Errorf("%s has no component %s", called(subject.Cluster), c)
		}
		annotations[keys[c]] = new(v.now().UTC().Format(time.RFC3339))
	}
	if err := v.preview(subject, annotations); err != nil {
		return err
	}
	return v.carry(ctx, s, subject, change{
		annotations: annotations,
		question:    fmt.Sprintf("Restart %s of %s?", list(components), called(subject.Cluster)),
		done:        fmt.Sprintf("Asked for a restart of %s.", list(components)),
	})
}

func has(dc *dorisv1.DorisCluster, component string) bool {
	return doris.SpecOf(dc, dorisv1.ComponentType(component)) != nil
}
