package sqlparse

// Statement is one of the types of this file.
type Statement interface{ statement() }

// Show is SHOW in its forms; What is the upper-case words up to the first argument, for example "FRONTENDS".
type Show struct {
	What string
	// Like is the pattern of a LIKE, Arg what the form takes besides: a database, a table or a /proc path.
	Like, Arg string
}

// NodeOp is what an ALTER SYSTEM statement does.
type NodeOp string

// The operations of ALTER SYSTEM.
const (
	AddFollower      NodeOp = "ADD FOLLOWER"
	AddObserver      NodeOp = "ADD OBSERVER"
	AddBackend       NodeOp = "ADD BACKEND"
	DropFollower     NodeOp = "DROP FOLLOWER"
	DropObserver     NodeOp = "DROP OBSERVER"
	DropBackend      NodeOp = "DROP BACKEND"
	ForceDropBackend NodeOp = "DROPP BACKEND"
	Decommission     NodeOp = "DECOMMISSION BACKEND"
	CancelDecommiss  NodeOp = "CANCEL DECOMMISSION BACKEND"
	ModifyBackend    NodeOp = "MODIFY BACKEND"
	AddBroker        NodeOp = "ADD BROKER"
	DropBroker       NodeOp = "DROP BROKER"
)

// AlterSystem changes the members of the cluster.
type AlterSystem struct {
	Op         NodeOp
	Addrs      []string
	Properties map[string]string
	// Name is that of brokers.
	Name string
}

// ShowConfig is ADMIN SHOW FRONTEND CONFIG.
type ShowConfig struct{ Like string }

// SetConfig is ADMIN SET [ALL] FRONTEND[S] CONFIG.
type SetConfig struct {
	All    bool
	Values map[string]string
}

// CreateUser makes an account.
type CreateUser struct {
	Name, Password string
	Hashed         bool
	IfNotExists    bool
}

// DropUser removes an account.
type DropUser struct {
	Name     string
	IfExists bool
}

// SetPassword is SET PASSWORD and ALTER USER … IDENTIFIED BY. An empty name means the present user.
type SetPassword struct {
	Name, Password string
	Hashed         bool
}

// Grant gives global privileges.
type Grant struct {
	Privileges []string
	Name       string
}

// CreateDatabase makes a database.
type CreateDatabase struct {
	Name        string
	IfNotExists bool
}

// DropDatabase removes a database with its tables.
type DropDatabase struct {
	Name     string
	IfExists bool
}

// Name is a table's name with an optional database.
type Name struct{ Database, Table string }

// ColumnDef is a column of CREATE TABLE.
type ColumnDef struct{ Name, Type string }

// CreateTable makes a table.
type CreateTable struct {
	Name        Name
	IfNotExists bool
	Columns     []ColumnDef
	Buckets     int
	HashColumn  string
	Properties  map[string]string
}

// DropTable removes a table.
type DropTable struct {
	Name     Name
	IfExists bool
}

// Insert adds rows. A nil value is NULL.
type Insert struct {
	Name    Name
	Columns []string
	Rows    [][]*string
}

// Item is one expression of a SELECT list.
type Item struct {
	// Column is a column, Literal a constant, Function a function or @@variable; Star and Count stand for themselves.
	Column, Function string
	Literal          *string
	Star, Count      bool
	Alias            string
}

// Condition compares a column with a constant.
type Condition struct {
	Column, Op string
	Value      string
}

// Select reads rows, or constants if From is nil.
type Select struct {
	Items   []Item
	From    *Name
	Where   []Condition
	OrderBy string
	Desc    bool
	Limit   int // -1 means all
}

// Use changes the session's database.
type Use struct{ Database string }

// Set is any SET that clients send on their own; it has no effect.
type Set struct{}

func (Show) statement()           {}
func (AlterSystem) statement()    {}
func (ShowConfig) statement()     {}
func (SetConfig) statement()      {}
func (CreateUser) statement()     {}
func (DropUser) statement()       {}
func (SetPassword) statement()    {}
func (Grant) statement()          {}
func (CreateDatabase) statement() {}
func (DropDatabase) statement()   {}
func (CreateTable) statement()    {}
func (DropTable) statement()      {}
func (Insert) statement()         {}
func (Select) statement()         {}
func (Use) statement()            {}
func (Set) statement()            {}
