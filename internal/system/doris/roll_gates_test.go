package doris

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// withHistory is a cluster of three by three whose database has heard of all.
func withHistory(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, threeByThree).withDatabase()
	w.clocked = true
	w.lives()
	w.now = w.now.Add(time.Hour)
	w.lives()
	w.db.statements, w.evicts = nil, nil
	return w
}

// moves lets time pass, some seconds at a time, as long as it is told.
func (w *world) moves(times int) (last plan.Plan) {
	w.Helper()
	for range times {
		last = w.reconcile()
		w.controllers()
		w.kubelet()
		w.db.goesOn()
		w.now = w.now.Add(6 * time.Second)
	}
	return last
}

func newBackends(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" }

var allBackends = []string{"doris-be-2", "doris-be-1", "doris-be-0"}

// rollEnds holds that nothing of a roll is left.
func (w *world) rollEnds(went ...string) {
	w.Helper()
	if diff := cmp.Diff(went, w.evicts); diff != "" {
		w.Errorf("Pods that went (-want +got):\n%s", diff)
	}
	for _, set := range []string{"doris-fe", "doris-be"} {
		if text := w.set(set).Annotations[meta.AnnotationRolling]; text != "" {
			w.Errorf("%s remembers the roll: %s", set, text)
		}
	}
	for _, b := range w.db.backends {
		if b.State.QueryDisabled || b.State.LoadDisabled {
			w.Errorf("%s does not get its work back: %+v", b.Host, b.State)
		}
	}
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		w.Errorf("Ready is %s", got)
	}
}

func TestBackendsGetNothingNewBeforeTheyGoAndAllOfItWhenTheyAreBack(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.edit(newBackends)
	w.lives()
	w.rollEnds(allBackends...)
	var want []string
	for _, pod := range allBackends {
		want = append(want, "route away "+pod, "route back "+pod)
	}
	got := slices.DeleteFunc(w.db.statements, func(s string) bool { return !strings.HasPrefix(s, "route ") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

func TestTheMasterGoesLast(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	for i := range w.db.frontends {
		w.db.frontends[i].IsMaster = podOfHost(w.db.frontends[i].Host) == "doris-fe-2"
		if podOfHost(w.db.frontends[i].Host) == "doris-fe-0" {
			w.db.frontends[i].Role = "OBSERVER"
		}
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.FeSpec.Image, s.BeSpec.Image = "apache/doris:fe-2", "apache/doris:be-2"
	})
	w.lives()
	w.rollEnds(append(slices.Clone(allBackends), "doris-fe-0", "doris-fe-1", "doris-fe-2")...)
}

func TestWhatKeepsARollFromGoingOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// before the edit, and after the first Pod went.
		before, then func(w *world)
		waits        string
		// mend ends the wait, if it does not end by the annotation.
		mend func(w *world)
	}{
		{
			name: "the database still speaks of the process that is gone", waits: "waiting for doris-be-2 to be seen by the system since it was replaced",
			before: func(w *world) { w.db.late = true }, then: func(*world) {}, mend: func(w *world) { w.db.late = false },
		},
		{
			name: "a backend that was replaced is not alive for the database", waits: "waiting for doris-be-2 to be alive in the system",
			then: func(w *world) { w.db.dead = "doris-be-2" }, mend: func(w *world) { w.db.dead = "" },
		},
		{
			name: "a frontend is not alive for the database", waits: "waiting for doris-fe-1 to be alive in the system",
			then: func(w *world) { w.db.dead = "doris-fe-1" }, mend: func(w *world) { w.db.dead = "" },
		},
		{
			name: "more tablets lack a copy than when the roll began", waits: "waiting for tablets to be healthy: 7 are not, and 3 were not when the roll began",
			before: func(w *world) { w.db.unhealthy = 3 }, then: func(w *world) { w.db.unhealthy = 7 }, mend: func(w *world) { w.db.unhealthy = 2 },
		},
		{
			name: "the database does not answer any more", waits: "waiting for the database, which answered before and does not now (it is cut off)",
			then: func(w *world) { w.db.failing = errors.New("it is cut off") }, mend: func(w *world) { w.db.failing = nil },
		},
		{
			name: "the database does not take back what was stopped", waits: "waiting for queries and loads to be given back to doris-be-2",
			then: func(w *world) { w.db.noRouting = true }, mend: func(w *world) { w.db.noRouting = false; w.now = w.now.Add(2 * askEvery) },
		},
	} {
		for _, allowed := range []bool{false, true} {
			name := c.name
			if allowed {
				name += ", and a person lets it go on"
			}
			t.Run(name, func(t *testing.T) {
				w := withHistory(t)
				if c.before != nil {
					c.before(w)
					w.moves(12) // it is heard
				}
				w.edit(newBackends)
				for len(w.evicts) == 0 {
					w.moves(1)
				}
				c.then(w)
				p := w.moves(20)
				if got := waitOf(p); len(w.evicts) > 1 || !strings.Contains(got.Message, c.waits) {
					t.Errorf("after %v it waits: %s", w.evicts, got.Message)
				}
				if allowed {
					w.db.lenient = true
					w.asks(map[string]string{meta.AnnotationAllow: "something, " + meta.AllowRollWithoutDatabase})
					w.moves(60)
					if diff := cmp.Diff(allBackends, w.evicts); diff != "" {
						t.Errorf("Pods that went (-want +got):\n%s\n%s", diff, printPlan(w.reconcile()))
					}
					w.asks(nil)
				}
				c.mend(w)
				w.lives()
				w.rollEnds(allBackends...)
			})
		}
	}
}

