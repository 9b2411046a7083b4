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
	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// follower is a frontend that votes, with what is on its volume.
type follower struct {
	node *local.FE
	runs bool
	pod  types.UID // that it runs in; none yet, if the first one came before its Pod
}

// ends stops the process, as the end of its Pod does.
func (f *follower) ends() {
	if f.runs && f.pod != "" {
		_ = f.node.Stop() // one that was dropped has ended with an error
		f.runs = false
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
	case f.runs:
		return nil
	case f.node == d.first:
		d.mu.Lock()
		defer d.mu.Unlock()
		f.runs = true
		return f.node.Start(ctx, "")
	}
	hosts, err := d.column(ctx, "SHOW FRONTENDS", "Host")
	if err != nil {
		return nil //nolint:nilerr // tried again at once
	}
	if !slices.Contains(hosts, f.node.Host) {
		if err := os.RemoveAll(filepath.Join(f.node.Home, "doris-meta")); err != nil {
			return err
		}
		if err := d.insists(ctx, fmt.Sprintf("ALTER SYSTEM ADD FOLLOWER %q", f.node.Addr())); err != nil {
			return err
		}
	}
	f.runs = true
	return f.node.Start(ctx, d.first.Addr())
}

// awaitsFrontends waits until so many frontends are alive.
func (d *database) awaitsFrontends(ctx context.Context, n int) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		alive, err := d.column(ctx, "SHOW FRONTENDS", "Alive")
		return err == nil && len(alive) == n && !slices.Contains(alive, "false"), nil
	})
}

// electing has three frontends that vote.
var electing = strings.Replace(strings.Replace(filled, "replicas: 1", "replicas: 3\n    electionNumber: 3", 1), "replicas: 3\n    image: \"apache/doris:be", "replicas: 1\n    image: \"apache/doris:be", 1)

// followersLeave is the only story in which frontends are processes that elect.
var followersLeave = tale{
	name: "followers leave, 3+1 to 1+1", database: true, unsettled: frontendsLeft(1), replaced: 1, // by another ELECT_NUMBER
	setup: func(ctx context.Context, s *scene) error {
		if err := creates(electing)(ctx, s); err != nil {
			return err
		}
		if err := s.db.fill(ctx, 1); err != nil {
			return err
		}
		return s.db.awaitsFrontends(ctx, 3)
	},
	act: inTurn(edits(func(dc *dorisv1.DorisCluster) {
		dc.Spec.FeSpec.Replicas, dc.Spec.FeSpec.ElectionNumber = new(int32(1)), new(int32(1))
	}), agrees),
}

// agrees consents to what is held as soon as the operator says that something is.
func agrees(ctx context.Context, s *scene) error {
	s.op.launch()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		dc, err := s.doris(ctx)
		return err == nil && apimeta.IsStatusConditionTrue(dc.Status.Conditions, meta.ConditionChangePending), nil
	})
	if err != nil {
		return fmt.Errorf("nothing is held: %w", err)
	}
	return approves(ctx, s)
}
