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
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-dev/fairlead/internal/dial"
	"github.com/fairlead-dev/fairlead/internal/kernel"
	"github.com/fairlead-dev/fairlead/internal/version"
)

// options are the flags of `fairlead operator`.
type options struct {
	kubeconfig       string
	systems          []string
	namespaces       []string
	leaderElect      bool
	leaseNamespace   string
	metricsAddress   string
	healthAddress    string
	logFormat, level string
	dialVia          string
	workers          int
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
	f.StringSliceVar(&o.systems, "systems", systemNames(), "systems to serve; a missing custom resource definition is waited for")
	f.StringSliceVar(&o.namespaces, "namespaces", nil, "namespaces to work in; default: all")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "let only one of several operators work at a time")
	f.StringVar(&o.leaseNamespace, "leader-elect-namespace", "", "namespace of the lease; default: that of the Pod")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 for none")
	f.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.dialVia, "dial-via", "", "how to reach the data systems from outside the cluster: socks5://host:port; default: directly")
	f.IntVar(&o.workers, "workers", 16, "custom resources of one system that are reconciled at once")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	log, err := o.logger()
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	dialer, err := dial.Via(o.dialVia)
	if err != nil {
		return err
	}
	runs, err := systems(o.systems, dependencies{dial: dialer, workers: o.workers})
	if err != nil {
		return err
	}
	mgr, err := o.manager(log)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := mgr.Add(kernel.Runnable(mgr, o.namespaces, run)); err != nil {
			return fmt.Errorf("adding a system: %w", err)
		}
	}
	log.Info("starting", "version", version.String(), "systems", o.systems, "namespaces", o.namespaces)
	return mgr.Start(ctx)
}

func (o *options) manager(log logr.Logger) (manager.Manager, error) {
	cfg, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme(), Logger: log,
		Metrics:                       server.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "fairlead",
		LeaderElectionNamespace:       o.leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("readiness check: %w", err)
	}
	return mgr, nil
}

// restConfig leaves the pace to the API server's priority and fairness: a
// limit of our own would only make a large fleet slow.
func (o *options) restConfig() (*rest.Config, error) {
	cfg, err := o.loadConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	cfg.UserAgent = "fairlead/" + version.String()
	cfg.QPS = -1
	return cfg, nil
}

func (o *options) loadConfig() (*rest.Config, error) {
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