func TestABackendThatTheDatabaseDoesNotCountOnGoesBeforeOthers(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.db.dead = "doris-be-0"
	w.moves(12)
	w.edit(newBackends)
	w.moves(20)
	if got := waitOf(w.moves(1)).Message; !slices.Equal(w.evicts, []string{"doris-be-0"}) || !strings.Contains(got, "doris-be-0 to be alive") {
		t.Errorf("%v went, and it waits: %s", w.evicts, got)
	}
	w.db.dead = ""
	w.lives()
	w.rollEnds("doris-be-0", "doris-be-2", "doris-be-1")
}

func TestADatabaseThatNeverAnsweredKeepsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeByThree).withDatabase()
	w.db.failing = errors.New("no route to host")
	w.settle()
	w.edit(newBackends)
	said := ""
	for range 40 {
		if m := waitOf(w.moves(1)).Message; strings.Contains(m, "replacing Pods: doris-be-2") {
			said = m
		}
	}
	w.rollEnds(allBackends...)
	if want := "(by the readiness of Pods alone; the database is not heard: no route to host)"; !strings.Contains(said, want) {
		t.Errorf("it says %q", said)
	}
}

func TestWhatAUserStoppedStaysStopped(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.db.row("doris-be-1").State.QueryDisabled = true
	w.moves(12)
	w.edit(newBackends)
	w.lives()
	if got := w.db.row("doris-be-1").State; !got.QueryDisabled || got.LoadDisabled {
		t.Errorf("a backend whose queries a user stopped has %+v", got)
	}
	w.db.row("doris-be-1").State.QueryDisabled = false
	w.rollEnds(allBackends...)
}

