package fe

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/sqlparse"
	"github.com/fairlead-dev/fairlead/test/dorissim/wire"
)

// defaultBuckets is the number of tablets of a table whose statement names none.
const defaultBuckets = 10

func (s *session) databases() []string {
	var out []string
	for name := range s.node.quorum.View().Databases {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

func (s *session) tables(st sqlparse.Show) (*answer, error) {
	db, err := s.lookup(s.node.quorum.View(), sqlparse.Name{Database: st.Arg})
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range db.Tables {
		names = append(names, name)
	}
	sort.Strings(names)
	return named("Tables_in_"+db.Name, names, st.Like), nil
}

// lookup finds the database of a name, or the session's.
func (s *session) lookup(state *meta.State, name sqlparse.Name) (*meta.Database, error) {
	database := name.Database
	if database == "" {
		database = s.database
	}
	if database == "" {
		return nil, mysql.NewDefaultError(mysql.ER_NO_DB_ERROR)
	}
	db, ok := state.Databases[database]
	if !ok {
		return nil, mysql.NewDefaultError(mysql.ER_BAD_DB_ERROR, database)
	}
	return db, nil
}

func (s *session) lookupTable(state *meta.State, name sqlparse.Name) (*meta.Database, *meta.Table, error) {
	db, err := s.lookup(state, name)
	if err != nil {
		return nil, nil, err
	}
	t, ok := db.Tables[name.Table]
	if !ok {
		return nil, nil, mysql.NewDefaultError(mysql.ER_NO_SUCH_TABLE, db.Name, name.Table)
	}
	return db, t, nil
}

func (s *session) ddl(statement sqlparse.Statement) (*answer, error) {
	if st, ok := statement.(sqlparse.CreateTable); ok {
		return s.createTable(st)
	}
	var gone []meta.Placed
	a, err := s.propose(func(state *meta.State) error {
		var err error
		switch st := statement.(type) {
		case sqlparse.CreateDatabase:
			err = createDatabase(state, st)
		case sqlparse.DropDatabase:
			gone, err = dropDatabase(state, st)
		case sqlparse.DropTable:
			gone, err = s.dropTable(state, st)
		}
		return err
	})
	for _, p := range gone {
		s.node.dropReplicas(s.ctx, p.Tablet, p.Tablet.Replicas)
	}
	return a, err
}

func createDatabase(state *meta.State, st sqlparse.CreateDatabase) error {
	if _, ok := state.Databases[st.Name]; ok {
		if st.IfNotExists {
			return nil
		}
		return mysql.NewDefaultError(mysql.ER_DB_CREATE_EXISTS, st.Name)
	}
	state.Databases[st.Name] = &meta.Database{ID: state.ID(), Name: st.Name, Tables: map[string]*meta.Table{}}
	return nil
}

func dropDatabase(state *meta.State, st sqlparse.DropDatabase) ([]meta.Placed, error) {
	db, ok := state.Databases[st.Name]
	if !ok {
		if st.IfExists {
			return nil, nil
		}
		return nil, mysql.NewDefaultError(mysql.ER_DB_DROP_EXISTS, st.Name)
	}
	var gone []meta.Placed
	for _, p := range state.Tablets() {
		if p.Database == db {
			gone = append(gone, p)
		}
	}
	delete(state.Databases, st.Name)
	return gone, nil
}

func (s *session) dropTable(state *meta.State, st sqlparse.DropTable) ([]meta.Placed, error) {
	db, t, err := s.lookupTable(state, st.Name)
	if err != nil {
		if st.IfExists && db == nil {
			return nil, nil
		}
		return nil, err
	}
	var gone []meta.Placed
	for _, tablet := range t.Tablets {
		gone = append(gone, meta.Placed{Database: db, Table: t, Tablet: tablet})
	}
	delete(db.Tables, t.Name)
	return gone, nil
}

// createTable places the tablets on backends, makes their replicas there, and then tells the metadata.
func (s *session) createTable(st sqlparse.CreateTable) (*answer, error) {
	copies, err := replicationNum(st.Properties)
	if err != nil {
		return nil, err
	}
	s.node.making.Add(1)
	defer s.node.making.Add(-1)
	var t *meta.Table
	existed := false
	_, err = s.propose(func(state *meta.State) error {
		db, err := s.lookup(state, st.Name)
		if err != nil {
			return err
		}
		if _, ok := db.Tables[st.Name.Table]; ok {
			existed = true
			if st.IfNotExists {
				return nil
			}
			return mysql.NewDefaultError(mysql.ER_TABLE_EXISTS_ERROR, st.Name.Table)
		}
		t, err = s.node.layOut(state, st, copies)
		return err
	})
	if err != nil || existed {
		return nil, err
	}
	for _, tablet := range t.Tablets {
		for _, id := range tablet.Replicas {
			if err := s.node.onBackend(s.ctx, id, wire.PathCreate, wire.Tablet{ID: tablet.ID, Version: 1}); err != nil {
				return nil, fmt.Errorf("create tablet %d on backend %d: %w", tablet.ID, id, err)
			}
			s.node.seen.wrote(id, tablet.ID, 1)
		}
	}
	return s.propose(func(state *meta.State) error {
		db, err := s.lookup(state, st.Name)
		if err != nil {
			return err
		}
		db.Tables[t.Name] = t
		return nil
	})
}

func replicationNum(properties map[string]string) (int, error) {
	text, ok := properties["replication_num"]
	if !ok {
		if text, ok = properties["replication_allocation"]; ok {
			text = text[strings.LastIndexByte(text, ':')+1:]
		} else {
			return 3, nil
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("invalid replication_num %q", text)
	}
	return n, nil
}

// layOut plans a table: each tablet on the live backends that have the fewest.
func (n *Node) layOut(state *meta.State, st sqlparse.CreateTable, copies int) (*meta.Table, error) {
	t := &meta.Table{ID: state.ID(), Name: st.Name.Table, ReplicationNum: copies, KeyColumn: st.HashColumn}
	for _, c := range st.Columns {
		t.Columns = append(t.Columns, meta.Column{Name: c.Name, Type: c.Type, Numeric: strings.HasSuffix(c.Type, "INT")})
	}
	load := map[int64]int{}
	for _, b := range state.Backends {
		if n.usable(b) {
			load[b.ID] = state.TabletsOn(b.ID)
		}
	}
	if len(load) < copies {
		return nil, fmt.Errorf("replication num should be less than the number of available backends. "+
			"replication num is %d, available backend num is %d", copies, len(load))
	}
	buckets := st.Buckets
	if buckets == 0 {
		buckets = defaultBuckets
	}
	for range buckets {
		tablet := &meta.Tablet{ID: state.ID(), Version: 1}
		tablet.Replicas = leastLoaded(load, copies)
		for _, id := range tablet.Replicas {
			load[id]++
		}
		t.Tablets = append(t.Tablets, tablet)
	}
	return t, nil
}

func leastLoaded(load map[int64]int, n int) []int64 {
	ids := make([]int64, 0, len(load))
	for id := range load {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool {
		if load[ids[i]] != load[ids[j]] {
			return load[ids[i]] < load[ids[j]]
		}
		return ids[i] < ids[j]
	})
	ids = ids[:n]
	slices.Sort(ids)
	return ids
}

// usable tells whether new replicas may go to a backend.
func (n *Node) usable(b meta.Backend) bool {
	st := n.seen.backend(b.ID)
	return st.Alive && !st.Info.Shutdown && !b.Decommissioned && !b.LoadDisabled && st.Info.NodeRole != "computation"
}
