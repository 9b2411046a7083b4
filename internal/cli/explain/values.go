package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// valueFlags say whether nodes are asked for values, and as whom.
type valueFlags struct {
	show, passwordStdin, secrets bool
	user                         string
}

func (f *valueFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.show, "values", false, "ask the nodes for the values that are in force; with -o wide and no KEY, for those of all settings")
	cmd.Flags().StringVar(&f.user, "user", "", "with --values: account of the database that frontends are asked as")
	cmd.Flags().BoolVar(&f.passwordStdin, "password-stdin", false, "with --user: its password is the first line of standard input")
	cmd.Flags().BoolVar(&f.secrets, "read-secrets", false, "with --values: read the Secrets that the resource names, for its account and its certificates")
}

func (f *valueFlags) check() error {
	switch {
	case !f.show && (f.user != "" || f.passwordStdin || f.secrets):
		return errors.New("--user, --password-stdin and --read-secrets are for --values")
	case f.passwordStdin && f.user == "":
		return errors.New("--password-stdin is for --user")
	}
	return nil
}

// withValues is what programs read where nodes were asked.
type withValues struct {
	Settings []doris.Explained `json:"settings"`
	Nodes    []doris.Answer    `json:"nodes"`
}

// longestPassword bounds what is read of standard input.
const longestPassword = 4 << 10

// ask asks the nodes, as the account that the person names or the one that the resource
// names.
func (o *options) ask(ctx context.Context, s *kube.Session, subject *cliplan.Subject, v view) ([]doris.Answer, error) {
	dc := subject.Cluster.DeepCopy()
	if o.values.user != "" {
		account := &dorisv1.AdminUser{Name: o.values.user}
		if o.values.passwordStdin {
			line, err := io.ReadAll(io.LimitReader(o.In, longestPassword))
			if err != nil {
				return nil, fmt.Errorf("reading the password: %w", err)
			}
			account.Password, _, _ = strings.Cut(string(line), "\n")
			account.Password = strings.TrimSuffix(account.Password, "\r")
		}
		dc.Spec.AuthSecret, dc.Spec.AdminUser = "", account
	}
	pods := map[string]string{}
	for _, list := range subject.World.Pods {
		for i := range list {
			pods[list[i].Status.PodIP] = list[i].Name
		}
	}
	nodes := doris.NewNodes(s.DialPods(pods), o.values.reader(s))
	return doris.AskValues(ctx, dc, subject.World, nodes, v.wants(o.output == "wide")), nil
}

// reader reads Secrets, if it was asked for.
func (f *valueFlags) reader(s client.Reader) doris.SecretReader {
	return func(ctx context.Context, namespace, name string) (map[string][]byte, error) {
		if !f.secrets {
			return nil, fmt.Errorf("that needs Secret %q, which is read with --read-secrets alone; for an account there is --user too", name)
		}
		secret := &corev1.Secret{}
		err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("reading Secret %q: %w", name, err)
		}
		return secret.Data, nil
	}
}

// wants tells whose values are shown: that of the setting that was asked for, else those
// of the settings that do not come from the image; or all.
func (v view) wants(all bool) func(dorisv1.ComponentType, string) bool {
	return func(kind dorisv1.ComponentType, key string) bool {
		if v.key != "" {
			return doris.SameSetting(v.key, key)
		}
		return all || slices.ContainsFunc(v.settings, func(e doris.Explained) bool { return e.Component == kind && doris.SameSetting(e.Key, key) })
	}
}

// nobodyHas tells whether nodes answer, and none has a setting that was asked for.
func (v view) nobodyHas() bool {
	return slices.ContainsFunc(v.nodes, func(n doris.Answer) bool { return n.Silent == "" }) &&
		!slices.ContainsFunc(v.nodes, func(n doris.Answer) bool { return len(n.Values) > 0 })
}

// longestValue is how much of a value fits on a screen.
const longestValue = 60

// printValues prints what the nodes say.
func (o *options) printValues(out screen.Screen, v view) {
	if v.nodes == nil {
		return
	}
	t, rows := screen.Table{}, 0
	t.Head("POD", "SETTING", "VALUE")
	for _, n := range v.nodes {
		for _, is := range n.Values {
			t.Row(screen.Texts(n.Pod, is.Key, o.shown(is))...)
			rows++
		}
	}
	out.Linef("")
	switch {
	case rows > 0:
		out.Linef("In force, as the nodes say now:")
		out.Print(t)
	case v.key != "" && v.nobodyHas():
		out.Linef("No node that answers has a setting %s.", v.key)
	case len(v.nodes) == 0:
		out.Linef("There is no node to ask.")
	}
	for _, n := range v.nodes {
		if n.Silent != "" {
			out.Linef("%s", out.Painted(screen.Mind, screen.Clean(n.Pod+" does not answer: "+n.Silent)))
		}
	}
}

// shown is a value as people see it.
func (o *options) shown(is doris.Value) string {
	switch {
	case is.Hidden:
		return "(hidden)"
	case is.Value == "":
		return "(empty)"
	case len(is.Value) > longestValue && o.output != "wide":
		return strings.ToValidUTF8(is.Value[:longestValue], "") + "…"
	}
	return is.Value
}