func TestARollThatIsTakenBackGivesTheWorkBack(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.edit(newBackends)
	for !w.db.row("doris-be-2").State.QueryDisabled {
		p, _ := w.plan(w.store.Now())
		for _, s := range p.Steps {
			if _, waits := s.(plan.Wait); !waits {
				w.must(w.step(s))
			}
		}
		w.controllers()
		w.db.goesOn()
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-1" })
	w.lives()
	w.rollEnds()
}

func TestABadImageLeavesNobodyWithoutWork(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-bad" })
	w.moves(40)
	if diff := cmp.Diff([]string{"doris-be-2"}, w.evicts); diff != "" {
		t.Fatalf("Pods that went (-want +got):\n%s", diff)
	}
	w.edit(newBackends)
	w.lives()
	w.rollEnds(append([]string{"doris-be-2"}, allBackends...)...)
}

func TestAVersionThatCannotRouteIsRolledAllTheSame(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.db.noRouting = true
	w.edit(newBackends)
	w.lives()
	w.rollEnds(allBackends...)
}

func TestAnAnswerThatIsLostIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.db.losing = true
	w.edit(newBackends)
	w.lives()
	w.rollEnds(allBackends...)
}

func TestABackendThatLeftTheDatabaseMeanwhileKeepsNobody(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.edit(newBackends)
	for len(w.evicts) == 0 {
		w.moves(1)
	}
	w.db.backends = slices.DeleteFunc(w.db.backends, func(b backendRow) bool { return podOfHost(b.Host) == "doris-be-2" })
	w.lives()
	w.rollEnds(allBackends...)
}

func TestAClusterIsNotHandedBackWithABackendThatIsStopped(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.edit(newBackends)
	for len(w.evicts) == 0 {
		w.moves(1)
	}
	w.asks(map[string]string{meta.AnnotationRelease: "true"})
	w.controllers()
	w.kubelet()
	if got := waitOf(w.reconcile()); got.Reason != meta.ReasonReleasing || !strings.Contains(got.Message, "doris-be-2") {
		t.Errorf("it waits: %+v", got)
	}
	w.asks(nil)
	w.lives()
	w.rollEnds(allBackends...)
}

// A Pod that is lost while it is stopped for its turn is recorded by its UID.
func TestAPodLostInItsTurnGetsItsWorkBack(t *testing.T) {
	t.Parallel()
	w := withHistory(t)
	w.edit(newBackends)
	for !w.db.row("doris-be-2").State.QueryDisabled {
		w.moves(1)
	}
	for _, name := range []string{"doris-be-2", "doris-be-1"} {
		if pod, there := w.store.Now().Get(keyOf(podNamed(name))).(*corev1.Pod); there {
			w.must(w.store.Delete(keyOf(pod), pod.UID, false))
		}
	}
	w.db.lenient = true
	w.lives()
	if got := w.image("doris-be-0"); got != "apache/doris:be-2" {
		t.Errorf("the roll did not go on: doris-be-0 has %s", got)
	}
	w.evicts = nil
	w.rollEnds()
}

// Whatever befalls the database in the middle of a roll, no Pod goes that should not
// (the double holds that), and when all is mended every Pod was replaced once, and
// every backend has its work.
func TestARollUnderTroubleEnds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 4))
			w := withHistory(t)
			w.edit(func(s *dorisv1.DorisClusterSpec) {
				s.FeSpec.Image, s.BeSpec.Image = "apache/doris:fe-2.1.8", "apache/doris:be-2.1.8"
			})
			for range 60 {
				w.db.late, w.db.dead, w.db.unhealthy, w.db.failing = random.IntN(4) == 0, "", int64(random.IntN(2)), nil
				switch random.IntN(6) {
				case 0:
					w.db.dead = allBackends[random.IntN(3)]
				case 1:
					w.db.failing = errors.New("it is cut off")
				case 2:
					w.db.losing = true
				}
				w.moves(1 + random.IntN(3))
			}
			w.db.late, w.db.dead, w.db.unhealthy, w.db.failing = false, "", 0, nil
			w.lives()
			went := slices.Clone(w.evicts)
			slices.Sort(went)
			w.evicts = went
			w.rollEnds("doris-be-0", "doris-be-1", "doris-be-2", "doris-fe-0", "doris-fe-1", "doris-fe-2")
			if text := w.set("doris-fe").Annotations[meta.AnnotationBalanceStopped]; text != "" {
				t.Errorf("a record is left: %s", text)
			}
		})
	}
}
