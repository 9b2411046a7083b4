// Package mysqlwire serves the MySQL protocol as far as Doris's FE does: native-password accounts that are known by
// their hash only, text queries, USE and ping. Prepared statements are refused.
//
// The packet layer and the result encoding are those of go-mysql; its server's handshake is not used because it needs
// the plain password of every account, and an FE may know no more than the hash that its fe.conf names.
package mysqlwire

import (
	"crypto/sha1"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/packet"
)

// Session answers one connection.
type Session interface {
	// Query runs one statement. A nil result is an OK packet.
	Query(sql string) (*mysql.Result, error)
	// Use changes the database.
	Use(database string) error
	// Close ends the session.
	Close()
}

// Server is what connections have in common.
type Server struct {
	// Version is the server version of the greeting.
	Version string
	// Salt returns twenty random bytes for a greeting, none of them zero.
	Salt func() []byte
	// Hash returns the stored form of a user's password ('*' and hexadecimal digits, empty for none).
	Hash func(user string) (hash string, found bool)
	// TLS offers encryption to clients that ask for it; nil offers none. A client that does not ask is let in without
	// it, as by Doris.
	TLS *tls.Config
	// OnlyTLS turns away who does not ask.
	OnlyTLS bool
	// Open begins a session once the user has been let in.
	Open func(user, host string, id uint32) Session
}

const capabilities = mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_LONG_FLAG | mysql.CLIENT_CONNECT_WITH_DB |
	mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_TRANSACTIONS | mysql.CLIENT_SECURE_CONNECTION |
	mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA

// supported is a variable because the greeting carries it in two halves.
var supported uint32 = capabilities

type conn struct {
	*packet.Conn
	server *Server
	caps   uint32
}

// Serve speaks to one client until it leaves.
func (s *Server) Serve(nc net.Conn, id uint32) {
	c := &conn{Conn: packet.NewConn(nc), server: s}
	if s.TLS != nil {
		c.Conn = packet.NewTLSConn(nc) // reads no byte too many, before encryption begins
	}
	defer func() { _ = nc.Close() }()
	session, err := c.handshake(nc, id)
	if err != nil {
		if sqlErr, ok := errors.AsType[*mysql.MyError](err); ok {
			_ = c.writeError(sqlErr)
		}
		return
	}
	defer session.Close()
	for {
		c.ResetSequence()
		data, err := c.ReadPacket()
		if err != nil || len(data) == 0 || data[0] == mysql.COM_QUIT {
			return
		}
		if c.answer(session, data[0], string(data[1:])) != nil {
			return
		}
	}
}

func (c *conn) answer(session Session, command byte, arg string) error {
	switch command {
	case mysql.COM_QUERY:
		r, err := session.Query(arg)
		if err != nil {
			return c.writeError(err)
		}
		return c.writeResult(r)
	case mysql.COM_INIT_DB:
		if err := session.Use(arg); err != nil {
			return c.writeError(err)
		}
		return c.writeOK(0)
	case mysql.COM_PING, mysql.COM_STATISTICS:
		return c.writeOK(0)
	case mysql.COM_FIELD_LIST:
		return c.writeEOF()
	case mysql.COM_STMT_CLOSE:
		return nil
	}
	return c.writeError(mysql.NewError(mysql.ER_UNKNOWN_COM_ERROR, "Unsupported command(COM_"+hex.EncodeToString([]byte{command})+")"))
}

func (c *conn) handshake(nc net.Conn, id uint32) (Session, error) {
	salt := c.server.Salt()
	if err := c.greet(salt, id); err != nil {
		return nil, err
	}
	data, err := c.readLogin(nc)
	if err != nil {
		return nil, err
	}
	login, err := parseLogin(data)
	if err != nil {
		return nil, mysql.NewError(mysql.ER_HANDSHAKE_ERROR, err.Error())
	}
	c.caps = login.caps
	if login.plugin != "" && login.plugin != mysql.AUTH_NATIVE_PASSWORD {
		if login.proof, err = c.switchPlugin(salt); err != nil {
			return nil, err
		}
	}
	host := hostOf(nc)
	if err := c.server.admit(login, salt, host); err != nil {
		return nil, err
	}
	session := c.server.Open(login.user, host, id)
	if login.database != "" {
		if err := session.Use(login.database); err != nil {
			session.Close()
			return nil, err
		}
	}
	return session, c.writeOK(0)
}

// readLogin returns the client's login packet, after what it may want to do first.
func (c *conn) readLogin(nc net.Conn) ([]byte, error) {
	data, err := c.ReadPacket()
	switch {
	case err != nil || c.server.TLS == nil:
	case asksForTLS(data):
		return c.encrypt(nc)
	case c.server.OnlyTLS:
		return nil, mysql.NewError(mysql.ER_HANDSHAKE_ERROR, "this frontend speaks TLS only")
	}
	return data, err
}

