package mysqlwire

import (
	"encoding/binary"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
)

func TestProves(t *testing.T) {
	salt := []byte("12345678901234567890")
	proof := func(password string) []byte { return mysql.CalcPassword(salt, []byte(password)) }
	for name, c := range map[string]struct {
		proof []byte
		hash  string
		want  bool
	}{
		"the right password":                    {proof("s3cret"), meta.PasswordHash("s3cret"), true},
		"another password":                      {proof("secret"), meta.PasswordHash("s3cret"), false},
		"no password where none is set":         {nil, "", true},
		"no password where one is set":          {nil, meta.PasswordHash("s3cret"), false},
		"a password where none is set":          {proof("s3cret"), "", false},
		"a hash that is none":                   {proof("s3cret"), "*xyz", false},
		"a proof of the wrong length":           {[]byte("short"), meta.PasswordHash("s3cret"), false},
		"the proof of the password for no salt": {mysql.CalcPassword([]byte("00000000000000000000"), []byte("s3cret")), meta.PasswordHash("s3cret"), false},
	} {
		if got := proves(c.proof, salt, c.hash); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestPasswordHashIsThatOfMySQL(t *testing.T) {
	if got := meta.PasswordHash("password1"); got != "*668425423DB5193AF921380129F465A6425216D0" {
		t.Errorf("got %s", got)
	}
}

func packetOf(caps uint32, rest string) []byte {
	data := binary.LittleEndian.AppendUint32(nil, caps)
	return append(append(data, make([]byte, 28)...), rest...)
}

func TestParseLogin(t *testing.T) {
	const caps uint32 = mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_CONNECT_WITH_DB | mysql.CLIENT_PLUGIN_AUTH
	l, err := parseLogin(packetOf(caps, "root\x00\x03abcshop\x00mysql_native_password\x00"))
	if err != nil {
		t.Fatal(err)
	}
	if l.user != "root" || string(l.proof) != "abc" || l.database != "shop" || l.plugin != "mysql_native_password" {
		t.Errorf("got %+v", l)
	}
	if _, err := parseLogin(packetOf(caps, "root\x00\xffabc")); err == nil {
		t.Error("a proof longer than the packet was read")
	}
}

func FuzzParseLogin(f *testing.F) {
	f.Add(packetOf(capabilities, "root\x00\x00"))
	f.Add(packetOf(capabilities, "root\x00\x03abcdb\x00plugin"))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseLogin(data)
		if err == nil && len(l.user)+len(l.proof) > len(data) {
			t.Errorf("more was read than is there: %+v", l)
		}
	})
}
