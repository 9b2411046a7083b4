package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-dev/fairlead/internal/dial"
	"github.com/fairlead-dev/fairlead/internal/operator"
)

// options are the flags of `fairlead operator`.
type options struct {
	operator.Options

	kubeconfig       string
	logFormat, level string
	dialVia          string
}

func operatorCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; default: the service account of the Pod, else $KUBECONFIG or ~/.kube/config")
	f.StringSliceVar(&o.Systems, "systems", operator.SystemNames(), "systems to serve; a missing custom resource definition is waited for")
	f.StringSliceVar(&o.Namespaces, "namespaces", nil, "namespaces to work in; default: all")
	f.BoolVar(&o.LeaderElect, "leader-elect", false, "let only one of several operators work at a time")
	f.StringVar(&o.LeaseNamespace, "leader-elect-namespace", "", "namespace of the lease; default: that of the Pod")
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 for none")
	f.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.dialVia, "dial-via", "", "how to reach the data systems from outside the cluster: socks5://host:port; default: directly")
	f.IntVar(&o.Workers, "workers", 16, "custom resources of one system that are reconciled at once")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	log, err := o.logger()
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	o.Log = log
	if o.Dial, err = dial.Via(o.dialVia); err != nil {
		return err
	}
	cfg, err := o.config()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	return operator.Run(ctx, cfg, o.Options)
}

func (o *options) config() (*rest.Config, error) {
	if o.kubeconfig == "" {
		if cfg, err := rest.InClusterConfig(); err == nil {
			return cfg, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}

func (o *options) logger() (logr.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.ToUpper(o.level))); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level is %q; write debug, info, warn or error", o.level)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "json":
		return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, opts)), nil
	case "text":
		return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, opts)), nil
	}
	return logr.Logger{}, fmt.Errorf("--log-format is %q; write json or text", o.logFormat)
}
