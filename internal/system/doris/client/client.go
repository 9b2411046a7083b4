// Package client speaks to a running Doris: SQL to its frontends and HTTP to
// frontends and backends.
//
// Every call is for one node, which the caller names. It opens one connection,
// runs one statement or request, and closes it, all within a deadline; nothing
// is kept between calls, so credentials can be exchanged by making another
// Doris. No error holds a password or the value of a setting, however the node
// or a proxy on the way words its answer.
package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// Credentials are an account of Doris. Which ones are tried, and in which
// order, is for the caller to say.
type Credentials struct {
	User     string
	Password string
}

// String names the account without its password.
func (c Credentials) String() string { return "account " + strconv.Quote(c.User) }

// GoString names the account without its password.
func (c Credentials) GoString() string { return c.String() }

// LogValue names the account without its password.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Node is where a node listens: for SQL calls the query port of a frontend, for
// HTTP calls its HTTP port or a backend's web server port.
type Node struct {
	Host string
	Port int32
}

// String returns host:port.
func (n Node) String() string { return net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port))) }

// valid tells whether the node can stand in an address. Hosts come from
// statements' answers too.
func (n Node) valid() bool {
	if n.Host == "" || n.Port < 1 || n.Port > 65535 {
		return false
	}
	return strings.IndexFunc(n.Host, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(".-_:", r)
	}) < 0
}

// Dial opens a connection. internal/dial makes one for --dial-via.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Options say how to reach nodes. The zero value connects directly, without
// TLS and without an account.
type Options struct {
	// Credentials of SQL calls, and of HTTP calls where a user is named.
	Credentials Credentials
	// Dial opens connections; nil dials directly.
	Dial Dial
	// TLS makes SQL connections encrypted. A server that offers no encryption
	// is refused then. See TLSConfig.
	TLS *tls.Config
	// ServerNames are the names of which a node's certificate has to be for one; nil, or
	// none, means its host. One that ends in a dot is completed by the domain of the
	// cluster.
	ServerNames func(at Node) []string
	// HTTPS makes HTTP calls encrypted, with the settings of TLS.
	HTTPS bool
	// ConnectTimeout bounds the opening of a connection; zero means 5 s.
	ConnectTimeout time.Duration
	// CallTimeout bounds a whole call; zero means 10 s. A deadline of the call's
	// context that is nearer counts.
	CallTimeout time.Duration
}

const (
	defaultConnectTimeout = 5 * time.Second
	defaultCallTimeout    = 10 * time.Second
)

// Doris speaks to the nodes of one cluster. It holds no connection and may be
// used by several goroutines.
type Doris struct {
	// A pointer, because fmt follows none below the top: a struct that has a
	// Doris somewhere can be printed without its password.
	opt *Options
}

// New returns a client.
func New(opt Options) *Doris {
	if opt.Dial == nil {
		opt.Dial = (&net.Dialer{}).DialContext
	}
	if opt.ConnectTimeout <= 0 {
		opt.ConnectTimeout = defaultConnectTimeout
	}
	if opt.CallTimeout <= 0 {
		opt.CallTimeout = defaultCallTimeout
	}
	return &Doris{opt: &opt}
}

// dial opens a connection within the connect timeout.
func (d *Doris) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.opt.ConnectTimeout)
	defer cancel()
	return d.opt.Dial(ctx, network, address)
}
