package doris

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

var fiveFollowers = strings.Replace(fiveByOne, "electionNumber: 3", "electionNumber: 5", 1)

// fewerFollowers asks for fewer frontends that vote.
func (w *world) fewerFollowers(n int32) {
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Replicas, s.FeSpec.ElectionNumber = &n, &n })
}

// approveFewer consents to what is held of the number of frontends.
func (w *world) approveFewer() {
	w.Helper()
	for digest, changes := range heldSets(w.reconcile()) {
		if slices.Contains(changes, "StatefulSet/doris-fe spec.replicas") {
			w.approve(digest)
			return
		}
	}
	w.Fatalf("nothing of the number of frontends is held:\n%s", printPlan(w.reconcile()))
}

func (w *world) masterIs(t *testing.T, pods ...string) {
	t.Helper()
	for _, f := range w.db.frontends {
		if f.IsMaster && !slices.Contains(pods, podOfHost(f.Host)) {
			t.Errorf("%s is master", f.Host)
		}
	}
}

func TestFollowersLeave(t *testing.T) {
	t.Parallel()
	t.Run("held until a person agrees, then one after the other", func(t *testing.T) {
		w := memberCluster(t, fiveFollowers)
		if diff := cmp.Diff(fiveFrontends, w.dc.Status.FeStatus.FollowerInstances); diff != "" {
			t.Errorf("followers (-want +got):\n%s", diff)
		}
		w.fewerFollowers(3)
		w.lives()
		w.statements(t)
		p := w.reconcile()
		held := p.Held()
		at := slices.IndexFunc(held, func(c plan.Change) bool { return c.Path == replicasPath })
		if at < 0 {
			t.Fatalf("held is %v", held)
		}
		const says = "doris-fe-4, doris-fe-3 elect the master and would leave for good, one after the other; 3 followers would be left (doris-fe-0, doris-fe-1, doris-fe-2), of which 2 have to answer for the cluster to work"
		if held[at].Message != says || held[at].Approve == "" {
			t.Errorf("it is held with %+v", held[at])
		}
		w.approveFewer()
		w.lives()
		if diff := cmp.Diff([]string{"DROP FOLLOWER doris-fe-4", "DROP FOLLOWER doris-fe-3"}, w.db.statements); diff != "" {
			t.Errorf("statements (-want +got):\n%s", diff)
		}
		w.onlyFrontends(t, fiveFrontends[:3]...)
		if data := object(w, "doris-fe-bootstrap", &corev1.ConfigMap{}).Data; len(data["retired-3"]) != 12 || len(data["retired-4"]) != 12 {
			t.Errorf("the record is %v", data)
		}
		if diff := cmp.Diff(fiveFrontends[:3], w.dc.Status.FeStatus.FollowerInstances); diff != "" {
			t.Errorf("followers (-want +got):\n%s", diff)
		}
	})
	t.Run("the plugin, which asks no database, shows the same digest", func(t *testing.T) {
		w := memberCluster(t, fiveFollowers)
		w.fewerFollowers(3)
		w.lives()
		_, observed := w.plan(w.store.Now())
		observed.Database = nil
		p, err := New(testEngine).Plan(w.dc, observed, w.now)
		w.must(err)
		if one, two := heldSets(w.reconcile()), heldSets(p); fmt.Sprint(one) != fmt.Sprint(two) {
			t.Errorf("held sets differ: %v and %v", one, two)
		}
	})
	t.Run("the database is asked seldom while a person is waited for", func(t *testing.T) {
		w := memberCluster(t, fiveByOne)
		w.db.frontends[4].Role = "FOLLOWER"
		w.now = w.now.Add(time.Hour)
		w.lives()
		w.frontendsWanted(3)
		w.lives()
		asked, began := w.db.asked, w.now
		for w.now.Sub(began) < time.Hour {
			w.reconcile()
			w.now = w.now.Add(10 * time.Second)
		}
		if got := w.db.asked - asked; got > 61 {
			t.Errorf("in an hour it was asked %d times", got)
		}
	})
	t.Run("a leaving master is moved first", func(t *testing.T) {
		w := memberCluster(t, fiveFollowers)
		w.db.frontends[0].IsMaster, w.db.frontends[4].IsMaster = false, true
		w.db.prefers = "doris-fe-3" // which leaves as well
		w.fewerFollowers(3)
		w.lives()
		w.approveFewer()
		for len(w.db.statements) == 0 {
			w.reconcile()
			w.controllers()
			w.kubelet()
			w.db.goesOn()
			if slices.Contains(w.evicts, "doris-fe-3") {
				w.db.prefers = "doris-fe-1"
			}
			w.now = w.now.Add(6 * time.Second)
		}
		w.masterIs(t, fiveFrontends[:3]...)
		w.lives()
		w.statements(t, "DROP FOLLOWER doris-fe-4", "DROP FOLLOWER doris-fe-3")
		w.onlyFrontends(t, fiveFrontends[:3]...)
		leaving := slices.DeleteFunc(slices.Clone(w.evicts), func(pod string) bool { return ordinalOf(pod) < 3 })
		if !slices.Equal(leaving, []string{"doris-fe-4", "doris-fe-3"}) {
			t.Errorf("replaced were %v", w.evicts)
		}
	})
	t.Run("not for ever", func(t *testing.T) {
		w := memberCluster(t, fiveFollowers)
		w.db.frontends[0].IsMaster, w.db.frontends[4].IsMaster = false, true
		w.fewerFollowers(3)
		w.lives()
		w.approveFewer()
		for range 200 {
			if w.reconcile(); len(w.evicts) > 0 && w.db.frontends[4].Alive {
				w.db.prefers = "doris-fe-4"
			}
			w.controllers()
			w.kubelet()
			w.db.goesOn()
			for i := range w.db.frontends { // whatever happens, it is master again
				w.db.frontends[i].IsMaster = i == 4
			}
			w.now = w.now.Add(6 * time.Second)
		}
		w.statements(t)
		moves := 0
		for _, pod := range w.evicts {
			moves += btoi(pod == "doris-fe-4")
		}
		if moves != mostMoves {
			t.Errorf("its Pod was replaced %d times", moves)
		}
		if got := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(got, "True ScaleInRefused: the database refuses: doris-fe-4 is master again") {
			t.Errorf("Stalled is %q", got)
		}
	})
	for name, tc := range map[string]struct {
		make func(w *world)
		says string
	}{
		"a frontend that stays does not answer": {func(w *world) { w.db.frontends[1].Alive = false }, "which stays, does not answer the master"},
		"no frontend is master": {func(w *world) {
			for i := range w.db.frontends {
				w.db.frontends[i].IsMaster = false
			}
		}, "no frontend is master"},
	} {
		t.Run("not while "+name, func(t *testing.T) {
			w := memberCluster(t, fiveFollowers)
			w.fewerFollowers(3)
			w.lives()
			w.approveFewer()
			tc.make(w)
			w.now = w.now.Add(time.Hour)
			w.reconcile()
			w.statements(t)
			if got := condition(w.dc, meta.ConditionReconciling); !strings.Contains(got, tc.says) {
				t.Errorf("Reconciling is %q", got)
			}
		})
	}
	t.Run("two followers, the master leaves: the way out is named", func(t *testing.T) {
		w := memberCluster(t, strings.Replace(fiveByOne, "replicas: 5, electionNumber: 3", "replicas: 2, electionNumber: 2", 1))
		w.db.frontends[0].IsMaster, w.db.frontends[1].IsMaster = false, true
		w.fewerFollowers(1)
		w.lives()
		w.approveFewer()
		w.lives()
		w.statements(t)
		if got := condition(w.dc, meta.ConditionReconciling); !strings.Contains(got, "cannot elect without it: have 3 followers first") {
			t.Errorf("Reconciling is %q", got)
		}
	})
	t.Run("fewer than electionNumber are refused", func(t *testing.T) {
		w := memberCluster(t, fiveFollowers)
		w.frontendsWanted(3)
		w.lives()
		w.statements(t)
		if got := condition(w.dc, meta.ConditionFullySupported); !strings.Contains(got, "Lower electionNumber as well") {
			t.Errorf("FullySupported is %q", got)
		}
	})
	t.Run("observers that are followers in truth are held too", func(t *testing.T) {
		w := memberCluster(t, fiveByOne)
		w.db.frontends[4].Role = "FOLLOWER"
		w.frontendsWanted(3)
		w.now = w.now.Add(time.Hour)
		w.lives()
		w.statements(t)
		w.approveFewer()
		w.lives()
		w.statements(t, "DROP OBSERVER doris-fe-3", "DROP FOLLOWER doris-fe-4")
		w.onlyFrontends(t, fiveFrontends[:3]...)
	})
	t.Run("wanted again on the way: the one that is out joins anew", func(t *testing.T) {
		w := memberCluster(t, fiveFollowers)
		w.fewerFollowers(3)
		w.lives()
		w.approveFewer()
		for len(w.db.statements) == 0 {
			w.reconcile()
			w.db.goesOn()
		}
		w.fewerFollowers(5)
		w.lives()
		w.onlyFrontends(t, fiveFrontends...)
		w.statements(t, "DROP FOLLOWER doris-fe-4")
	})
	t.Run("wanted again after its Pod was replaced as that of a master: it joins anew", func(t *testing.T) {
		w := memberCluster(t, fiveByOne)
		w.db.frontends[4].Role = "FOLLOWER"
		w.db.frontends[0].IsMaster, w.db.frontends[4].IsMaster = false, true
		w.db.prefers = "doris-fe-1"
		w.now = w.now.Add(time.Hour)
		w.lives()
		w.frontendsWanted(3) // which changes no template, so that nothing else replaces Pods
		w.lives()
		w.approveFewer()
		for !slices.Contains(w.db.statements, "DROP FOLLOWER doris-fe-4") {
			w.reconcile()
			w.controllers()
			w.kubelet()
			w.db.goesOn()
			w.now = w.now.Add(6 * time.Second)
		}
		w.frontendsWanted(5)
		w.lives()
		w.onlyFrontends(t, fiveFrontends...)
	})
	t.Run("one whose Pod is made again joins anew, is taken out again, and so is what it has on its volume", func(t *testing.T) {
		w := memberCluster(t, fiveFollowers)
		w.fewerFollowers(3)
		w.lives()
		w.approveFewer()
		retired := func() string { return object(w, "doris-fe-bootstrap", &corev1.ConfigMap{}).Data["retired-4"] }
		for retired() == "" {
			w.reconcile()
			w.db.goesOn()
		}
		first := retired()
		w.lose("doris-fe-4")
		w.controllers()
		w.kubelet()
		w.db.goesOn()
		w.lives()
		w.statements(t, "DROP FOLLOWER doris-fe-4", "DROP OBSERVER doris-fe-4", "DROP FOLLOWER doris-fe-3")
		w.onlyFrontends(t, fiveFrontends[:3]...)
		if got := retired(); got == first || got == "" {
			t.Errorf("its metadata is put aside by %q, and was by %q before it joined anew", got, first)
		}
	})
	for role, says := range map[string]string{"OBSERVER": "DROP OBSERVER doris-fe-4", "FOLLOWER": "DROP FOLLOWER doris-fe-4"} {
		t.Run("one that joins anew as the set shrinks is taken out when its Pod is gone: "+role, func(t *testing.T) {
			w := memberCluster(t, fiveFollowers)
			w.fewerFollowers(3)
			w.lives()
			w.approveFewer()
			for *w.set("doris-fe").Spec.Replicas != 3 {
				w.reconcile()
				w.db.goesOn()
				w.kubelet()
				w.now = w.now.Add(6 * time.Second)
			}
			w.reconcile() // nothing is known of it yet
			w.db.frontends = append(w.db.frontends, client.Frontend{Host: hostOf("doris-fe-4"), EditLogPort: 9010, Role: role, Alive: true})
			w.lives()
			w.statements(t, "DROP FOLLOWER doris-fe-4", "DROP FOLLOWER doris-fe-3", says)
			w.onlyFrontends(t, fiveFrontends[:3]...)
			if text := w.set("doris-fe").Annotations[meta.AnnotationLeaving]; text != "" {
				t.Errorf("still remembered is %s", text)
			}
		})
	}
}

