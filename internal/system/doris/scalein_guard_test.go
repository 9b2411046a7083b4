package doris

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

func TestBackendsDoNotLeave(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		to   int32
		act  func(*world)
		// kind is the condition that tells why, says what it says.
		kind, says string
		statements []string
	}{
		{"below the largest replication number", 2, func(*world) {}, meta.ConditionStalled, "insufficient backends: 2 are left, and table shop.orders needs 3", nil},
		{"below the largest replication number, which is said by the statement alone", 2, func(w *world) { w.db.silent = true }, meta.ConditionStalled, "it will cause insufficient backends: table shop.orders needs 3, 2 are left", []string{"DECOMMISSION BACKEND doris-be-4", "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-2"}},
		{"while one that stays is dead", 3, func(w *world) { w.broken["doris-be-1"] = true }, meta.ConditionReconciling, "doris-be-1, which stays, does not answer the master", nil},
		{"while tablets lack a healthy copy", 3, func(w *world) { w.db.unhealthy = 7 }, meta.ConditionReconciling, "7 tablets lack a healthy copy", nil},
		{"while one that stays is being decommissioned by somebody else", 3, func(w *world) {
			w.db.stuck, w.db.strange["doris-be-0"] = true, true
			w.db.row("doris-be-0").Decommissioned = true
		}, meta.ConditionReconciling, "doris-be-0, which stays, is being decommissioned by somebody else", nil},
		{"while somebody else decommissions one of them", 3, func(w *world) {
			w.db.stuck, w.db.strange["doris-be-4"] = true, true
			w.db.row("doris-be-4").Decommissioned = true
		}, meta.ConditionReconciling, "doris-be-4 is being decommissioned by somebody else", nil},
		{"while it is not known which member a Pod is", 3, func(w *world) { w.db.row("doris-be-4").Host = "another.example.com" }, meta.ConditionReconciling, "the database does not know doris-be-4, unless it is one of another.example.com:9050", nil},
		{"while two members may be the Pod", 3, func(w *world) {
			twin := *w.db.row("doris-be-4")
			twin.HeartbeatPort = 9051
			w.db.backends = append(w.db.backends, twin)
		}, meta.ConditionReconciling, "two members that may be doris-be-4", nil},
		{"while the database does not answer", 3, func(w *world) { w.db.failing = errors.New("the line is cut") }, meta.ConditionReconciling, "doris-be-4, doris-be-3 shall leave: the database does not answer: the line is cut", nil},
		{"all of them", 0, func(*world) {}, meta.ConditionReconciling, "no backend would be left", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := memberCluster(t, threeByFive)
			tc.act(w)
			if w.broken["doris-be-1"] {
				w.kubelet()
				w.db.goesOn()
			}
			w.backendsWanted(tc.to)
			for range 4 {
				w.reconcile()
				w.kubelet()
				w.db.goesOnWithout(tc.name)
				w.now = w.now.Add(6 * time.Second)
			}
			if got := condition(w.dc, tc.kind); !strings.Contains(got, tc.says) {
				t.Errorf("%s is %q, without %q", tc.kind, got, tc.says)
			}
			for _, s := range w.db.statements {
				if !slices.Contains(tc.statements, s) {
					t.Errorf("unexpected statement %s", s)
				}
			}
			if got := len(w.podNames("be")); got != 5 {
				t.Errorf("%d Pods are left", got)
			}
		})
	}
}

// goesOnWithout lets the database act, unless a test has spoilt what it would mend.
func (d *databaseDouble) goesOnWithout(name string) {
	if !strings.Contains(name, "which member") {
		d.goesOn()
	}
}

