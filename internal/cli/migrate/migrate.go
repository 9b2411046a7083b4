// Package migrate holds the verbs `kubectl fairlead runtime-config`: they bring the
// settings that were changed at run time in a cluster which does not keep them onto its
// volumes, before any Pod of it is replaced.
//
//	backup ─▶ review ─▶ migrate: copy ─▶ verify ─▶ approve ─▶ the operator rolls the Pods
//
// Everything before the approval changes nothing that runs: a directory appears on each
// volume. The approval is one write, the last. Each verb can be interrupted anywhere, and
// run again. No setting is printed, nor is any in an annotation.
package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// options are what all verbs have.
type options struct {
	genericiooptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	dir    string
	yes    bool
	output string

	now    func() time.Time
	random io.Reader
	// shell reaches the Pods of a session.
	shell func(*kube.Session) Shell
}

// Command returns the verbs.
func Command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return command(flags, streams, func(s *kube.Session) Shell { return s })
}

// CommandThrough returns the verbs with another way into Pods.
func CommandThrough(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, shell Shell) *cobra.Command {
	return command(flags, streams, func(*kube.Session) Shell { return shell })
}

func command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, shell func(*kube.Session) Shell) *cobra.Command {
	o := &options{IOStreams: streams, flags: flags, now: time.Now, random: rand.Reader, shell: shell}
	cmd := &cobra.Command{
		Use:   "runtime-config",
		Short: "Bring settings that were changed at run time onto volumes, where Pods that are replaced find them",
		Long: `Bring the settings that were changed at run time in a cluster which does not keep them
onto its volumes, where Pods that are replaced find them: backup, review, migrate, and
status at any time. Before that, stop changes of settings, scaling and image changes.

No setting is printed. The account needs the right to create pods/exec.`,
	}
	cmd.AddCommand(
		o.verb("backup", "Save the settings of all Pods into a private directory", `Save the settings that were changed at run time, of all frontends and backends, into a
directory that is yours alone. Every Pod has to be ready, and nothing may be under way.
Nothing in the cluster is changed. A backup that is there and differs is never overwritten.`, (*run).backup),
		o.told("review", "Say what is in a backup, what migrate would do, and what keeps it from it", `Say which settings are in a backup (their names alone), which of them the ConfigMap
names too, what migrate would do, and what keeps it from it. Nothing is changed.`, (*run).review),
		o.migrateVerb(),
		o.told("status", "Say for each Pod where its settings stand", `Say for each Pod where its settings stand: not backed up, backed up, copied, kept or
lost. Nothing is changed.`, (*run).status),
	)
	return cmd
}

func (o *options) verb(name, short, long string, do func(*run, context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " KIND NAME --backup-dir DIR", Short: short, Long: long + "\n\n" + exit.Help,
		Example:           "  kubectl fairlead runtime-config " + name + " dcr doris -n analytics --backup-dir ./doris-settings",
		ValidArgsFunction: kube.CompleteOne(o.flags, nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := o.begin(cmd.Context(), args)
			if err != nil {
				return err
			}
			return do(r, cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.dir, "backup-dir", "", "directory of the backup, which nobody else may look into")
	return cmd
}

// told is a verb that programs can read.
func (o *options) told(name, short, long string, do func(*run, context.Context) error) *cobra.Command {
	cmd := o.verb(name, short, long, do)
	outputFlag(cmd, &o.output)
	return cmd
}

func (o *options) migrateVerb() *cobra.Command {
	cmd := o.verb("migrate", "Copy a backup onto the volumes, and let the operator replace the Pods", `Copy a backup onto the volumes, through the Pods that run, read each copy back, and then
approve: one write sets the annotation doris.apache.org/runtime-config-migration and
spec.runtimeConfigPersistence.enabled. The operator replaces the Pods after that, one by
one, by the rules of every other roll. It prints what would follow, and asks first.`, (*run).migrate)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return cmd
}

// run is one call of a verb, for one cluster.
type run struct {
	*options
	session *kube.Session
	shell   Shell
	out     screen.Screen
	*seen
}

// seen is the cluster as it was read.
type seen struct {
	subject   *cliplan.Subject
	result    cliplan.Result
	migration doris.Migration
}

// member is a Pod whose settings are not kept.
type member struct {
	component *doris.MigrationComponent
	pod       *corev1.Pod
}

func (o *options) begin(ctx context.Context, args []string) (*run, error) {
	name, rest, err := kube.One(args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("unexpected argument %q: one resource at a time", rest[0])
	}
	if err := checkOutput(o.output); err != nil {
		return nil, err
	}
	session, err := kube.Connect(o.flags)
	if err != nil {
		return nil, err
	}
	r := &run{options: o, session: session, shell: o.shell(session), out: screen.New(o.Out, os.Getenv)}
	r.seen, err = r.see(ctx, name)
	return r, err
}

// see reads the cluster.
func (r *run) see(ctx context.Context, name string) (*seen, error) {
	dc, err := r.session.Cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	subject, err := cliplan.Look(ctx, r.session, dc, r.now())
	if err != nil {
		return nil, err
	}
	result, err := subject.Plan(nil)
	if err != nil {
		return nil, err
	}
	return &seen{subject: subject, result: result, migration: doris.MigrationOf(dc, subject.World, result.Plan)}, nil
}

// members are the Pods whose settings are not kept, in the order of components and
// ordinals.
func (s *seen) members() []member {
	var out []member
	for i := range s.migration.Components {
		c := &s.migration.Components[i]
		for j := range c.Pods {
			if !c.Kept {
				out = append(out, member{component: c, pod: &c.Pods[j]})
			}
		}
	}
	return out
}

func (s *seen) called() string {
	return fmt.Sprintf("DorisCluster %s/%s", s.subject.Cluster.Namespace, s.subject.Cluster.Name)
}

// done says that there is nothing to migrate, where that is so.
func (r *run) done() bool {
	if r.migration.Open() {
		return false
	}
	r.out.Linef("%s keeps its settings already: there is nothing to migrate.", r.called())
	return true
}

// next is how another of the verbs is called for the same cluster.
func (r *run) next(verb string) string {
	dc := r.subject.Cluster
	return fmt.Sprintf("kubectl fairlead runtime-config %s dcr/%s -n %s --backup-dir %s", verb, dc.Name, dc.Namespace, r.dir)
}

// errBlocked says that something keeps a verb from its work; what it is was printed.
var errBlocked = errors.New("nothing was changed: mend what is named above, and run it again")

// blocked prints what keeps a verb from its work.
func (r *run) blocked(findings []plan.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	r.out.Linef("%s", r.out.Painted(screen.Bad, "It cannot be done now:"))
	t := screen.Table{Indent: "  "}
	t.Head("FIELD", "REASON", "WHY, AND WHAT TO DO")
	for _, f := range findings {
		t.Row(screen.Texts(f.Field, f.Reason, f.Message)...)
	}
	r.out.Print(t)
	return errBlocked
}
