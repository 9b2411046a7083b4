package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/config"
	"github.com/fairlead-dev/fairlead/internal/dial"
	"github.com/fairlead-dev/fairlead/internal/operator"
)

// options are the flags of `fairlead operator`.
type options struct {
	kubeconfig string
	file       string
	sources    config.Sources
	level      slog.LevelVar
}

func operatorCommand() *cobra.Command {
	systems := operator.SystemNames()
	o := &options{sources: config.Sources{
		Table: config.Table(systems), Defaults: config.Defaults(systems), Flags: config.Defaults(systems),
		Env: os.LookupEnv,
	}}
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator",
		Long: "Run the operator.\n\nAn option is decided by its flag, else by its environment variable (FAIRLEAD_ and the\n" +
			"name of the flag: FAIRLEAD_LOG_LEVEL), else by the file of --config, else by its default.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.sources.Changed = cmd.Flags().Changed
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; default: the service account of the Pod, else $KUBECONFIG or ~/.kube/config")
	f.StringVar(&o.file, "config", "", "configuration file; followed while the operator runs")
	for _, option := range o.sources.Table {
		value := option.Field(&o.sources.Flags)
		if list, ok := value.(*config.List); ok { // which may be given several times
			f.StringSliceVar((*[]string)(list), option.Flag, *list, option.Help)
			continue
		}
		f.Var(value, option.Flag, option.Help)
		if value.Type() == "bool" {
			f.Lookup(option.Flag).NoOptDefVal = "true"
		}
	}
	return cmd
}

func (o *options) run(ctx context.Context) error {
	watcher, e, err := o.settings()
	if err != nil {
		return err
	}
	if err := o.setLevel(e.Settings); err != nil {
		return err
	}
	log := o.logger(e.LogFormat)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	watcher.Log = log.WithName("configuration")
	if len(e.Overridden) > 0 {
		watcher.Log.Info("the configuration file is overridden by flags or the environment", "options", e.Overridden)
	}
	reach, err := dial.Via(e.DialVia)
	if err != nil {
		return err
	}
	cfg, err := o.config()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	return operator.Run(ctx, cfg, operator.Options{
		Systems: e.Systems, Namespaces: e.Namespaces, Workers: e.Workers,
		LeaderElect: e.LeaderElect, LeaseName: e.LeaderElectName, LeaseNamespace: e.LeaderElectNamespace,
		MetricsAddress: e.MetricsBindAddress, HealthAddress: e.HealthProbeBindAddress,
		Dial: reach, Log: log, Configuration: watcher, Self: self(),
		Recorder: func(cfg *rest.Config, c *http.Client) (operator.Recorder, error) { return apply.NewRecorder(cfg, c) },
	})
}

// settings decides all options, and returns what follows the file.
func (o *options) settings() (*config.Watcher, config.Effective, error) {
	w := &config.Watcher{
		Path: o.file, Sources: o.sources, Poll: config.DefaultPoll,
		Apply: func(s config.Settings) { _ = o.setLevel(s) }, // the value was checked when it was read
	}
	e, err := w.Start()
	return w, e, err
}

// self is the Pod that this is, where it was told.
func self() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME"), UID: types.UID(os.Getenv("POD_UID")),
	}
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

func (o *options) setLevel(s config.Settings) error {
	return o.level.UnmarshalText([]byte(strings.ToUpper(s.LogLevel)))
}

func (o *options) logger(format string) logr.Logger {
	opts := &slog.HandlerOptions{Level: &o.level}
	if format == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, opts))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, opts))
}
