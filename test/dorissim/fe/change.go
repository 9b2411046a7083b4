package fe

import (
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/sqlparse"
)

// change executes a statement that changes shared state; this frontend is the master.
func (s *session) change(statement sqlparse.Statement) (*answer, error) {
	switch st := statement.(type) {
	case sqlparse.AlterSystem:
		return s.alterSystem(st)
	case sqlparse.CreateUser, sqlparse.DropUser, sqlparse.Grant, sqlparse.SetPassword:
		return s.account(st)
	case sqlparse.CreateDatabase, sqlparse.DropDatabase, sqlparse.CreateTable, sqlparse.DropTable:
		if err := s.must("Admin_priv", "Create_priv"); err != nil {
			return nil, err
		}
		return s.ddl(st)
	case sqlparse.Insert:
		if err := s.must("Admin_priv", "Load_priv"); err != nil {
			return nil, err
		}
		return s.insert(st)
	}
	return nil, fmt.Errorf("unsupported statement %T", statement)
}

// propose changes the metadata and reports its new version.
func (s *session) propose(change func(*meta.State) error) (*answer, error) {
	state, err := s.node.quorum.Propose(s.ctx, change)
	if err != nil {
		return nil, err
	}
	return &answer{Version: state.Version}, nil
}

func (s *session) alterSystem(st sqlparse.AlterSystem) (*answer, error) {
	if err := s.must("Node_priv"); err != nil {
		return nil, err
	}
	known := s.node.frontendStatus() // not from within the change, which holds a lock
	if err := s.checkTags(&st); err != nil {
		return nil, err
	}
	return s.propose(func(state *meta.State) error {
		for _, addr := range st.Addrs {
			if st.Op == sqlparse.DropFollower {
				if err := mayLose(state, known, addr); err != nil {
					return err
				}
			}
			if err := s.alterNode(state, st, addr); err != nil {
				return err
			}
		}
		return nil
	})
}

// endpointsSince is the version from which a frontend knows the tags of endpoints.
const endpointsSince = "3.1.0"

// checkTags tells what is wrong with the tags in a statement. A backend that is added
// gets the location by itself.
func (s *session) checkTags(st *sqlparse.AlterSystem) error {
	rules := meta.TagRules{Endpoints: AtLeast(s.node.opt.Version, endpointsSince), Multi: s.node.value("enable_multi_tags") == "true"}
	tags := meta.TagsIn(st.Properties)
	if tags != nil && tags["location"] == "" && st.Op == sqlparse.AddBackend && rules.Endpoints {
		tags["location"], st.Properties["tag.location"] = "default", "default"
	}
	return rules.Check(tags)
}

func (s *session) alterNode(state *meta.State, st sqlparse.AlterSystem, addr string) error {
	switch st.Op {
	case sqlparse.AddFollower:
		return state.AddFrontend(meta.Follower, addr)
	case sqlparse.AddObserver:
		return state.AddFrontend(meta.Observer, addr)
	case sqlparse.DropFollower:
		return state.DropFrontend(meta.Follower, addr, s.node.self)
	case sqlparse.DropObserver:
		return state.DropFrontend(meta.Observer, addr, s.node.self)
	case sqlparse.AddBroker:
		return state.AddBroker(st.Name, addr)
	case sqlparse.DropBroker:
		return state.DropBroker(st.Name, addr)
	}
	return alterBackend(state, st, addr)
}

func alterBackend(state *meta.State, st sqlparse.AlterSystem, addr string) error {
	switch st.Op {
	case sqlparse.AddBackend:
		if err := state.AddBackend(addr, nil); err != nil {
			return err
		}
		return state.ModifyBackend(addr, st.Properties)
	case sqlparse.DropBackend:
		return meta.ErrDropNotSafe
	case sqlparse.ForceDropBackend:
		return state.DropBackend(addr)
	case sqlparse.Decommission:
		return state.Decommission(addr, true)
	case sqlparse.CancelDecommiss:
		return state.Decommission(addr, false)
	case sqlparse.ModifyBackend:
		return state.ModifyBackend(addr, st.Properties)
	}
	return fmt.Errorf("unsupported operation %s", st.Op)
}

// mayLose refuses to drop a follower that answers where those that answer then are no
// more than the majority that would be needed.
func mayLose(state *meta.State, known map[string]FrontendStatus, addr string) error {
	followers, alive := 0, 0
	for _, f := range state.Frontends {
		if f.Role != meta.Follower {
			continue
		}
		followers++
		if known[f.Addr()].Alive {
			alive++
		}
	}
	if f, ok := state.Frontend(addr); !ok || f.Role != meta.Follower || !known[addr].Alive {
		return nil
	}
	if majority := (followers-1)/2 + 1; majority+1 > alive {
		return fmt.Errorf("Unable to drop this alive follower, because the quorum requirements are not met after this command execution. "+ //nolint:staticcheck // the text is the server's
			"Current num alive followers %d, num followers %d, majority after execution %d", alive, followers, majority)
	}
	return nil
}

func (s *session) account(statement sqlparse.Statement) (*answer, error) {
	if st, ok := statement.(sqlparse.SetPassword); !ok || st.Name != "" && st.Name != s.user {
		if err := s.must("Admin_priv", "Grant_priv"); err != nil {
			return nil, err
		}
	}
	return s.propose(func(state *meta.State) error {
		switch st := statement.(type) {
		case sqlparse.CreateUser:
			return state.CreateUser(st.Name, hash(st.Password, st.Hashed), st.IfNotExists)
		case sqlparse.DropUser:
			return state.DropUser(st.Name, st.IfExists)
		case sqlparse.Grant:
			return state.Grant(st.Name, st.Privileges)
		case sqlparse.SetPassword:
			name := st.Name
			if name == "" {
				name = s.user
			}
			return state.SetPassword(name, hash(st.Password, st.Hashed))
		}
		return fmt.Errorf("unsupported statement %T", statement)
	})
}

func hash(password string, hashed bool) string {
	if hashed {
		return password
	}
	return meta.PasswordHash(password)
}

// bounded gives background work of the master a deadline.
func (n *Node) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, n.opt.Pace.Quorum.Commit)
}
