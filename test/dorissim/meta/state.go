// Package meta holds the metadata of the stand-in's cluster: who belongs to it, who may log in, which tables exist
// and where the replicas of their tablets are.
//
// A State is a plain value. The FE master changes a copy of it and the copy replaces the old value on a majority of
// the followers (package quorum), so nothing here locks or talks to anybody.
package meta

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Roles of a frontend.
const (
	Follower = "FOLLOWER"
	Observer = "OBSERVER"
)

// Frontend is a member of the metadata group.
type Frontend struct {
	Name, Host  string
	EditLogPort int
	Role        string
	// Joined is true once the node itself has taken part; only then does a follower count for majorities. A follower
	// that is announced but has not started yet must not cost the group its majority.
	Joined bool
}

// Addr is the frontend's identity.
func (f Frontend) Addr() string { return Addr(f.Host, f.EditLogPort) }

// Backend is a node that keeps tablets.
type Backend struct {
	ID              int64
	Host            string
	HeartbeatPort   int
	Decommissioned  bool
	QueryDisabled   bool
	LoadDisabled    bool
	Tags            map[string]string
	LastStartTimeMs int64
}

// Addr is the backend's identity.
func (b Backend) Addr() string { return Addr(b.Host, b.HeartbeatPort) }

// Broker reads files of other systems; many may have one name.
type Broker struct {
	Name, Host string
	Port       int
}

// Addr is the broker's identity beside its name.
func (b Broker) Addr() string { return Addr(b.Host, b.Port) }

// User is an account.
type User struct {
	Name string
	// Hash is '*' and the upper-case hexadecimal SHA1(SHA1(password)), or empty for no password.
	Hash string
	// Privileges are the global ones: Node_priv, Admin_priv, Select_priv and so on.
	Privileges []string
}

// Database holds tables.
type Database struct {
	ID     int64
	Name   string
	Tables map[string]*Table
}

// Table is a table with its columns and tablets.
type Table struct {
	ID             int64
	Name           string
	Columns        []Column
	KeyColumn      string
	ReplicationNum int
	Tablets        []*Tablet
}

// Column is a column of a table; Numeric says whether its values are whole numbers.
type Column struct {
	Name, Type string
	Numeric    bool
}

// Tablet is a part of a table's rows. Backends in Replicas keep a copy each.
type Tablet struct {
	ID int64
	// Version counts the writes that readers may see.
	Version  int64
	Replicas []int64
}

// State is everything that the frontends agree on.
type State struct {
	// Term and Version order the states: a later master's term first, then the count of changes.
	Term, Version uint64
	ClusterID     int64
	NextID        int64
	Frontends     []Frontend
	Backends      []Backend
	Brokers       []Broker `json:",omitempty"`
	Users         map[string]*User
	Databases     map[string]*Database
}

// New returns the state of a cluster whose first frontend is the given one.
func New(clusterID int64, first Frontend, rootHash string) *State {
	first.Role, first.Joined = Follower, true
	return &State{
		ClusterID: clusterID, NextID: 10001, Frontends: []Frontend{first},
		Users: map[string]*User{
			"root":  {Name: "root", Hash: rootHash, Privileges: []string{"Node_priv", "Admin_priv"}},
			"admin": {Name: "admin", Privileges: []string{"Admin_priv"}},
		},
		Databases: map[string]*Database{
			"information_schema": {ID: 0, Name: "information_schema", Tables: map[string]*Table{}},
			"mysql":              {ID: 1, Name: "mysql", Tables: map[string]*Table{}},
		},
	}
}

// Clone returns a deep copy.
func (s *State) Clone() *State {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("state cannot be encoded: %v", err)) // only plain data is in it
	}
	out := new(State)
	if err := json.Unmarshal(b, out); err != nil {
		panic(fmt.Sprintf("state cannot be decoded: %v", err))
	}
	return out
}

// Newer tells whether the state is later than another, by term and then by version.
func (s *State) Newer(term, version uint64) bool {
	return s.Term > term || s.Term == term && s.Version > version
}

// Voters are the addresses of the followers that count for majorities, sorted.
func (s *State) Voters() []string {
	var out []string
	for _, f := range s.Frontends {
		if f.Role == Follower && f.Joined {
			out = append(out, f.Addr())
		}
	}
	sort.Strings(out)
	return out
}

// Frontend finds a member by its address.
func (s *State) Frontend(addr string) (Frontend, bool) {
	for _, f := range s.Frontends {
		if f.Addr() == addr {
			return f, true
		}
	}
	return Frontend{}, false
}

// Backend finds a backend by its address.
func (s *State) Backend(addr string) *Backend {
	for i := range s.Backends {
		if s.Backends[i].Addr() == addr {
			return &s.Backends[i]
		}
	}
	return nil
}

// Tablets returns all tablets with the names of their databases and tables, ordered by id.
func (s *State) Tablets() []Placed {
	var out []Placed
	for _, db := range s.Databases {
		for _, t := range db.Tables {
			for _, tablet := range t.Tablets {
				out = append(out, Placed{Database: db, Table: t, Tablet: tablet})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Tablet.ID < out[j].Tablet.ID })
	return out
}

// Placed is a tablet with what it belongs to.
type Placed struct {
	Database *Database
	Table    *Table
	Tablet   *Tablet
}

// TabletsOn counts the replicas that the metadata places on a backend.
func (s *State) TabletsOn(backend int64) int {
	n := 0
	for _, p := range s.Tablets() {
		if p.Tablet.On(backend) {
			n++
		}
	}
	return n
}

// On tells whether a backend keeps a replica.
func (t *Tablet) On(backend int64) bool {
	return slices.Contains(t.Replicas, backend)
}

// Without returns the replicas but one.
func (t *Tablet) Without(backend int64) []int64 {
	out := make([]int64, 0, len(t.Replicas))
	for _, id := range t.Replicas {
		if id != backend {
			out = append(out, id)
		}
	}
	return out
}

// ID hands out the next number.
func (s *State) ID() int64 {
	s.NextID++
	return s.NextID
}

// Addr joins a host and a port, as node statements spell them.
func Addr(host string, port int) string { return host + ":" + strconv.Itoa(port) }

// SplitAddr takes an address of a node statement apart.
func SplitAddr(addr string) (string, int, error) {
	i := strings.LastIndexByte(addr, ':')
	if i <= 0 {
		return "", 0, fmt.Errorf("invalid host port: %s", addr)
	}
	port, err := strconv.Atoi(addr[i+1:])
	if err != nil || port <= 0 || port > 65535 {
		return "", 0, fmt.Errorf("invalid port: %s", addr)
	}
	return addr[:i], port, nil
}
