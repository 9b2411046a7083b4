package stories

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/fe"
	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// voting has five frontends that elect the master.
var voting = strings.Replace(strings.Replace(filled, "replicas: 1", "replicas: 5\n    electionNumber: 5", 1), "replicas: 3\n    image: \"apache/doris:be", "replicas: 1\n    image: \"apache/doris:be", 1)

// createsVoting makes the cluster, and writes rows when its frontends all vote.
func createsVoting(ctx context.Context, s *scene) error {
	if err := creates(voting)(ctx, s); err != nil {
		return err
	}
	if err := s.db.fill(ctx, 1); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return s.unelected(ctx, 5) == "", nil
	})
}

// unelected says what is missing until n frontends are left, all vote and answer, and
// the operator has seen it.
func (s *scene) unelected(ctx context.Context, n int) string {
	for _, want := range []struct{ column, value string }{{"Role", "FOLLOWER"}, {"Alive", "true"}} {
		got, err := s.db.column(ctx, "SHOW FRONTENDS", want.column)
		if err != nil || len(got) != n || slices.ContainsFunc(got, func(v string) bool { return !strings.EqualFold(v, want.value) }) {
			return fmt.Sprintf("of %d frontends %s is %v, %v", n, want.column, got, err)
		}
	}
	dc, err := s.doris(ctx)
	if err != nil {
		return err.Error()
	}
	now := dc.Status.FeStatus
	if now == nil || len(now.FollowerInstances) != n {
		return fmt.Sprintf("of %d frontends are seen to vote: %+v", n, now)
	}
	if master, err := s.db.master(ctx); err != nil || master != now.MasterInstance {
		return fmt.Sprintf("%q is master, %v, and %q is seen as that", master, err, now.MasterInstance)
	}
	return ""
}

// master is the Pod of the frontend that is master.
func (d *database) master(ctx context.Context) (string, error) {
	hosts, err := d.column(ctx, "SHOW FRONTENDS", "Host")
	if err != nil {
		return "", err
	}
	is, err := d.column(ctx, "SHOW FRONTENDS", "IsMaster")
	if i := slices.Index(is, "true"); err == nil && i >= 0 && i < len(hosts) {
		pod, _, _ := strings.Cut(hosts[i], ".")
		return pod, nil
	}
	return "", err
}

// electing says what is missing until n frontends are left that elect the master, and
// every row is there.
func electing(n int) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := holdsAll(1)(ctx, s); missing != "" {
			return missing
		}
		return s.unelected(ctx, n)
	}
}

// wantsFollowers wants fewer frontends that vote, and consents when that is held.
func wantsFollowers(n int32) func(context.Context, *scene) error {
	return inTurn(edits(func(dc *dorisv1.DorisCluster) {
		dc.Spec.FeSpec.Replicas, dc.Spec.FeSpec.ElectionNumber = &n, &n
	}), func(ctx context.Context, s *scene) error {
		s.op.launch() // it is waited for, also if it was killed before the act
		return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			dc, err := s.doris(ctx)
			if err != nil {
				return false, err
			}
			return apimeta.IsStatusConditionTrue(dc.Status.Conditions, meta.ConditionChangePending), nil
		})
	}, approves)
}

// registersAnew waits until a follower is out of the database, and takes its Pod away:
// the next one has its metadata put aside, and joins as a new frontend.
func registersAnew(ctx context.Context, s *scene) error {
	s.op.launch()
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		hosts, err := s.db.column(ctx, "SHOW FRONTENDS", "Host")
		return err == nil && len(hosts) > 0 && !slices.Contains(hosts, s.db.host("doris-fe-4", "fe")), nil
	})
	if err != nil {
		return err
	}
	return loses("doris-fe-4")(ctx, s)
}

// claimsOfVoting are the claims of the cluster whose frontends vote: those of frontends
// that left are kept.
var claimsOfVoting = []string{"data-doris-be-0", "meta-doris-fe-0", "meta-doris-fe-1", "meta-doris-fe-2", "meta-doris-fe-3", "meta-doris-fe-4"}

var (
	followersLeave = tale{
		name: "scale-in of followers from 5+1 to 3+1", database: true, setup: createsVoting, act: wantsFollowers(3),
		unsettled: withClaims(electing(3), claimsOfVoting...), replaced: 2, // for electionNumber, and as a master that leaves
	}
	followerRegistersAnew = tale{
		name: "scale-in of followers from 5+1 to 3+1, one of which joins again", database: true, setup: createsVoting,
		act:       inTurn(wantsFollowers(3), registersAnew),
		unsettled: withClaims(electing(3), claimsOfVoting...), replaced: 3,
	}
)

// follower is a frontend that votes, with what is on its volume.
type follower struct {
	node *local.FE
	runs bool
	pod  types.UID // that it runs in; none yet, if the first one came before its Pod
	// since is when it ended. A real one takes longer to start than the others to elect.
	since time.Time
}

// absence is how long a frontend that ended stays away.
const absence = 6 * time.Second

// calmPace has frontends elect another master when the one that they have is gone, and
// not because the machine has much to do: which one it is would be news at any time.
func calmPace() fe.Pace {
	pace := local.FastPace
	pace.Quorum.ElectionMin, pace.Quorum.ElectionMax = 2500*time.Millisecond, 5*time.Second
	return pace
}

// ends stops the process, as the end of its Pod does.
func (f *follower) ends() {
	if f.runs && f.pod != "" {
		_ = f.node.Stop() // one that was dropped has ended with an error
		f.runs, f.since = false, time.Now()
	}
}

// elects tells whether the entrypoint of a frontend's Pod would make it a follower.
func elects(p *corev1.Pod) bool {
	ordinal, err := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	if err != nil || ordinal == 0 {
		return err == nil
	}
	for _, v := range p.Spec.Containers[0].Env {
		if n, err := strconv.Atoi(v.Value); v.Name == "ELECT_NUMBER" && err == nil {
			return ordinal < n
		}
	}
	return false
}

// follows runs the frontend of a Pod and registers it. Metadata of one that was dropped
// is put aside, as the init container does.
func (d *database) follows(ctx context.Context, p *corev1.Pod) error {
	f := d.followers[p.Name]
	if f == nil {
		node, err := d.cluster.NewFE("")
		if err != nil {
			return err
		}
		node.Host = d.host(p.Name, "fe")
		f = &follower{node: node}
		d.followers[p.Name] = f
	}
	if f.pod != p.UID {
		f.ends()
	}
	f.pod = p.UID
	switch {
	case f.runs, time.Since(f.since) < absence:
		return nil
	case f.node == d.first:
		d.mu.Lock()
		defer d.mu.Unlock()
		err := f.node.Start(ctx, "")
		f.runs = err == nil
		return err
	}
	hosts, err := d.column(ctx, "SHOW FRONTENDS", "Host")
	if err != nil {
		return nil // tried again at once
	}
	if !slices.Contains(hosts, f.node.Host) {
		if err := os.RemoveAll(filepath.Join(f.node.Home, "doris-meta")); err != nil {
			return err
		}
		role := "OBSERVER"
		if elects(p) {
			role = "FOLLOWER"
		}
		if err := d.insists(ctx, fmt.Sprintf("ALTER SYSTEM ADD %s %q", role, f.node.Addr())); err != nil {
			return err
		}
	}
	err = f.node.Start(ctx, d.first.Addr())
	f.runs = err == nil
	return err
}
