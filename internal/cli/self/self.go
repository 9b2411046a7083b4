// Package self holds the verbs of the kubectl plugin about the operator itself:
// whether its configuration is in force, and where each option comes from. They
// read what the leader writes of itself, and write nothing.
package self

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/config"
)

// options are the flags of both verbs.
type options struct {
	genericiooptions.IOStreams
	flags     *genericclioptions.ConfigFlags
	namespace string
	output    string
	now       func() time.Time
}

// Operator is an operator, as it tells of itself.
type Operator struct {
	Namespace string `json:"namespace"`
	// ConfigMap is the name of the one that holds the record.
	ConfigMap string        `json:"configMap"`
	Record    config.Record `json:"record"`
	// Leads is what the lease says of who leads now.
	Leads string `json:"leads,omitempty"`
	// Faults are annotations of the resource that was asked about that are not
	// followed, and why.
	Faults []string `json:"faults,omitempty"`
}

// StatusCommand returns `status operator`.
func StatusCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, flags: flags, now: time.Now}
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Print how the operator itself is: version, leader, configuration",
		Long: `Print how the operator itself is: its version, who leads, whether the configuration in
force is that of its file, what is wrong with the file, and which options wait for a
restart. Nothing is written.

` + exit.Help,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), nil, printStatus)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// ExplainCommand returns `explain operator`.
func ExplainCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, flags: flags, now: time.Now}
	cmd := &cobra.Command{
		Use:   "operator [KIND NAME | KIND/NAME]",
		Short: "Print each option of the operator, its class and where its value comes from",
		Long: `Print each option of the operator: its value, its class (startup: in force after a
restart; dynamic: at once) and the layer that its value comes from. With a resource, the
options are as they are for that one, with its namespace and its annotations. Nothing is
written.

` + exit.Help,
		Example: `  kubectl fairlead explain operator
  kubectl fairlead explain operator dcr/doris -n analytics`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, printOptions)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.namespace, "operator-namespace", "", "namespace of the operator; default: it is looked for in all")
	cliplan.OutputFlag(cmd, &o.output)
}

func (o *options) run(ctx context.Context, args []string, tell func(screen.Screen, Operator)) error {
	if err := cliplan.CheckOutput(o.output); err != nil {
		return err
	}
	s, err := kube.Connect(o.flags)
	if err != nil {
		return err
	}
	found, err := o.look(ctx, s)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if found, err = concern(ctx, s, found, args); err != nil {
			return err
		}
	}
	out := screen.New(o.Out, os.Getenv)
	if done, err := cliplan.Encode(out, o.output, found); done {
		return err
	}
	for i, op := range found {
		if i > 0 {
			out.Linef("")
		}
		tell(out, op)
	}
	return nil
}

// look reads what operators tell of themselves.
func (o *options) look(ctx context.Context, s *kube.Session) ([]Operator, error) {
	var list corev1.ConfigMapList
	err := s.List(ctx, &list, client.InNamespace(o.namespace), client.HasLabels{config.RecordLabel})
	if apierrors.IsForbidden(err) && o.namespace == "" {
		return nil, fmt.Errorf("looking for the operator in all namespaces: %w; name its namespace with --operator-namespace", err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the operator: %w", err)
	}
	var out []Operator
	for i := range list.Items {
		m := &list.Items[i]
		record, err := config.Decode(m.Data[config.RecordKey])
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
		}
		out = append(out, Operator{Namespace: m.Namespace, ConfigMap: m.Name, Record: record, Leads: o.leads(ctx, s, record)})
	}
	if len(out) == 0 {
		return nil, errors.New("no operator has told of itself yet: none has led since it was installed, or it may not write a ConfigMap in its namespace (its log says so)")
	}
	return out, nil
}

// leads says in words who holds the lease of an operator.
func (o *options) leads(ctx context.Context, s *kube.Session, r config.Record) string {
	namespace, name, _ := strings.Cut(r.Lease, "/")
	if name == "" {
		return "no election: whoever runs works"
	}
	var lease coordinationv1.Lease
	if err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &lease); err != nil {
		return fmt.Sprintf("%s when it last wrote; its lease %s cannot be read", r.Leader, r.Lease)
	}
	return leaderOf(lease.Spec, r.Leader, o.now())
}

func leaderOf(l coordinationv1.LeaseSpec, writer string, now time.Time) string {
	if l.HolderIdentity == nil || *l.HolderIdentity == "" || l.RenewTime == nil {
		return "nobody"
	}
	pod, _, _ := strings.Cut(*l.HolderIdentity, "_")
	age := now.Sub(l.RenewTime.Time).Round(time.Second)
	switch seconds := l.LeaseDurationSeconds; {
	case seconds != nil && age > time.Duration(*seconds)*time.Second:
		return fmt.Sprintf("nobody: %s has not renewed its lease for %s", pod, age)
	case writer != "" && pod != writer:
		return fmt.Sprintf("%s, which has not told of itself yet: what follows is of %s", pod, writer)
	}
	return pod
}

// concern leaves the operators that work on a resource, with their options as they
// are for it.
func concern(ctx context.Context, s *kube.Session, all []Operator, args []string) ([]Operator, error) {
	name, rest, err := kube.One(args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("one resource at a time: %q is too much", rest[0])
	}
	dc, err := s.Cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	var out []Operator
	for _, op := range all {
		if !worksIn(op.Record, dc.Namespace) {
			continue
		}
		op.Record.Options, op.Faults = op.Record.For(config.Table(nil), dc.Namespace, dc.Annotations)
		out = append(out, op)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no operator that has told of itself works in namespace %q", dc.Namespace)
	}
	return out, nil
}

func worksIn(r config.Record, namespace string) bool {
	for _, row := range r.Options {
		if row.Option == "namespaces" {
			return row.Value == "" || slices.Contains(strings.Split(row.Value, ","), namespace)
		}
	}
	return true
}