// asksForTLS tells the short packet that asks for encryption from a login.
func asksForTLS(data []byte) bool {
	return len(data) == 32 && binary.LittleEndian.Uint32(data)&mysql.CLIENT_SSL != 0
}

// encrypt goes on over TLS and returns the login packet.
func (c *conn) encrypt(nc net.Conn) ([]byte, error) {
	t := tls.Server(nc, c.server.TLS)
	if err := t.Handshake(); err != nil {
		return nil, err
	}
	sequence := c.Sequence
	c.Conn = packet.NewTLSConn(t)
	c.Sequence = sequence
	return c.ReadPacket()
}

func hostOf(nc net.Conn) string {
	addr := nc.RemoteAddr().String()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

func (s *Server) admit(l login, salt []byte, host string) error {
	hash, found := s.Hash(l.user)
	if found && proves(l.proof, salt, hash) {
		return nil
	}
	using := "NO"
	if len(l.proof) > 0 {
		using = "YES"
	}
	return mysql.NewDefaultError(mysql.ER_ACCESS_DENIED_ERROR, l.user, host, using)
}

func (c *conn) greet(salt []byte, id uint32) error {
	caps := supported
	if c.server.TLS != nil {
		caps |= mysql.CLIENT_SSL
	}
	data := make([]byte, 4, 128)
	data = append(data, 10)
	data = append(data, c.server.Version...)
	data = append(data, 0)
	data = binary.LittleEndian.AppendUint32(data, id)
	data = append(data, salt[:8]...)
	data = append(data, 0)
	data = binary.LittleEndian.AppendUint16(data, uint16(caps))
	data = append(data, mysql.DEFAULT_COLLATION_ID)
	data = binary.LittleEndian.AppendUint16(data, mysql.SERVER_STATUS_AUTOCOMMIT)
	data = binary.LittleEndian.AppendUint16(data, uint16(caps>>16))
	data = append(data, 21)
	data = append(data, make([]byte, 10)...)
	data = append(data, salt[8:20]...)
	data = append(data, 0)
	data = append(data, mysql.AUTH_NATIVE_PASSWORD...)
	return c.WritePacket(append(data, 0))
}

// switchPlugin asks a client of another habit for a native-password proof.
func (c *conn) switchPlugin(salt []byte) ([]byte, error) {
	data := make([]byte, 4, 64)
	data = append(data, mysql.EOF_HEADER)
	data = append(data, mysql.AUTH_NATIVE_PASSWORD...)
	data = append(data, 0)
	data = append(data, salt...)
	if err := c.WritePacket(append(data, 0)); err != nil {
		return nil, err
	}
	proof, err := c.ReadPacket()
	if len(proof) == 1 && proof[0] == 0 {
		proof = nil
	}
	return proof, err
}

type login struct {
	caps                   uint32
	user, database, plugin string
	proof                  []byte
}

var errLogin = errors.New("the login packet is malformed")

func parseLogin(data []byte) (login, error) {
	if len(data) < 33 {
		return login{}, errLogin
	}
	l := login{caps: binary.LittleEndian.Uint32(data)}
	if l.caps&mysql.CLIENT_PROTOCOL_41 == 0 {
		return login{}, errors.New("the client must speak protocol 4.1")
	}
	rest := data[32:]
	var ok bool
	if l.user, rest, ok = cutNul(rest); !ok || len(rest) == 0 {
		return login{}, errLogin
	}
	size := int(rest[0])
	rest = rest[1:]
	if size > len(rest) {
		return login{}, errLogin
	}
	l.proof, rest = rest[:size], rest[size:]
	if l.caps&mysql.CLIENT_CONNECT_WITH_DB != 0 {
		l.database, rest, _ = cutNul(rest)
	}
	if l.caps&mysql.CLIENT_PLUGIN_AUTH != 0 {
		l.plugin, _, _ = cutNul(rest)
	}
	return l, nil
}

func cutNul(b []byte) (string, []byte, bool) {
	before, after, found := strings.Cut(string(b), "\x00")
	return before, []byte(after), found
}

// proves checks a native-password proof against the hash SHA1(SHA1(password)). The proof hides SHA1(password) under a
// mask that both sides can make; hashing what is under it must give the stored hash.
func proves(proof, salt []byte, hash string) bool {
	if hash == "" || len(proof) == 0 {
		return hash == "" && len(proof) == 0
	}
	stored, err := hex.DecodeString(strings.TrimPrefix(hash, "*"))
	if err != nil || len(proof) != sha1.Size {
		return false
	}
	mask := sha1.Sum(append(append([]byte{}, salt...), stored...))
	once := make([]byte, sha1.Size)
	subtle.XORBytes(once, proof, mask[:])
	twice := sha1.Sum(once)
	return subtle.ConstantTimeCompare(twice[:], stored) == 1
}
