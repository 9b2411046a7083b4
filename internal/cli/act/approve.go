package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	planning "github.com/fairlead-dev/fairlead/internal/plan"
)

// approval is the verb approve.
type approval struct {
	*verb
	all, undo bool
}

func approve(v *verb) *cobra.Command {
	a := &approval{verb: v}
	cmd := v.command(&cobra.Command{
		Use:   "approve KIND NAME (DIGEST... | --all | --undo)",
		Short: "Consent to changes that are held",
		Long: `Consent to changes that are held. plan and status print each held set of changes
with its digest. A digest stands for exactly the changes that were printed: should
they become others, it counts for nothing. Consent is used up by what it sets off.`,
		Example: `  kubectl fairlead approve dcr doris 3f2a9c01d4e5
  kubectl fairlead approve dcr/doris --all --yes
  kubectl fairlead approve dcr doris --undo`,
		ValidArgsFunction: kube.CompleteOne(v.flags, a.digests),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args) },
	})
	cmd.Flags().BoolVar(&a.all, "all", false, "approve every set that is held now")
	cmd.Flags().BoolVar(&a.undo, "undo", false, "take back consent that was not acted on yet")
	return cmd
}

// digests completes the digests that are held.
func (a *approval) digests(ctx context.Context, name string) []string {
	s, err := kube.Connect(a.flags)
	if err != nil {
		return nil
	}
	subject, err := a.look(ctx, s, name)
	if err != nil {
		return nil
	}
	held, err := heldSets(subject)
	if err != nil {
		return nil
	}
	var out []string
	for _, set := range held {
		c := set.Changes[0]
		out = append(out, fmt.Sprintf("%s\t%s: %d changes, %s", set.Approve, c.Object, len(set.Changes), c.Effect))
	}
	return out
}

// heldSets are the sets that are held, whether or not one is consented to.
func heldSets(subject *plan.Subject) ([]planning.Held, error) {
	r, err := subject.Plan(map[string]*string{meta.AnnotationApprove: nil})
	return r.Sets, err
}

func (a *approval) run(ctx context.Context, args []string) error {
	s, subject, digests, err := a.subject(ctx, args)
	if err != nil {
		return err
	}
	if chosen := btoi(len(digests) > 0) + btoi(a.all) + btoi(a.undo); chosen > 1 {
		return errors.New("give digests, --all or --undo, one of them")
	}
	if a.undo {
		return a.takeBack(ctx, s, subject)
	}
	held, err := heldSets(subject)
	if err != nil {
		return err
	}
	chosen, err := a.choose(held, digests)
	if err != nil {
		return err
	}
	value := strings.Join(append(chosen, standing(subject, held, chosen)...), ",")
	annotations := map[string]*string{meta.AnnotationApprove: &value}
	out := a.screen()
	out.Linef("%s", out.Painted(screen.Head, "To be approved:"))
	for _, set := range held {
		if slices.Contains(chosen, set.Approve) {
			plan.PrintSet(out, set, true)
		}
	}
	out.Linef("\n%s", out.Painted(screen.Head, "With that, the plan is:"))
	if err := a.preview(subject, annotations); err != nil {
		return err
	}
	return a.carry(ctx, s, subject, change{
		annotations: annotations,
		question:    fmt.Sprintf("Approve %s for %s?", list(chosen), called(subject.Cluster)),
		done:        "Approved: " + list(chosen),
		check: func(again *plan.Subject) error {
			now, err := heldSets(again)
			if err != nil {
				return err
			}
			_, err = a.choose(now, chosen)
			return err
		},
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// choose returns the digests to approve, all of which are held.
func (a *approval) choose(held []planning.Held, digests []string) ([]string, error) {
	var now []string
	for _, set := range held {
		now = append(now, set.Approve)
	}
	if len(now) == 0 {
		return nil, errors.New("nothing is held, so there is nothing to approve")
	}
	if len(digests) == 0 && !a.all {
		return nil, fmt.Errorf("say which: held now is %s; --all approves every one", list(now))
	}
	if len(digests) == 0 {
		return now, nil
	}
	var chosen []string
	for _, d := range digests {
		if !slices.Contains(now, d) {
			return nil, fmt.Errorf("%q is not held now; held is %s. Changes that became others have another digest: look at the plan again", d, list(now))
		}
		if !slices.Contains(chosen, d) {
			chosen = append(chosen, d)
		}
	}
	return chosen, nil
}

// standing is consent that was given before and still is for something.
func standing(subject *plan.Subject, held []planning.Held, chosen []string) []string {
	var out []string
	given := strings.FieldsFunc(subject.Cluster.Annotations[meta.AnnotationApprove], func(r rune) bool { return r == ',' || r == ' ' })
	for _, set := range held {
		if slices.Contains(given, set.Approve) && !slices.Contains(chosen, set.Approve) {
			out = append(out, set.Approve)
		}
	}
	return out
}

func (a *approval) takeBack(ctx context.Context, s *kube.Session, subject *plan.Subject) error {
	given, is := subject.Cluster.Annotations[meta.AnnotationApprove]
	if !is {
		a.screen().Linef("%s has no consent to take back.", called(subject.Cluster))
		return nil
	}
	annotations := map[string]*string{meta.AnnotationApprove: nil}
	if err := a.preview(subject, annotations); err != nil {
		return err
	}
	return a.carry(ctx, s, subject, change{
		annotations: annotations,
		question:    fmt.Sprintf("Take back the consent to %s for %s? What it has set off already goes on.", given, called(subject.Cluster)),
		done:        "Taken back: " + given,
	})
}
