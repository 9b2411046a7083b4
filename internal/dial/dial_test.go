package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestViaRefuses(t *testing.T) {
	const password = "hunter2"
	for _, tc := range []struct{ name, value, want string }{
		{"no URL", "127.0.0.1:1080", "is not a URL"},
		{"password before a control character", "socks5://user:" + password + "@host:1080\n", "is not a URL"},
		{"percent sign in the password", "socks5://user:" + password + "%zz@host:1080", "is not a URL"},
		{"other scheme", "http://user:" + password + "@host:1080", "another scheme"},
		{"scheme left out, user first", "user:" + password + "@host:1080", "another scheme"},
		{"scheme left out, password first", password + ":x", "another scheme"},
		{"no host", "socks5://user:" + password + "@:1080", "names no host"},
		{"no port", "socks5://user:" + password + "@host", "names no port"},
		{"empty port", "socks5://user:" + password + "@host:", "names no port"},
		{"port zero", "socks5://host:0", "names no port"},
		{"port too large", "socks5://host:65536", "names no port"},
		{"port that is a word", "socks5://host:" + password, "is not a URL"},
		{"path after the port", "socks5://host:1080/" + password, "something after the port"},
		{"query after the port", "socks5://host:1080?" + password, "something after the port"},
		{"unescaped at sign in the password", "socks5://user:pass@" + password + ":1080:x@host:1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Via(tc.value)
			if tc.want == "" {
				if err != nil && strings.Contains(err.Error(), password) {
					t.Errorf("the error quotes the password: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("Via(%q) = %v, want an error with %q", tc.value, err, tc.want)
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("the error quotes the password: %v", err)
			}
		})
	}
}

func FuzzViaNeverQuotesItsValue(f *testing.F) {
	for _, s := range []string{"", "a:b@c:1", "socks5://a:b@c:1", "socks5://[::1]:1080", "socks5h://h:1/x", "%", "socks5://a:b%zz@c:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		const secret = "Zq7SeCrEt9"
		for _, v := range []string{value + secret, secret + value, "socks5://u:" + secret + value, value + ":" + secret + "@h:1"} {
			if _, err := Via(v); err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("Via(%q) quotes its value: %v", v, err)
			}
		}
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestViaDialsDirectly(t *testing.T) {
	l := listen(t)
	dial, err := Via("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// proxyDouble is a test double of a SOCKS5 proxy that asks for a password and
// then answers by itself, so that the name need not exist.
type proxyDouble struct {
	listener net.Listener
	asked    chan string
}

func startProxy(t *testing.T) *proxyDouble {
	t.Helper()
	p := &proxyDouble{listener: listen(t), asked: make(chan string, 1)}
	go func() {
		for {
			c, err := p.listener.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxyDouble) serve(c net.Conn) {
	defer c.Close()
	read := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(c, b); err != nil {
			return make([]byte, n)
		}
		return b
	}
	read(int(read(2)[1])) // version, methods
	_, _ = c.Write([]byte{5, 2})
	user := string(read(int(read(2)[1])))
	password := string(read(int(read(1)[0])))
	if user != "user" || password != "right" {
		_, _ = c.Write([]byte{1, 1})
		return
	}
	_, _ = c.Write([]byte{1, 0})
	if kind := read(4)[3]; kind != 3 {
		p.asked <- "an address, not a name"
		return
	}
	p.asked <- string(read(int(read(1)[0])))
	read(2)
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	_, _ = c.Write([]byte("hello"))
}

func TestViaLetsTheProxyResolveNames(t *testing.T) {
	p := startProxy(t)
	dial, err := Via("socks5://user:right@" + p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(t.Context(), "tcp", "doris-fe.ns.svc:9030")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := <-p.asked; got != "doris-fe.ns.svc" {
		t.Errorf("the proxy was asked for %q", got)
	}
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestViaDoesNotQuoteThePasswordWhenTheProxyRefusesIt(t *testing.T) {
	p := startProxy(t)
	dial, err := Via("socks5://user:wr0ng@" + p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = dial(t.Context(), "tcp", "doris-fe.ns.svc:9030")
	if err == nil || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("dial error = %v", err)
	}
}

func TestViaGivesUpOnASilentProxyWhenTheContextEnds(t *testing.T) {
	l := listen(t) // accepts by its backlog and never answers
	dial, err := Via("socks5://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = dial(ctx, "tcp", "name:1"); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("dial error = %v, want a timeout", err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
