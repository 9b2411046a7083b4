package fe

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/sqlparse"
	"github.com/fairlead-dev/fairlead/test/dorissim/wire"
)

// onBackend asks a backend's be_port.
func (n *Node) onBackend(ctx context.Context, id int64, path string, in any) error {
	addr, err := n.backendAddr(id, func(a wire.Alive) int { return a.BePort })
	if err != nil {
		return err
	}
	return wire.Service{Client: n.client, Addr: addr, Path: path}.Call(ctx, in, nil)
}

func (n *Node) backendAddr(id int64, port func(wire.Alive) int) (string, error) {
	st := n.seen.backend(id)
	for _, b := range n.quorum.View().Backends {
		if b.ID == id {
			if !st.Alive {
				return "", fmt.Errorf("backend %s is not alive: %s", b.Addr(), st.Err)
			}
			return meta.Addr(b.Host, port(st.Info)), nil
		}
	}
	return "", fmt.Errorf("backend %d does not exist", id)
}

// dropReplicas removes replicas that the metadata no longer names; a backend that does not answer removes them when
// it reports them later.
func (n *Node) dropReplicas(ctx context.Context, t *meta.Tablet, backends []int64) {
	for _, id := range backends {
		if err := n.onBackend(ctx, id, wire.PathDrop, wire.Tablet{ID: t.ID}); err != nil {
			n.opt.Log.Info("replica not dropped yet", "tablet", t.ID, "backend", id, "error", err)
		}
	}
}

// insert writes rows to the tablets that their keys fall into. A tablet's write holds if a majority of its replicas
// stored it; only then do readers see its new version.
func (s *session) insert(st sqlparse.Insert) (*answer, error) {
	s.node.writing.Lock()
	defer s.node.writing.Unlock()
	db, t, err := s.lookupTable(s.node.quorum.View(), st.Name)
	if err != nil {
		return nil, err
	}
	byTablet, err := distribute(t, st)
	if err != nil {
		return nil, err
	}
	for i, rows := range byTablet {
		if len(rows) == 0 {
			continue
		}
		if err := s.node.writeTablet(s.ctx, t.Tablets[i], rows); err != nil {
			return nil, err
		}
	}
	a, err := s.propose(func(state *meta.State) error {
		now, ok := state.Databases[db.Name]
		if !ok || now.Tables[t.Name] == nil || now.Tables[t.Name].ID != t.ID {
			return errors.New("the table was dropped during the insert")
		}
		for i, tablet := range now.Tables[t.Name].Tablets {
			if len(byTablet[i]) > 0 {
				tablet.Version++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.Affected = uint64(len(st.Rows))
	return a, nil
}

func (n *Node) writeTablet(ctx context.Context, t *meta.Tablet, rows [][]*string) error {
	written := 0
	var last error
	w := wire.Write{ID: t.ID, Version: t.Version + 1, Rows: rows}
	for _, id := range t.Replicas {
		if err := n.onBackend(ctx, id, wire.PathWrite, w); err != nil {
			last = err
			continue
		}
		n.seen.wrote(id, t.ID, w.Version)
		written++
	}
	if written <= len(t.Replicas)/2 {
		return fmt.Errorf("failed to write tablet %d: %d of %d replicas succeeded, the majority is needed: %w",
			t.ID, written, len(t.Replicas), last)
	}
	return nil
}

// distribute puts rows in the order of the table's columns and spreads them by the hash of the key column.
func distribute(t *meta.Table, st sqlparse.Insert) ([][][]*string, error) {
	order, err := columnOrder(t, st.Columns)
	if err != nil {
		return nil, err
	}
	key := max(columnIndex(t, t.KeyColumn), 0)
	out := make([][][]*string, len(t.Tablets))
	for _, in := range st.Rows {
		if len(in) != len(order) {
			return nil, fmt.Errorf("Column count doesn't match value count: %d values for %d columns", len(in), len(order)) //nolint:staticcheck // the text is the server's
		}
		row := make([]*string, len(t.Columns))
		for i, v := range in {
			if t.Columns[order[i]].Numeric && v != nil {
				if _, err := strconv.ParseInt(*v, 10, 64); err != nil {
					return nil, fmt.Errorf("column %s takes whole numbers, not %q", t.Columns[order[i]].Name, *v)
				}
			}
			row[order[i]] = v
		}
		h := fnv.New32a()
		if row[key] != nil {
			_, _ = h.Write([]byte(*row[key]))
		}
		i := int(h.Sum32() % uint32(len(t.Tablets)))
		out[i] = append(out[i], row)
	}
	return out, nil
}

func columnOrder(t *meta.Table, names []string) ([]int, error) {
	if names == nil {
		for _, c := range t.Columns {
			names = append(names, c.Name)
		}
	}
	order := make([]int, len(names))
	for i, name := range names {
		if order[i] = columnIndex(t, name); order[i] < 0 {
			return nil, fmt.Errorf("Unknown column '%s' in '%s'", name, t.Name) //nolint:staticcheck // the text is the server's
		}
	}
	return order, nil
}

func columnIndex(t *meta.Table, name string) int {
	for i, c := range t.Columns {
		if c.Name == name {
			return i
		}
	}
	return -1
}

// scan reads all rows of a table, each tablet from the first replica that has the version.
func (n *Node) scan(ctx context.Context, t *meta.Table) ([][]*string, error) {
	var out [][]*string
	for _, tablet := range t.Tablets {
		rows, err := n.scanTablet(ctx, tablet)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

func (n *Node) scanTablet(ctx context.Context, t *meta.Tablet) ([][]*string, error) {
	disabled := map[int64]bool{}
	for _, b := range n.quorum.View().Backends {
		disabled[b.ID] = b.QueryDisabled
	}
	ids := append([]int64{}, t.Replicas...)
	slices.Sort(ids)
	last := errors.New("no replica is left")
	for _, id := range ids {
		if disabled[id] || n.seen.backend(id).Info.Shutdown {
			last = fmt.Errorf("backend %d is disabled or shuts down", id)
			continue
		}
		addr, err := n.backendAddr(id, func(a wire.Alive) int { return a.BrpcPort })
		if err != nil {
			last = err
			continue
		}
		var rows [][]*string
		err = wire.Service{Client: n.client, Addr: addr, Path: wire.PathScan}.Call(ctx, wire.Tablet{ID: t.ID, Version: t.Version}, &rows)
		if err == nil {
			return rows, nil
		}
		last = err
	}
	return nil, fmt.Errorf("tablet %d has no queryable replicas: %w", t.ID, last)
}
