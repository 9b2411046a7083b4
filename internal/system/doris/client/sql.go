package client

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

// rowLimit bounds what is read of an answer; no list of nodes or settings comes
// near it.
const rowLimit = 20000

// table is an answer: rows by their column names in lower case.
type table struct {
	columns map[string]bool
	rows    []row
}

// row is a row of texts; NULL is the empty text.
type row map[string]string

// statement is one SQL statement with what its errors say and must not say.
type statement struct {
	op  string
	sql string
	// secrets are texts of the statement that errors must not hold.
	secrets []string
}

// query runs one statement on a frontend over a connection of its own.
func (d *Doris) query(ctx context.Context, at Node, st statement) (table, error) {
	e := &Error{Op: st.op, Node: at, Kind: ErrInput}
	if !at.valid() {
		e.Text = "the host or port is not valid"
		return table{}, e
	}
	if strings.ContainsRune(d.opt.Credentials.User, 0) {
		e.Text = "the user name holds a character that cannot be sent"
		return table{}, e
	}
	ctx, cancel := context.WithTimeout(ctx, d.opt.CallTimeout)
	defer cancel()
	var asked atomic.Bool
	t, err := d.run(ctx, at, st.sql, &asked)
	if errors.Is(err, mysql.ErrInvalidConn) && asked.Load() {
		e.Kind, e.Text = ErrUntrusted, "the node asks for a certificate, and none is shown"
		return table{}, e
	}
	if err != nil {
		return table{}, d.sqlError(ctx, e, err, st.secrets)
	}
	return t, nil
}

// config returns the driver's settings for one connection.
func (d *Doris) config(at Node, asked *atomic.Bool) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd = d.opt.Credentials.User, d.opt.Credentials.Password
	c.Net, c.Addr = "tcp", at.String()
	c.DialFunc = d.dial
	c.TLS = d.tlsFor(at, asked)
	c.Timeout = d.opt.ConnectTimeout
	// The context ends the call; these are a second net, which must not tear first.
	c.ReadTimeout, c.WriteTimeout = 2*d.opt.CallTimeout, 2*d.opt.CallTimeout
	c.Logger = &mysql.NopLogger{} // it would print what servers say
	return c
}

func (d *Doris) run(ctx context.Context, at Node, text string, asked *atomic.Bool) (table, error) {
	connector, err := mysql.NewConnector(d.config(at, asked))
	if err != nil {
		return table{}, err //nolint:wrapcheck // the caller words it
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	db.SetMaxIdleConns(0)
	db.SetMaxOpenConns(1)
	res, err := db.QueryContext(ctx, text)
	if err != nil {
		return table{}, err //nolint:wrapcheck // the caller words it
	}
	defer func() { _ = res.Close() }()
	return read(res)
}

// errTooMany is for answers beyond the limit.
var errTooMany = errors.New("too many rows")

func read(res *sql.Rows) (table, error) {
	names, err := res.Columns()
	if err != nil {
		return table{}, err //nolint:wrapcheck // the caller words it
	}
	t := table{columns: map[string]bool{}}
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSpace(names[i]))
		t.columns[names[i]] = true
	}
	values := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for res.Next() {
		if len(t.rows) == rowLimit {
			return table{}, errTooMany
		}
		if err := res.Scan(into...); err != nil {
			return table{}, err //nolint:wrapcheck // the caller words it
		}
		r := row{}
		for i, name := range names {
			r[name] = values[i].String
		}
		t.rows = append(t.rows, r)
	}
	return t, res.Err() //nolint:wrapcheck // the caller words it
}

// Error numbers of MySQL that Doris uses for accounts that may not come in or
// may not do what they ask.
var deniedCodes = map[uint16]bool{
	1044: true, // no access to a database
	1045: true, // unknown user or wrong password
	1142: true, // no privilege on a table
	1227: true, // a privilege is missing
	1698: true, // no password given
}

// sqlError fills in what a failure was.
func (d *Doris) sqlError(ctx context.Context, e *Error, err error, secrets []string) error {
	e.Text = d.say(err.Error(), secrets)
	server, isServer := errors.AsType[*mysql.MySQLError](err)
	switch {
	case isServer:
		e.Kind, e.Code = ErrRefused, int(server.Number)
		e.Text = d.say(server.Message, secrets)
		if deniedCodes[server.Number] || strings.HasPrefix(server.Message, "Access denied") {
			e.Kind = ErrDenied
		}
	case errors.Is(err, errTooMany), errors.Is(err, mysql.ErrPktTooLarge), errors.Is(err, mysql.ErrMalformPkt):
		e.Kind = ErrAnswer
	case errors.Is(err, mysql.ErrNativePassword), errors.Is(err, mysql.ErrCleartextPassword), errors.Is(err, mysql.ErrOldPassword),
		errors.Is(err, mysql.ErrUnknownPlugin):
		e.Kind = ErrDenied
	case untrusted(err):
		e.Kind = ErrUntrusted
	default:
		e.Kind = ErrUnreachable
		if e.over = timeoutOf(ctx, err); e.over != nil {
			e.Text = ""
		}
	}
	return e
}

// sqlText writes a text so that it can stand between double quotes in a
// statement.
func sqlText(s string) string {
	return sqlEscapes.Replace(s)
}

var sqlEscapes = strings.NewReplacer(`\`, `\\`, `"`, `""`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)
