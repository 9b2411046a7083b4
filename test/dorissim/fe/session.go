package fe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/fault"
	"github.com/fairlead-dev/fairlead/test/dorissim/mysqlwire"
	"github.com/fairlead-dev/fairlead/test/dorissim/quorum"
	"github.com/fairlead-dev/fairlead/test/dorissim/sqlparse"
)

// answer is the outcome of a statement: rows of texts (nil is NULL), or a count of rows changed.
type answer struct {
	Names    []string
	Rows     [][]*string
	Affected uint64
	// Version is the metadata version that holds the change.
	Version uint64
}

// session is one SQL connection.
type session struct {
	node   *Node
	ctx    context.Context
	cancel context.CancelFunc
	// hangUp closes the connection at once.
	hangUp   func()
	user     string
	host     string
	database string
	id       uint32
}

func (n *Node) sqlServer() *mysqlwire.Server {
	return &mysqlwire.Server{
		Version: "5.7.99",
		Salt:    n.salt,
		Hash: func(user string) (string, bool) {
			state := n.quorum.View()
			u, ok := state.Users[user]
			if !ok || n.opt.Faults.Active(fault.WrongPassword) {
				return "", false
			}
			return u.Hash, true
		},
	}
}

// salt draws the random part of a greeting; a zero byte would end it early.
func (n *Node) salt() []byte {
	out := make([]byte, 20)
	for i := range out {
		out[i] = byte(33 + int(n.opt.Random()*90))
	}
	return out
}

// serveSQL serves one connection. It is called by the listener's loop.
func (n *Node) serveSQL(ctx context.Context, c net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := n.opt.Faults.Wait(ctx, fault.Hang); err != nil {
		_ = c.Close()
		return
	}
	server := *n.sql
	server.Open = func(user, host string, id uint32) mysqlwire.Session {
		return &session{node: n, ctx: ctx, cancel: cancel, hangUp: func() { _ = c.Close() }, user: user, host: host, id: id}
	}
	server.Serve(c, n.connID.Add(1))
}

func (s *session) Close() { s.cancel() }

func (s *session) Use(database string) error {
	if _, ok := s.node.quorum.View().Databases[database]; !ok {
		return mysql.NewDefaultError(mysql.ER_BAD_DB_ERROR, database)
	}
	s.database = database
	return nil
}

// Query runs one statement.
func (s *session) Query(sql string) (*mysql.Result, error) {
	if err := s.node.opt.Faults.Wait(s.ctx, fault.Hang); err != nil {
		return nil, err
	}
	statement, err := sqlparse.Parse(sql)
	if err != nil {
		return nil, mysql.NewError(mysql.ER_PARSE_ERROR, err.Error())
	}
	a, err := s.run(statement, sql)
	if _, alters := statement.(sqlparse.AlterSystem); alters && s.node.opt.Faults.Active(fault.LoseAnswer) {
		s.node.opt.Faults.Clear(fault.LoseAnswer)
		s.hangUp() // before anything can be said
		s.cancel()
		return nil, context.Canceled
	}
	if err != nil {
		return nil, sqlError(err)
	}
	if a == nil || a.Names == nil {
		if a == nil {
			a = &answer{}
		}
		return &mysql.Result{AffectedRows: a.Affected}, nil
	}
	rows := make([][]any, len(a.Rows))
	for i, row := range a.Rows {
		for _, v := range row {
			if v == nil {
				rows[i] = append(rows[i], nil)
			} else {
				rows[i] = append(rows[i], []byte(*v)) // go-mysql takes an empty string for NULL
			}
		}
	}
	return mysqlwire.Rows(a.Names, rows)
}

// sqlError gives an error the form that clients of Doris see.
func sqlError(err error) error {
	if coded, ok := errors.AsType[*mysql.MyError](err); ok {
		return coded
	}
	text := err.Error()
	if !strings.HasPrefix(text, "errCode") {
		text = "errCode = 2, detailMessage = " + text
	}
	return mysql.NewError(mysql.ER_UNKNOWN_ERROR, text)
}

// run executes a statement here, or on the master if it changes what the frontends share.
func (s *session) run(statement sqlparse.Statement, sql string) (*answer, error) {
	switch st := statement.(type) {
	case sqlparse.Set:
		return nil, nil
	case sqlparse.Use:
		return nil, s.Use(st.Database)
	case sqlparse.Show:
		return s.show(st)
	case sqlparse.ShowConfig:
		return s.showConfig(st)
	case sqlparse.SetConfig:
		return s.setConfig(st, sql)
	case sqlparse.Select:
		return s.selectRows(st)
	}
	return s.onMaster(statement, sql)
}

// onMaster executes a statement here if this frontend is the master, else passes it on and waits until what the
// master changed has arrived here.
func (s *session) onMaster(statement sqlparse.Statement, sql string) (*answer, error) {
	status := s.node.quorum.Status()
	if status.IsMaster {
		return s.change(statement)
	}
	if status.Master == "" {
		return nil, quorum.ErrNoMaster
	}
	a, err := s.node.forward(s.ctx, status.Master, forwarded{User: s.user, Database: s.database, SQL: sql})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.node.opt.Pace.Quorum.Commit)
	defer cancel()
	return a, s.node.quorum.Await(ctx, a.Version)
}

// must fails unless the session's user holds one of the privileges.
func (s *session) must(privileges ...string) error {
	u, ok := s.node.quorum.View().Users[s.user]
	if ok {
		if slices.ContainsFunc(privileges, u.Holds) {
			return nil
		}
	}
	names := make([]string, 0, len(privileges))
	for _, p := range privileges {
		names = append(names, strings.ToUpper(strings.TrimSuffix(p, "_priv")))
	}
	return mysql.NewError(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR,
		fmt.Sprintf("Access denied; you need (at least one of) the (%s) privilege(s) for this operation", strings.Join(names, ",")))
}
