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
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
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
const absence = 4 * time.Second

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
		if err := d.insists(ctx, fmt.Sprintf("ALTER SYSTEM ADD FOLLOWER %q", f.node.Addr())); err != nil {
			return err
		}
	}
	err = f.node.Start(ctx, d.first.Addr())
	f.runs = err == nil
	return err
}