func TestBackendsAreDropped(t *testing.T) {
	t.Parallel()
	w := memberCluster(t, threeByFive)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.ScaleInPolicy = dorisv1.ScaleInDrop })
	w.lives()
	if len(w.evicts) > 0 {
		t.Fatalf("the policy replaced %v", w.evicts)
	}
	w.backendsWanted(3)
	w.lives()
	w.statements(t)
	p := w.reconcile()
	digest := onlyDigest(t, p, "StatefulSet/doris-be")
	if got := changesOf(p, "StatefulSet/doris-be"); !slices.Equal(got, []string{"spec.replicas user data-loss hold"}) {
		t.Errorf("changes are %v", got)
	}
	// Whoever cannot ask the database, as the plugin, is shown the same digest.
	blind := New(w.system.engine)
	seen, err := blind.Observe(t.Context(), view{w.store.Now()}, w.dc)
	w.must(err)
	unasked, err := blind.Plan(w.dc, seen, w.now)
	w.must(err)
	if got := onlyDigest(t, unasked, "StatefulSet/doris-be"); got != digest {
		t.Errorf("without the database the digest is %s, and %s with it", got, digest)
	}
	w.approve(digest)
	w.lives()
	w.statements(t, "DROPP BACKEND doris-be-3", "DROPP BACKEND doris-be-4")
	w.only(t, fiveBackends[:3]...)
	w.backendsWanted(5)
	w.lives()
	w.backendsWanted(3)
	w.lives()
	if got := len(w.reconcile().HeldSets()); got != 1 || len(w.db.statements) != 2 {
		t.Errorf("a consent that was used counts again: %v", w.db.statements)
	}
}

// TestBackendsLeaveWithAnswersLost lets every statement lose its answer.
func TestBackendsLeaveWithAnswersLost(t *testing.T) {
	t.Parallel()
	w := memberCluster(t, threeByFive)
	w.db.losing, w.db.keep = true, true
	w.backendsWanted(3)
	w.lives()
	w.statements(t, "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-4", "DROPP BACKEND doris-be-3", "DROPP BACKEND doris-be-4")
	w.only(t, fiveBackends[:3]...)
}

// TestBackendIsReplacedOnItsWayOut takes away a Pod that is leaving: its record is
// on the set too.
func TestBackendIsReplacedOnItsWayOut(t *testing.T) {
	t.Parallel()
	w := memberCluster(t, threeByFive)
	w.db.stuck = true
	w.backendsWanted(3)
	w.lives()
	pod := object(w, "doris-be-4", &corev1.Pod{})
	if pod.Annotations[meta.AnnotationLeaving] == "" {
		t.Error("the Pod does not remember that it leaves")
	}
	w.must(w.store.Delete(keyOf(pod), pod.UID, false))
	w.lives()
	if object(w, "doris-be-4", &corev1.Pod{}).Annotations[meta.AnnotationLeaving] == "" {
		t.Error("the new Pod does not remember that it leaves")
	}
	w.db.stuck = false
	w.lives()
	w.statements(t, "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-4")
	w.only(t, fiveBackends[:3]...)
}

// TestBackendsLeaveKilledAtEveryStep kills the operator before and after each thing
// that it does.
func TestBackendsLeaveKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		back bool
		to   []string
	}{{"scale-in", false, fiveBackends[:1]}, {"and cancelled", true, fiveBackends[:3]}} {
		t.Run(tc.name, func(t *testing.T) {
			killedEverywhere(t, 10, func() *world {
				w := memberCluster(t, oneByThree)
				w.db.keep, w.db.replication = true, 1
				w.backendsWanted(1)
				if tc.back {
					w.db.stuck = true
					w.lives()
					w.backendsWanted(3)
				}
				return w
			}, func(w *world) {
				w.lives()
				w.only(t, tc.to...)
				if seen := len(w.db.statements); seen != 4 {
					t.Errorf("the statements are %v", w.db.statements)
				}
			})
		})
	}
}