// TestFollowersLeaveWheneverItIsKilled kills the operator at every write and call, with
// a master that leaves.
func TestFollowersLeaveWheneverItIsKilled(t *testing.T) {
	t.Parallel()
	killedEverywhere(t, 12, func() *world {
		w := memberCluster(t, strings.Replace(fiveByOne, "replicas: 5, electionNumber: 3", "replicas: 3, electionNumber: 3", 1))
		w.db.frontends[0].IsMaster, w.db.frontends[2].IsMaster = false, true
		w.db.prefers = "doris-fe-0"
		w.fewerFollowers(1)
		w.lives()
		w.approveFewer()
		return w
	}, func(w *world) {
		w.now = w.now.Add(time.Second)
		w.lives()
		w.onlyFrontends(t, "doris-fe-0")
		w.statements(t, "DROP FOLLOWER doris-fe-1", "DROP FOLLOWER doris-fe-2")
	})
}

// TestKeepsQuorum holds what is asked of the master right before a follower goes.
func TestKeepsQuorum(t *testing.T) {
	t.Parallel()
	row := func(host, role string, alive, master bool) client.Frontend {
		return client.Frontend{Host: host, EditLogPort: 9010, Role: role, Alive: alive, IsMaster: master}
	}
	for _, tc := range []struct {
		name      string
		frontends []client.Frontend
		least     int
		needed    bool
		says      string
	}{
		{"all answer", []client.Frontend{row("a", "FOLLOWER", true, true), row("b", "FOLLOWER", true, false), row("x", "FOLLOWER", true, false)}, 2, true, ""},
		{"it is gone", []client.Frontend{row("a", "FOLLOWER", true, true)}, 1, false, ""},
		{"it is master by now", []client.Frontend{row("a", "FOLLOWER", true, false), row("b", "FOLLOWER", true, false), row("x", "FOLLOWER", true, true)}, 1, false, "is the master now"},
		{"it is an observer", []client.Frontend{row("a", "FOLLOWER", true, true), row("x", "OBSERVER", true, false)}, 1, false, "is no follower but an observer"},
		{"too few would be left", []client.Frontend{row("a", "FOLLOWER", true, true), row("b", "FOLLOWER", true, false), row("x", "FOLLOWER", true, false)}, 3, false, "2 followers would be left, and electionNumber asks for 3"},
		{"no majority would be left", []client.Frontend{row("a", "FOLLOWER", true, true), row("b", "FOLLOWER", false, false), row("x", "FOLLOWER", true, false)}, 1, false, "of the 2 followers that would be left only 1 answer"},
		{"observers do not count", []client.Frontend{row("a", "FOLLOWER", true, true), row("o", "OBSERVER", false, false), row("x", "FOLLOWER", false, false)}, 1, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := changeMember{change: client.DropFollower, member: client.Node{Host: "x", Port: 9010}, followers: tc.least}
			needed, err := o.needed(membersAnswer{frontends: tc.frontends})
			if needed != tc.needed || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("needed: %t, %v", needed, err)
			}
		})
	}
}
