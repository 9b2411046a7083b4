package fe

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/wire"
)

// tabletState is what is wrong with a tablet; the names are those of Doris's tablet scheduler.
type tabletState string

const (
	healthy           tabletState = "HEALTHY"
	replicaMissing    tabletState = "REPLICA_MISSING"
	versionIncomplete tabletState = "VERSION_INCOMPLETE"
	replicaRelocating tabletState = "REPLICA_RELOCATING"
	unrecoverable     tabletState = "UNRECOVERABLE"
)

// good lists the replicas that hold the visible version on a live backend.
func (n *Node) good(t *meta.Tablet) []int64 {
	var out []int64
	for _, id := range t.Replicas {
		if st := n.seen.backend(id); st.Alive && st.Info.Tablets[t.ID].Version >= t.Version {
			out = append(out, id)
		}
	}
	return out
}

func (n *Node) judge(state *meta.State, p meta.Placed) tabletState {
	if n.opt.Faults.Active(fault.UnhealthyTablets) {
		return versionIncomplete
	}
	good := n.good(p.Tablet)
	switch {
	case len(good) == 0:
		return unrecoverable
	case len(p.Tablet.Replicas) < p.Table.ReplicationNum:
		return replicaMissing
	case len(good) < len(p.Tablet.Replicas):
		return versionIncomplete
	}
	for _, b := range state.Backends {
		if b.Decommissioned && p.Tablet.On(b.ID) {
			return replicaRelocating
		}
	}
	return healthy
}

// schedule mends and moves tablets while this frontend is master, a few per round.
func (n *Node) schedule(ctx context.Context) {
	tick := time.NewTicker(n.opt.Pace.Schedule)
	defer tick.Stop()
	orphans := map[orphan]int{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		state := n.quorum.View()
		if state == nil || !n.quorum.Status().IsMaster {
			clear(orphans)
			continue
		}
		n.dropOrphans(ctx, state, orphans)
		if n.boolValue("disable_tablet_scheduler") {
			continue
		}
		n.round(ctx, state)
	}
}

func (n *Node) round(ctx context.Context, state *meta.State) {
	moves := n.opt.Pace.Moves
	for _, p := range state.Tablets() {
		if moves == 0 {
			return
		}
		kind := n.judge(state, p)
		if kind == healthy || kind == unrecoverable || n.opt.Faults.Active(fault.UnhealthyTablets) {
			continue
		}
		moved, err := n.mend(ctx, state, p, kind)
		if err != nil {
			n.opt.Log.Info("tablet not mended yet", "tablet", p.Tablet.ID, "state", kind, "error", err)
		}
		if moved {
			moves--
		}
	}
	n.dropDrained(ctx, state)
}

// mend does one step for one tablet and tells whether it copied something.
func (n *Node) mend(ctx context.Context, state *meta.State, p meta.Placed, kind tabletState) (bool, error) {
	ctx, cancel := n.bounded(ctx)
	defer cancel()
	switch kind {
	case versionIncomplete:
		// Writes wait meanwhile, so that the copy is not older than what a write has just added.
		n.writing.Lock()
		defer n.writing.Unlock()
		if now := n.tablet(p.Tablet.ID); now == nil || now.Version != p.Tablet.Version {
			return false, nil
		}
		good := n.good(p.Tablet)
		for _, id := range p.Tablet.Replicas {
			if n.seen.backend(id).Alive && !contains(good, id) {
				return true, n.copyTo(ctx, p.Tablet, id)
			}
		}
	case replicaMissing:
		return n.relocate(ctx, state, p, 0)
	case replicaRelocating:
		for _, b := range state.Backends {
			if b.Decommissioned && p.Tablet.On(b.ID) {
				return n.relocate(ctx, state, p, b.ID)
			}
		}
	}
	return false, nil
}

// tablet finds a tablet in the present metadata.
func (n *Node) tablet(id int64) *meta.Tablet {
	for _, p := range n.quorum.View().Tablets() {
		if p.Tablet.ID == id {
			return p.Tablet
		}
	}
	return nil
}

func contains(ids []int64, id int64) bool {
	return slices.Contains(ids, id)
}

// copyTo makes a backend's replica equal to a good one.
func (n *Node) copyTo(ctx context.Context, t *meta.Tablet, target int64) error {
	for _, source := range n.good(t) {
		if source == target {
			continue
		}
		addr, err := n.backendAddr(source, func(a wire.Alive) int { return a.BePort })
		if err != nil {
			continue
		}
		clone := wire.Clone{ID: t.ID, Version: t.Version, Source: addr}
		if err := n.onBackend(ctx, target, wire.PathClone, clone); err != nil {
			return err
		}
		n.seen.wrote(target, t.ID, t.Version)
		return nil
	}
	return fmt.Errorf("tablet %d has no good replica to copy", t.ID)
}