// killedEverywhere kills the operator at each of its points, at least so many times, in
// a world that begins anew for each, and holds what comes of it.
func killedEverywhere(t *testing.T, least int, begin func() *world, holds func(*world)) {
	t.Helper()
	kills := 0
	for n := 1; ; n += stride() {
		w := begin()
		if !w.diesAt(n) {
			break
		}
		kills++
		holds(w)
		if t.Failed() {
			t.Fatalf("killed at point %d", n)
		}
	}
	if kills*stride() < least {
		t.Errorf("killed %d times only", kills)
	}
	t.Logf("killed at %d points", kills)
}

// diesAt lets everybody act until the operator dies at its nth point; see killedAt.
func (w *world) diesAt(nth int) bool {
	w.Helper()
	point, quiet := 0, 0
	for range 200 {
		p, observed := w.plan(w.store.Now())
		acted := false
		for _, s := range p.Steps {
			if _, waits := s.(plan.Wait); waits {
				break
			}
			for _, after := range []bool{false, true} {
				if after {
					w.must(w.step(s))
					acted = true
				}
				if point++; point == nth {
					w.system = New(testEngine).Reaching(w.db, func() time.Time { return w.now })
					return true
				}
			}
		}
		w.report(p, observed)
		w.controllers()
		w.kubelet()
		w.db.goesOn()
		w.now = w.now.Add(6 * time.Second)
		if quiet++; acted {
			quiet = 0
		}
		if quiet > 3 {
			return false
		}
	}
	w.Fatalf("it never settles")
	return false
}

func TestMembersThatDoNotBelong(t *testing.T) {
	t.Parallel()
	t.Run("a Pod that never registered is registered", func(t *testing.T) {
		w := newWorld(t, threeByFive).withDatabase()
		w.db.pending["doris-be-2"] = true
		w.lives()
		w.statements(t, "ADD BACKEND doris-be-2")
		w.only(t, fiveBackends...)
	})
	t.Run("one that somebody took out is named and left alone", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.db.backends = slices.DeleteFunc(w.db.backends, func(b client.Backend) bool { return b.Host == hostOf("doris-be-2") })
		w.now = w.now.Add(time.Hour)
		w.lives()
		w.statements(t)
		if got := condition(w.dc, meta.ConditionMembersRegistered); !strings.HasPrefix(got, "False NotRegistered: doris-be-2 is ready and was taken out of the database by somebody: put it back with ALTER SYSTEM ADD BACKEND \"doris-be-2.doris-be-internal.shop.svc.cluster.local:9050\", or scale in") {
			t.Errorf("MembersRegistered is %q", got)
		}
		if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "False NotRegistered: doris-be-2 is ready and was taken out") {
			t.Errorf("Ready is %q", got)
		}
		w.db.registers("doris-be-2")
		w.now = w.now.Add(time.Hour)
		w.lives()
		if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
			t.Errorf("Ready is %q when it is back", got)
		}
	})
	t.Run("a member whose Pod is gone is named", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.db.registers("doris-be-7")
		w.now = w.now.Add(time.Hour)
		w.lives()
		if got := condition(w.dc, meta.ConditionMembersRegistered); !strings.HasPrefix(got, "False MemberGone: doris-be-7.doris-be-internal.shop.svc.cluster.local:9050 is registered and its Pod is gone") {
			t.Errorf("MembersRegistered is %q", got)
		}
	})
	t.Run("a frontend whose Pod is gone is named, with what it does to elections", func(t *testing.T) {
		const host = "doris-fe-7.doris-fe-internal.shop.svc.cluster.local"
		w := memberCluster(t, threeByFive)
		w.db.frontends = append(w.db.frontends, client.Frontend{Host: host, EditLogPort: 9010, Role: "FOLLOWER"})
		w.now = w.now.Add(time.Hour)
		w.lives()
		if got := condition(w.dc, meta.ConditionMembersRegistered); got != "False MemberGone: "+host+":9010 is registered and its Pod is gone, and it counts for the majority that elects the master: take it out with ALTER SYSTEM DROP FOLLOWER \""+host+":9010\", or scale out" {
			t.Errorf("MembersRegistered is %q", got)
		}
	})
	t.Run("an account that is denied is named", func(t *testing.T) {
		w := memberCluster(t, threeByFive)
		w.db.failing = fmt.Errorf("account \"root\": %w", client.ErrDenied)
		w.now = w.now.Add(time.Hour)
		w.lives()
		if got := condition(w.dc, meta.ConditionMembersRegistered); got != `False AccessDenied: the members of the database cannot be seen: account "root": access denied` {
			t.Errorf("MembersRegistered is %q", got)
		}
		if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
			t.Errorf("Ready is %q", got)
		}
	})
}

