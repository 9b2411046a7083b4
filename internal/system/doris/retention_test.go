package doris

import (
	"maps"
	"testing"

	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// TestRetentionIsInForceAtOnce holds that an edit of what becomes of claims reaches the
// StatefulSet of a cluster that runs, back and forth, and replaces no Pod.
func TestRetentionIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	clusters := map[string]func(*testing.T) *world{
		"made by us": func(t *testing.T) *world { t.Helper(); return settled(t, oneAndTwo) },
	}
	maps.Copy(clusters, ran)
	for name, from := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := from(t)
			for _, asked := range []*dorisv1.ClaimRetention{
				{WhenScaledIn: dorisv1.RetentionDelete}, {WhenRemoved: dorisv1.RetentionDelete}, {}, {WhenScaledIn: dorisv1.RetentionDelete}, {WhenScaledIn: dorisv1.RetentionRetain}, nil,
			} {
				w.dc.Spec.BeSpec.ClaimRetention = asked
				if p := w.settle(); len(p.Changes) > 0 && name == "made by us" {
					t.Errorf("%+v does not settle:\n%s", asked, printPlan(p))
				}
				none := retention(&dorisv1.ClaimRetention{})
				got, want := ptr.Deref(w.set("doris-be").Spec.PersistentVolumeClaimRetentionPolicy, *none), *none
				if asked != nil {
					want = *retention(asked)
				}
				if got != want {
					t.Errorf("%+v is asked for, and the StatefulSet has %+v", asked, got)
				}
			}
			if len(w.evicts) > 0 {
				t.Errorf("Pods went: %v", w.evicts)
			}
		})
	}
}
