package stories

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

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
		name: "scale-in from 1+3 to 1+1", database: true, setup: createsFilled, act: wantsBackends(1), unsettled: holdsAll(1),
	}
	scaleInCancelled = tale{
		name: "scale-in cancelled", database: true, setup: createsFilled, unsettled: holdsAll(3),
		act: func(ctx context.Context, s *scene) error {
			if err := s.db.exec(ctx, `ADMIN SET FRONTEND CONFIG ("disable_tablet_scheduler" = "true")`); err != nil {
				return err
			}
			if err := wantsBackends(1)(ctx, s); err != nil {
				return err
			}
			s.op.launch()
			for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
				leaving, err := s.db.column(ctx, "SHOW BACKENDS", "SystemDecommissioned")
				if n := len(slices.DeleteFunc(leaving, func(v string) bool { return v != "true" })); err == nil && n == 2 {
					break
				}
			}
			if err := wantsBackends(3)(ctx, s); err != nil {
				return err
			}
			return s.db.exec(ctx, `ADMIN SET FRONTEND CONFIG ("disable_tablet_scheduler" = "false")`)
		},
	}
)

// TestScaleInKilled kills the operator around writes of a scale-in, in which it
// speaks SQL to the stand-in for Doris.
func TestScaleInKilled(t *testing.T) {
	s := onStage(t)
	stories := map[string][]int{scaleIn.name: {1, 3, 4}, scaleInCancelled.name: {5}}
	for _, story := range []tale{scaleIn, scaleInCancelled} {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			at := stories[story.name]
			if all() {
				at = upTo(0, len(reference.writes)+1)
			}
			s.sweep(t, reference, kills(story, at...))
		})
	}
}

// TestScaleInWithoutAnswers has SQL hang, be refused, or lose its answer after the
// statement was carried out.
func TestScaleInWithoutAnswers(t *testing.T) {
	s := onStage(t)
	reference := s.undisturbed(t, scaleIn)
	var runs []run
	for _, spoilt := range []string{"hang:8s", "refuse:8s", "lose-answer", "wrong-password:8s", "unhealthy-tablets:8s"} {
		story := scaleIn
		story.name += " with the database spoilt by " + spoilt
		story.act = func(ctx context.Context, s *scene) error {
			if err := s.db.cluster.FEs[0].Faults.Parse(spoilt); err != nil {
				return fmt.Errorf("spoil the frontend: %w", err)
			}
			return scaleIn.act(ctx, s)
		}
		runs = append(runs, run{tale: story})
	}
	s.hold(t, reference, runs, s.performAll(t.Context(), runs))
}
