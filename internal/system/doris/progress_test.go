package doris

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

func rollingBack(s *dorisv1.DorisClusterSpec) {
	s.Rollout = &dorisv1.Rollout{OnFailure: dorisv1.OnFailureRollback}
}

func TestARollThatFailsIsRolledBackWhereTheSpecSaysSo(t *testing.T) {
	t.Parallel()
	back := func(t *testing.T, w *world) {
		t.Helper()
		for _, pod := range []string{"doris-be-0", "doris-be-1", "doris-be-2"} {
			if got := w.image(pod); got != "apache/doris:be-1" {
				t.Errorf("%s has %s", pod, got)
			}
		}
		p := w.reconcile()
		held := slices.DeleteFunc(p.HeldSets(), func(h plan.Held) bool { return h.Changes[0].Cause == plan.CauseRevision })
		if len(held) != 1 || held[0].Changes[0].Reason != meta.ReasonMemberFailed || !strings.Contains(held[0].Changes[0].Message, "it was rolled back") {
			t.Errorf("held: %+v", held)
		}
		if got := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(got, "True MemberFailed: replacing Pods: rolled back, since doris-be-") {
			t.Errorf("Stalled is %q", got)
		}
	}
	t.Run("the Pod that failed comes back on what ran before, and the change is not tried again", func(t *testing.T) {
		t.Parallel()
		w := settled(t, threeByThree)
		w.edit(rollingBack)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-bad" })
		w.settle()
		back(t, w)
		if diff := cmp.Diff([]string{"doris-be-2", "doris-be-2"}, w.evicts); diff != "" {
			t.Errorf("Pods that went (-want +got):\n%s", diff)
		}
		w.evicts = nil
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		w.settle()
		if diff := cmp.Diff([]string{"doris-be-2", "doris-be-1", "doris-be-0"}, w.evicts); diff != "" {
			t.Errorf("mended, Pods that went (-want +got):\n%s", diff)
		}
	})
	t.Run("Pods that came up on the change go back as well", func(t *testing.T) {
		t.Parallel()
		w := settled(t, threeByThree)
		w.edit(rollingBack)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		for range 40 {
			w.reconcile()
			w.controllers()
			w.broken["doris-be-1"] = w.image("doris-be-1") == "apache/doris:be-2"
			w.kubelet()
		}
		w.settle()
		back(t, w)
		if diff := cmp.Diff([]string{"doris-be-2", "doris-be-1", "doris-be-1", "doris-be-2"}, w.evicts); diff != "" {
			t.Errorf("Pods that went (-want +got):\n%s", diff)
		}
	})
	t.Run("a roll that is paused is rolled back when the spec says so afterwards", func(t *testing.T) {
		t.Parallel()
		w := settled(t, threeByThree)
		badRoll(t, w)
		w.edit(rollingBack)
		w.settle()
		back(t, w)
		if diff := cmp.Diff([]string{"doris-be-2"}, w.evicts); diff != "" {
			t.Errorf("Pods that went (-want +got):\n%s", diff)
		}
	})
	t.Run("so is one of a cluster that was taken over", func(t *testing.T) {
		t.Parallel()
		w := legacy(t, threeByThree, nil)
		w.settle()
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-bad" })
		w.settle()
		w.edit(rollingBack)
		w.settle()
		back(t, w)
		if diff := cmp.Diff([]string{"doris-be-2", "doris-be-2"}, w.evicts); diff != "" {
			t.Errorf("Pods that went (-want +got):\n%s", diff)
		}
	})
}

func TestAPodThatTakesTooLongCountsAsFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		edit     func(*dorisv1.DorisClusterSpec)
		deadline time.Duration
	}{
		{"after ten minutes", func(*dorisv1.DorisClusterSpec) {}, 10 * time.Minute},
		{"later where processes may start for longer", func(s *dorisv1.DorisClusterSpec) { s.BeSpec.StartTimeout = 900 }, 30 * time.Minute},
		{"when the spec says so", func(s *dorisv1.DorisClusterSpec) {
			s.Rollout = &dorisv1.Rollout{ProgressDeadlineSeconds: new(int32(60))}
		}, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, threeByThree)
			w.edit(c.edit)
			w.settle()
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:slow" })
			p := w.settle()
			if p.Revisit != c.deadline {
				t.Errorf("it is looked at again after %s", p.Revisit)
			}
			w.now = w.now.Add(c.deadline - time.Second)
			w.settle()
			if got := w.templateOf("doris-be").Spec.Containers[0].Image; got != "apache/doris:slow" {
				t.Errorf("too early, the template has %s", got)
			}
			w.now = w.now.Add(time.Second)
			p = w.settle()
			if got := w.templateOf("doris-be").Spec.Containers[0].Image; got != "apache/doris:be-1" {
				t.Errorf("the template has %s", got)
			}
			want := "True MemberFailed: replacing Pods: stopped, since doris-be-2 does not come up (cannot be scheduled: no room for " + c.deadline.String() + ")"
			if got := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(got, want) {
				t.Errorf("Stalled is %q", got)
			}
			if p.Revisit != 0 {
				t.Errorf("it is looked at again after %s", p.Revisit)
			}
			if diff := cmp.Diff([]string{"doris-be-2"}, w.evicts); diff != "" {
				t.Errorf("Pods that went (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the policy is no edit of a template", func(t *testing.T) {
		t.Parallel()
		w := settled(t, threeByThree)
		before := object(w, "doris-be", &appsv1.StatefulSet{}).ResourceVersion
		w.edit(rollingBack)
		w.settle()
		if after := object(w, "doris-be", &appsv1.StatefulSet{}).ResourceVersion; before != after {
			t.Error("the set is written")
		}
	})
}

func TestAFirstRolloutThatTakesTooLongIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(*dorisv1.DorisClusterSpec)
	}{
		{"where a roll that stops is paused", func(*dorisv1.DorisClusterSpec) {}},
		{"where it is rolled back", rollingBack},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, threeByThree)
			w.edit(c.edit)
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:slow" })
			p := w.settle()
			if got := condition(w.dc, meta.ConditionStalled); p.Revisit != progressDeadline || got != "" {
				t.Errorf("too early, it is looked at again after %s, and Stalled is %q", p.Revisit, got)
			}
			before := object(w, "doris-be", &appsv1.StatefulSet{})
			w.now = w.now.Add(progressDeadline)
			p = w.settle()
			want := "True MemberFailed: doris-be-0 does not come up (cannot be scheduled: no room for 10m0s), nor does another Pod of its StatefulSet, so that there is nothing to go back to."
			if got := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(got, want) || p.Revisit != 0 {
				t.Errorf("Stalled is %q, and it is looked at again after %s", got, p.Revisit)
			}
			if diff := cmp.Diff(before, object(w, "doris-be", &appsv1.StatefulSet{})); diff != "" {
				t.Errorf("the set (-before +after):\n%s", diff)
			}
			w.gone(t, nil, "reported")
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-1" })
			w.settle()
			w.gone(t, backends, "mended")
			if got := condition(w.dc, meta.ConditionStalled) + condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
				t.Errorf("mended, Stalled and Ready are %q", got)
			}
		})
	}
}
