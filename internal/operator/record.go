package operator

import (
	"cmp"
	"context"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead-dev/fairlead/internal/config"
	"github.com/fairlead-dev/fairlead/internal/version"
)

// Recorder writes the ConfigMap in which an operator tells of itself.
type Recorder interface {
	Record(ctx context.Context, namespace, name string, labels, data map[string]string) error
}

// recording is the leader's: it tells what is in force, once when it begins to
// lead, and after that only when that changes.
type recording struct {
	recorder        Recorder
	namespace, name string
	labels          map[string]string
	told            <-chan struct{}
	record          func() config.Record
	log             logr.Logger
	retry           time.Duration
}

// recordRetry is how soon a record that was not written is tried again: whoever
// may not write it shall not be told by a thousand requests.
const recordRetry = time.Minute

func addRecord(mgr manager.Manager, o Options) error {
	if o.Recorder == nil || o.Self.Namespace == "" {
		return nil
	}
	recorder, err := o.Recorder(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	lease := cmp.Or(o.LeaseName, DefaultLease)
	return mgr.Add(recording{
		recorder: recorder, namespace: o.Self.Namespace, name: config.RecordName(lease),
		labels: map[string]string{config.RecordLabel: lease, "app.kubernetes.io/name": "fairlead", "app.kubernetes.io/component": "operator-record"},
		told:   o.Configuration.Told(), log: o.Log.WithName("record"), retry: recordRetry,
		record: func() config.Record {
			r := o.Configuration.Record()
			r.Version, r.Leader = version.String(), o.Self.Name
			if o.LeaderElect {
				r.Lease = cmp.Or(o.LeaseNamespace, o.Self.Namespace) + "/" + lease
			}
			return r
		},
	})
}

// Start implements manager.Runnable; it runs on the leader alone.
func (r recording) Start(ctx context.Context) error {
	written, failed := "", false
	for {
		text, err := r.record().Encode()
		if err == nil && text != written {
			err = r.recorder.Record(ctx, r.namespace, r.name, r.labels, map[string]string{config.RecordKey: text})
		}
		var again <-chan time.Time
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // what was cut short by the end is no fault
		case err != nil:
			if !failed {
				r.log.Error(err, "cannot write what `kubectl fairlead status operator` reads; it is tried again")
			}
			failed, again = true, time.After(r.retry)
		default:
			written, failed = text, false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.told:
		case <-again:
		}
	}
}