// TestDatabaseIsAskedSeldom counts what a cluster at rest asks.
func TestDatabaseIsAskedSeldom(t *testing.T) {
	t.Parallel()
	w := memberCluster(t, threeByFive)
	asked, writes := w.db.asked, w.store.Now().Version
	began := w.now
	for w.now.Sub(began) < time.Hour {
		w.reconcile()
		w.now = w.now.Add(20 * time.Second)
	}
	if got := w.db.asked - asked; got > 60 || got < 40 {
		t.Errorf("in an hour it was asked %d times", got)
	}
	if w.store.Now().Version != writes {
		t.Error("something was written")
	}
	p := w.reconcile()
	if p.Revisit <= 0 || p.Revisit > 70*time.Second || !p.Settled() {
		t.Errorf("it is looked at again after %s; settled: %t", p.Revisit, p.Settled())
	}
}

// TestScaleOutIsAtOnce makes all new Pods in one write.
func TestScaleOutIsAtOnce(t *testing.T) {
	t.Parallel()
	w := memberCluster(t, threeByThree)
	w.backendsWanted(7)
	w.reconcile()
	if got := *object(w, "doris-be", &appsv1.StatefulSet{}).Spec.Replicas; got != 7 {
		t.Errorf("the set has %d replicas after the first write", got)
	}
	w.lives()
	w.statements(t)
}

// TestFoundPodsStay takes a cluster over whose set has more Pods than its spec says:
// nobody leaves before a person accepts that.
func TestFoundPodsStay(t *testing.T) {
	t.Parallel()
	w := legacy(t, threeByFive, nil).withDatabase()
	w.db.goesOn()
	w.backendsWanted(3)
	w.lives()
	w.statements(t)
	p := w.reconcile()
	if got := changesOf(p, "StatefulSet/doris-be"); !slices.Contains(got, "spec.replicas revision none hold") {
		t.Errorf("changes are %v", got)
	}
	for digest, changes := range heldSets(p) {
		if slices.Contains(changes, "StatefulSet/doris-be spec.replicas") {
			w.approve(digest)
		}
	}
	w.lives()
	w.statements(t, "DECOMMISSION BACKEND doris-be-3", "DECOMMISSION BACKEND doris-be-4")
	w.only(t, fiveBackends[:3]...)
}

// TestNewMembersAreSeenSoon is of Pods that have just become ready: the database is
// asked more often until it knows them, and not for ever.
func TestNewMembersAreSeenSoon(t *testing.T) {
	t.Parallel()
	w := memberCluster(t, threeByThree)
	since := func(age time.Duration) planner {
		_, observed := w.plan(w.store.Now())
		pods := observed.Pods["be"]
		for i := range pods {
			pods[i].Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.now.Add(-age))
		}
		return w.system.planner(w.dc, observed)
	}
	if since(time.Second).joining(w.now) {
		t.Error("all are known, and it is asked often")
	}
	w.dc.Status.BeStatus.RegisteredInstances = w.dc.Status.BeStatus.RegisteredInstances[:2]
	if !since(time.Second).joining(w.now) {
		t.Error("one is not known, and it is asked seldom")
	}
	if since(registers).joining(w.now) {
		t.Error("one is not known for long, and it is asked often")
	}
}
