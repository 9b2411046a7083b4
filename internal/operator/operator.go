// Package operator joins the kernel, the systems and a manager into the running
// program. The command line is in cmd/fairlead; everything that it can say is
// in Options, so that tests run the very same operator.
package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-dev/fairlead/internal/config"
	"github.com/fairlead-dev/fairlead/internal/dial"
	"github.com/fairlead-dev/fairlead/internal/kernel"
	"github.com/fairlead-dev/fairlead/internal/version"
)

// Options say what an operator works on and how.
type Options struct {
	// Systems to serve, by name. A missing custom resource definition is waited
	// for.
	Systems []string
	// Namespaces to work in; none means all.
	Namespaces []string
	// LeaderElect lets only one of several operators work at a time, by a lease
	// in LeaseNamespace (that of the Pod, if empty).
	LeaderElect    bool
	LeaseNamespace string
	// LeaseName is DefaultLease unless it is set.
	LeaseName string
	// MetricsAddress and HealthAddress are what /metrics, /healthz and /readyz
	// listen on; "0" for none.
	MetricsAddress, HealthAddress string
	// Workers is how many custom resources of one system are reconciled at once.
	Workers int
	// Dial reaches the data systems.
	Dial dial.Func
	Log  logr.Logger
	// Configuration knows the configuration in force, and follows its file. What it
	// has to say becomes an event of Self, the operator's own Pod, where that is
	// known. None means what is built in.
	Configuration *config.Watcher
	Self          corev1.ObjectReference
	// Recorder makes what writes the record of the leader, into the namespace of
	// Self; none means no record.
	Recorder func(*rest.Config, *http.Client) (Recorder, error)
	// Around are for tests only: see there.
	Around Around
}

// DefaultLease is the name of the lease by which operators agree on who leads.
const DefaultLease = "fairlead"

// Run runs an operator on the cluster of cfg until ctx ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	var mgr manager.Manager // systems run, and ask for accounts, when it is there
	account := func(ctx context.Context, namespace, name string) (map[string][]byte, error) {
		return kernel.SecretData(ctx, mgr.GetAPIReader(), namespace, name)
	}
	needs := dependencies{dial: o.Dial, account: account, workers: o.Workers, around: o.Around}
	if o.Configuration != nil {
		needs.tuned = o.Configuration.For
	}
	runs, err := systems(o.Systems, needs)
	if err != nil {
		return err
	}
	if mgr, err = newManager(cfg, o); err != nil {
		return err
	}
	for _, run := range runs {
		if err := mgr.Add(kernel.Runnable(mgr, o.Namespaces, run)); err != nil {
			return fmt.Errorf("adding a system: %w", err)
		}
	}
	if o.Configuration != nil {
		if err := mgr.Add(follow(mgr, o)); err != nil {
			return fmt.Errorf("adding the configuration: %w", err)
		}
		if err := addRecord(mgr, o); err != nil {
			return fmt.Errorf("adding the record of the operator: %w", err)
		}
	}
	o.Log.Info("starting", "version", version.String(), "systems", o.Systems, "namespaces", o.Namespaces)
	if len(o.Namespaces) > 0 {
		o.Log.Info("works in these namespaces only: resources elsewhere are not seen, and no condition of theirs says so", "namespaces", o.Namespaces)
	}
	return mgr.Start(ctx)
}

func newManager(cfg *rest.Config, o Options) (manager.Manager, error) {
	mgr, err := ctrl.NewManager(client(cfg), ctrl.Options{
		Scheme: scheme(), Logger: o.Log,
		Metrics:                       server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              cmp.Or(o.LeaseName, DefaultLease),
		LeaderElectionNamespace:       o.LeaseNamespace,
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

// client leaves the pace to the API server's priority and fairness: a limit of
// our own would only make a large fleet slow.
func client(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.UserAgent = "fairlead/" + version.String()
	out.QPS = -1
	return out
}
