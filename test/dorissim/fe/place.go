package fe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/quorum"
)

// takePlace decides what this start is: a restart, the first frontend of a new cluster, or a new member.
//
//	image/ROLE exists ──► restart with the metadata that is there
//	no helper         ──► a new cluster, with this frontend as its only member
//	helper            ──► wait until the cluster's frontends know this one, then follow
func (n *Node) takePlace(ctx context.Context) error {
	role := filepath.Join(n.metaDir, "image", "ROLE")
	_, err := os.Stat(role)
	switch {
	case err == nil:
		if n.opt.Recover {
			return n.quorum.Recover()
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for the role: %w", err)
	case n.opt.Helper == "" || n.opt.Helper == n.self:
		return n.found(role)
	}
	return n.joinThrough(ctx, role)
}

// found starts a new cluster.
func (n *Node) found(role string) error {
	clusterID := 1 + int64(n.opt.Random()*float64(1<<30))
	name := fmt.Sprintf("fe_%08x", clusterID)
	first := meta.Frontend{Name: name, Host: n.opt.Host, EditLogPort: n.port("edit_log_port")}
	state := meta.New(clusterID, first, n.values.Text("initial_root_password", ""))
	if err := n.quorum.Bootstrap(state); err != nil {
		return err
	}
	n.opt.Log.Info("first frontend of a new cluster", "clusterId", clusterID)
	return n.writeRole(role, meta.Follower, name, clusterID)
}

// joinThrough waits for the cluster to know this frontend.
func (n *Node) joinThrough(ctx context.Context, role string) error {
	for {
		m, err := quorum.AskMembership(ctx, n.client, n.opt.Helper, n.self)
		if err == nil && m.Member {
			n.opt.Log.Info("joining", "helper", n.opt.Helper, "role", m.Role)
			return n.writeRole(role, m.Role, m.Name, m.ClusterID)
		}
		n.opt.Log.Info("current node is not added to the group. please add it first. sleep and retry",
			"self", n.self, "helper", n.opt.Helper, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// writeRole writes the two small files that entrypoints look for.
func (n *Node) writeRole(file, role, name string, clusterID int64) error {
	version := fmt.Sprintf("#dorissim\nclusterId=%d\n", clusterID)
	if err := quorum.WriteFile(filepath.Join(filepath.Dir(file), "VERSION"), []byte(version)); err != nil {
		return err
	}
	text := fmt.Sprintf("#dorissim\nhostname=%s\nname=%s\nrole=%s\n", n.opt.Host, name, role)
	return quorum.WriteFile(file, []byte(text))
}
