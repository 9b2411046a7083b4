package operator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead-dev/fairlead/internal/config"
)

// follower runs on every replica: a standby that takes over has to know the
// configuration, too.
type follower struct {
	run func(context.Context) error
}

var _ manager.LeaderElectionRunnable = follower{}

// Start implements manager.Runnable.
func (f follower) Start(ctx context.Context) error { return f.run(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (f follower) NeedLeaderElection() bool { return false }

func follow(mgr manager.Manager, o Options) follower {
	report := func(config.Report) {}
	if o.Self.Name != "" && o.Self.Namespace != "" {
		recorder := mgr.GetEventRecorder("fairlead")
		report = func(r config.Report) {
			kind := corev1.EventTypeNormal
			if r.Warning {
				kind = corev1.EventTypeWarning
			}
			recorder.Eventf(&o.Self, nil, kind, r.Reason, "Reload", "%s", r.Message)
		}
	}
	return follower{run: func(ctx context.Context) error { return o.Configuration.Run(ctx, report) }}
}
