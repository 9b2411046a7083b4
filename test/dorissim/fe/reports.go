package fe

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/wire"
)

// FrontendStatus is what a frontend says about itself.
type FrontendStatus struct {
	Alive                               bool
	HTTPPort, QueryPort, RPCPort, Arrow int
	Version, Err                        string
	StartMs, HeardMs                    int64
	Replayed                            uint64
}

// BackendStatus is what the master knows of a backend by its heartbeats.
type BackendStatus struct {
	Alive    bool
	HeardMs  int64
	Failures int
	Err      string
	Info     wire.Alive
}

// reports is the part of the cluster's knowledge that is not metadata: it is gathered by the master and passed on to
// the other frontends with the metadata's heartbeats, so that each of them answers SHOW statements.
type reports struct {
	mu        sync.Mutex
	frontends map[string]FrontendStatus
	backends  map[int64]BackendStatus
}

type told struct {
	Frontends map[string]FrontendStatus
	Backends  map[int64]BackendStatus
}

func (r *reports) init() {
	r.frontends, r.backends = map[string]FrontendStatus{}, map[int64]BackendStatus{}
}

func (r *reports) backend(id int64) BackendStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backends[id]
}

func (r *reports) setBackend(id int64, s BackendStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backends[id] = s
}

// wrote notes a replica's new version before the backend's next report.
func (r *reports) wrote(id, tablet, version int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.backends[id]
	tablets := make(map[int64]wire.Replica, len(s.Info.Tablets)+1)
	maps.Copy(tablets, s.Info.Tablets)
	tablets[tablet] = wire.Replica{Version: version, Bytes: tablets[tablet].Bytes}
	s.Info.Tablets = tablets
	r.backends[id] = s
}

func (n *Node) own() FrontendStatus {
	now := n.opt.Now().UnixMilli()
	return FrontendStatus{
		Alive: true, HTTPPort: n.port("http_port"), QueryPort: n.port("query_port"), RPCPort: n.port("rpc_port"),
		Arrow: n.intValue("arrow_flight_sql_port", -1), Version: n.opt.Version, StartMs: n.start.UnixMilli(), HeardMs: now,
	}
}

// report is this frontend's answer to the master's metadata heartbeat; the quorum's lock is held, so it asks nothing
// of the quorum.
func (n *Node) report() json.RawMessage {
	b, err := json.Marshal(n.own())
	if err != nil {
		return nil
	}
	return b
}

// tell is what the master passes on.
func (n *Node) tell() json.RawMessage {
	frontends := n.frontendStatus()
	n.seen.mu.Lock()
	defer n.seen.mu.Unlock()
	b, err := json.Marshal(told{Frontends: frontends, Backends: n.seen.backends})
	if err != nil {
		return nil
	}
	return b
}

// hear takes over what the master passes on.
func (n *Node) hear(b json.RawMessage) {
	var t told
	if err := json.Unmarshal(b, &t); err != nil {
		n.opt.Log.Warn("unreadable report of the master", "error", err)
		return
	}
	n.seen.mu.Lock()
	defer n.seen.mu.Unlock()
	n.seen.frontends, n.seen.backends = t.Frontends, t.Backends
	if n.seen.backends == nil {
		n.seen.backends = map[int64]BackendStatus{}
	}
}

// frontendStatus is the master's own view, or on another frontend what the master told.
func (n *Node) frontendStatus() map[string]FrontendStatus {
	out := map[string]FrontendStatus{}
	status := n.quorum.Status()
	if !status.IsMaster {
		n.seen.mu.Lock()
		for addr, s := range n.seen.frontends {
			if status.Master == "" {
				s.Alive = false // nobody vouches for it
			}
			out[addr] = s
		}
		n.seen.mu.Unlock()
		out[n.self] = n.own()
		return out
	}
	for addr, p := range n.quorum.Peers() {
		var s FrontendStatus
		if p.Report != nil {
			_ = json.Unmarshal(p.Report, &s)
		}
		s.Alive, s.Err, s.Replayed = p.Alive, p.Err, p.Version
		if !p.Heard.IsZero() {
			s.HeardMs = p.Heard.UnixMilli()
		}
		out[addr] = s
	}
	self := n.own()
	self.Replayed = status.Version
	out[n.self] = self
	return out
}

// heartbeats asks each backend how it is, while this frontend is master.
func (n *Node) heartbeats(ctx context.Context) {
	tick := time.NewTicker(n.opt.Pace.Heartbeat)
	defer tick.Stop()
	busy := map[int64]bool{}
	done := make(chan int64, 64)
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-done:
			delete(busy, id)
			continue
		case <-tick.C:
		}
		state := n.quorum.View()
		if !n.quorum.Status().IsMaster || state == nil {
			continue
		}
		for _, b := range state.Backends {
			if busy[b.ID] {
				continue
			}
			busy[b.ID] = true
			go func() {
				n.heartbeat(ctx, state.ClusterID, b)
				select {
				case done <- b.ID:
				case <-ctx.Done():
				}
			}()
		}
	}
}

func (n *Node) heartbeat(ctx context.Context, clusterID int64, b meta.Backend) {
	ctx, cancel := context.WithTimeout(ctx, 3*n.opt.Pace.Heartbeat)
	defer cancel()
	var alive wire.Alive
	in := wire.Heartbeat{ClusterID: clusterID, BackendID: b.ID, Master: n.self}
	err := wire.Service{Client: n.client, Addr: b.Addr(), Path: wire.PathHeartbeat}.Call(ctx, in, &alive)
	if ctx.Err() != nil && err == nil {
		return
	}
	before := n.seen.backend(b.ID)
	if err == nil && alive.Error == "" {
		n.seen.setBackend(b.ID, BackendStatus{Alive: true, HeardMs: n.opt.Now().UnixMilli(), Info: alive})
		return
	}
	before.Failures++
	before.Alive, before.Err = false, alive.Error
	if err != nil {
		before.Err = err.Error()
	}
	n.seen.setBackend(b.ID, before)
}