// relocate adds a replica on a backend without one and takes it away from another (0 for none).
func (n *Node) relocate(ctx context.Context, state *meta.State, p meta.Placed, from int64) (bool, error) {
	load := map[int64]int{}
	for _, b := range state.Backends {
		if n.usable(b) && !p.Tablet.On(b.ID) {
			load[b.ID] = n.quorum.View().TabletsOn(b.ID)
		}
	}
	if len(load) == 0 {
		return false, fmt.Errorf("tablet %d: no backend can take another replica", p.Tablet.ID)
	}
	target := leastLoaded(load, 1)[0]
	n.writing.Lock()
	defer n.writing.Unlock()
	if err := n.copyTo(ctx, p.Tablet, target); err != nil {
		return false, err
	}
	_, err := n.quorum.Propose(ctx, func(s *meta.State) error {
		for _, now := range s.Tablets() {
			if now.Tablet.ID == p.Tablet.ID {
				if now.Tablet.Version != p.Tablet.Version || s.Backend(addrOf(state, target)) == nil {
					return fmt.Errorf("tablet %d changed meanwhile", p.Tablet.ID)
				}
				now.Tablet.Replicas = append(now.Tablet.Without(from), target)
				slices.Sort(now.Tablet.Replicas)
				return nil
			}
		}
		return fmt.Errorf("tablet %d was dropped meanwhile", p.Tablet.ID)
	})
	if err == nil && from != 0 {
		n.dropReplicas(ctx, p.Tablet, []int64{from})
	}
	return true, err
}

func addrOf(state *meta.State, id int64) string {
	for _, b := range state.Backends {
		if b.ID == id {
			return b.Addr()
		}
	}
	return ""
}

// dropDrained removes backends that decommissioning has emptied, unless the configuration keeps them.
func (n *Node) dropDrained(ctx context.Context, state *meta.State) {
	if !n.boolValue("drop_backend_after_decommission") {
		return
	}
	for _, b := range state.Backends {
		if !b.Decommissioned || n.quorum.View().TabletsOn(b.ID) > 0 {
			continue
		}
		ctx, cancel := n.bounded(ctx)
		_, err := n.quorum.Propose(ctx, func(s *meta.State) error {
			now := s.Backend(b.Addr())
			if now == nil || !now.Decommissioned || s.TabletsOn(b.ID) > 0 {
				return fmt.Errorf("backend %s is not drained", b.Addr())
			}
			return s.DropBackend(b.Addr())
		})
		cancel()
		if err == nil {
			n.opt.Log.Info("decommissioned backend dropped", "backend", b.Addr())
		}
	}
}

type orphan struct{ backend, tablet int64 }

// orphanRounds is how many rounds a reported replica may be unknown to the metadata before it is dropped; one that is
// just being copied is unknown for a moment.
const orphanRounds = 30

func (n *Node) dropOrphans(ctx context.Context, state *meta.State, seen map[orphan]int) {
	if n.making.Load() > 0 { // backends report replicas that the metadata is still to be told of
		return
	}
	known := map[int64]*meta.Tablet{}
	for _, p := range state.Tablets() {
		known[p.Tablet.ID] = p.Tablet
	}
	for _, b := range state.Backends {
		for id := range n.seen.backend(b.ID).Info.Tablets {
			key := orphan{b.ID, id}
			if t := known[id]; t != nil && t.On(b.ID) {
				delete(seen, key)
				continue
			}
			if seen[key]++; seen[key] > orphanRounds {
				delete(seen, key)
				n.dropReplicas(ctx, &meta.Tablet{ID: id}, []int64{b.ID})
			}
		}
	}
}

// proc answers SHOW PROC for the paths that operators read.
func (s *session) proc(path string) *answer {
	switch path {
	case "/frontends":
		return s.showFrontends()
	case "/backends":
		return s.showBackends()
	case "/cluster_health/tablet_health":
		return s.tabletHealth()
	}
	return table("Name")
}

func (s *session) tabletHealth() *answer {
	a := table("DbId", "DbName", "TabletNum", "HealthyNum", "ReplicaMissingNum", "VersionIncompleteNum",
		"ReplicaRelocatingNum", "RedundantNum", "ReplicaMissingForTagNum", "ForceRedundantNum", "ColocateMismatchNum",
		"ColocateRedundantNum", "NeedFurtherRepairNum", "UnrecoverableNum", "ReplicaCompactionTooSlowNum",
		"InconsistentNum", "OversizeNum", "CloningNum")
	state := s.node.quorum.View()
	counts := map[string]map[tabletState]int{"Total": {}}
	for _, p := range state.Tablets() {
		kind := s.node.judge(state, p)
		if counts[p.Database.Name] == nil {
			counts[p.Database.Name] = map[tabletState]int{}
		}
		counts[p.Database.Name][kind]++
		counts["Total"][kind]++
	}
	names := s.databases()
	for _, name := range append(names, "Total") {
		c := counts[name]
		if c == nil {
			continue
		}
		id := "Total"
		if db := state.Databases[name]; db != nil {
			id = strconv.FormatInt(db.ID, 10)
		}
		total := c[healthy] + c[replicaMissing] + c[versionIncomplete] + c[replicaRelocating] + c[unrecoverable]
		a.row(id, name, itoa(total), itoa(c[healthy]), itoa(c[replicaMissing]), itoa(c[versionIncomplete]),
			itoa(c[replicaRelocating]), "0", "0", "0", "0", "0", "0", itoa(c[unrecoverable]), "0", "0", "0", "0")
	}
	return a
}
