package stories

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// filled has three backends, of which two can go.
const filled = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec:
    replicas: 1
    image: "apache/doris:fe-2.1.8"
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 3
    image: "apache/doris:be-2.1.8"
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
`

// createsFilled makes the cluster and writes rows when its backends are members.
func createsFilled(ctx context.Context, s *scene) error {
	if err := creates(filled)(ctx, s); err != nil {
		return err
	}
	return s.db.fill(ctx, 3)
}

func wantsBackends(n int32) func(context.Context, *scene) error {
	return edits(func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = &n })
}

// holdsAll says what is missing until n backends are left, as Pods and members, and
// every row is there.
func holdsAll(n int) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := settledCluster(ctx, s); missing != "" {
			return missing
		}
		return s.db.holds(ctx, n)
	}
}

var (
	scaleIn = tale{
		name: "scale-in from 1+3 to 1+1", database: true, setup: createsFilled, act: wantsBackends(1), unsettled: withClaims(holdsAll(1), claimsOfFilled...),
	}
	scaleInCancelled = cancelling("")
)

// cancelling is the story in which as many backends are wanted as before, while two
// leave, and the database is spoilt then.
func cancelling(spoilt string) tale {
	return tale{
		name: "scale-in cancelled", database: true, setup: createsFilled, unsettled: holdsAll(3),
		act: inTurn(beginsScaleIn, spoils(spoilt), wantsBackends(3), func(ctx context.Context, s *scene) error {
			return s.db.insists(ctx, `ADMIN SET FRONTEND CONFIG ("disable_tablet_scheduler" = "false")`)
		}),
	}
}

// beginsScaleIn wants one backend, and returns when two are decommissioned. No tablet
// moves.
func beginsScaleIn(ctx context.Context, s *scene) error {
	if err := s.db.exec(ctx, `ADMIN SET FRONTEND CONFIG ("disable_tablet_scheduler" = "true")`); err != nil {
		return err
	}
	if err := wantsBackends(1)(ctx, s); err != nil {
		return err
	}
	s.op.launch()
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		leaving, err := s.db.column(ctx, "SHOW BACKENDS", "SystemDecommissioned")
		n := len(slices.DeleteFunc(leaving, func(v string) bool { return v != "true" }))
		return err == nil && n == 2, nil
	})
}
