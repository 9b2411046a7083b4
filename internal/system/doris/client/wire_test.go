package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// TestSilentServers speaks to test doubles that take a connection and then say
// nothing, too little, too slowly or nonsense.
func TestSilentServers(t *testing.T) {
	t.Parallel()
	drip := func(head string) func(net.Conn) {
		return func(c net.Conn) {
			_, err := io.WriteString(c, head)
			for err == nil {
				time.Sleep(20 * time.Millisecond)
				_, err = c.Write([]byte{' '})
			}
		}
	}
	until := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	for _, tc := range []struct {
		name   string
		handle func(net.Conn)
		over   bool // whether the time has to be over
	}{
		{"nothing is said", until, true},
		{"the connection is cut at once", func(net.Conn) {}, false},
		{"a MySQL packet that never ends", drip("\xff\xff\x00\x00\x0a"), true},
		{"an HTTP body that never ends", drip("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{"), true},
		{"an HTTP header that never ends", drip("HTTP/1.1 200 OK\r\nA: "), true},
		{"an HTTP server on every port", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			until(c)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			at := serve(t, tc.handle)
			opt := root()
			opt.CallTimeout = short
			dial, _, open := watch()
			opt.Dial = dial
			doris := New(opt)
			for name, call := range map[string]func() error{
				"SQL":  func() error { _, err := doris.Frontends(t.Context(), at); return err },
				"HTTP": func() error { _, err := doris.BackendConfig(t.Context(), at); return err },
			} {
				began := time.Now()
				err := call()
				if took := time.Since(began); err == nil || took > short+slack {
					t.Errorf("%s: after %s the error is %v", name, took, err)
				}
				if tc.name == "nothing is said" && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: error is %v", name, err)
				}
			}
			eventually(t, "no connection is open", func() bool { return open.Load() == 0 })
		})
	}
}

func TestAConnectionThatIsNeverMadeEndsInTime(t *testing.T) {
	opt := root()
	opt.ConnectTimeout = short
	opt.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	doris := New(opt)
	at := Node{Host: "fe-0.somewhere", Port: 9030}
	_, errSQL := doris.Frontends(t.Context(), at)
	_, errHTTP := doris.BackendHealth(t.Context(), at)
	for _, err := range []error{errSQL, errHTTP} {
		if wantKind(t, err, ErrUnreachable); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestNodesThatCannotBeAddressedAreNotAsked(t *testing.T) {
	opt := root()
	opt.Dial = func(context.Context, string, string) (net.Conn, error) {
		t.Error("a connection is made")
		return nil, errors.New("no")
	}
	doris := New(opt)
	for _, at := range []Node{
		{},
		{Host: "h"},
		{Port: 1},
		{Host: "h", Port: 65536},
		{Host: "user:pw@h", Port: 1},
		{Host: "h/path", Port: 1},
		{Host: "h h", Port: 1},
		{Host: "unix(/x)", Port: 1},
		{Host: "h\n", Port: 1},
	} {
		_, err := doris.Frontends(t.Context(), at)
		wantKind(t, err, ErrInput)
		_, err = doris.BackendConfig(t.Context(), at)
		wantKind(t, err, ErrInput)
	}
}

func TestHTTPAnswers(t *testing.T) {
	redirected := false
	elsewhere := httpDouble(t, func(http.ResponseWriter, *http.Request) { redirected = true })
	for _, tc := range []struct {
		name   string
		handle http.HandlerFunc
		kind   error
		code   int
	}{
		{"no account is accepted", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, ErrDenied, 401},
		{"the account may not", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, ErrDenied, 403},
		{"an old backend that is not healthy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, ErrRefused, 500},
		{"a redirection", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.String()+"/", http.StatusFound)
		}, ErrAnswer, 302},
		{"no JSON", body("OK"), ErrAnswer, 0},
		{"JSON of another shape", body(`{"a":1}`), ErrAnswer, 0},
		{"nothing", body(""), ErrAnswer, 0},
		{"too much", func(w http.ResponseWriter, _ *http.Request) {
			for range bodyLimit/1000 + 1 {
				_, _ = w.Write(make([]byte, 1000))
			}
		}, ErrAnswer, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := httpDouble(t, tc.handle)
			doris := New(root())
			_, err := doris.BackendHealth(t.Context(), at)
			if e := wantKind(t, err, tc.kind); e.Code != tc.code {
				t.Errorf("code is %d, error %v", e.Code, err)
			}
			_, err = doris.BackendConfig(t.Context(), at)
			wantKind(t, err, tc.kind)
			wantKind(t, doris.SetBackendConfig(t.Context(), at, "k", "v"), tc.kind)
			_, err = doris.FrontendHealth(t.Context(), at)
			wantKind(t, err, tc.kind)
			wantKind(t, doris.SetFrontendConfigLocal(t.Context(), at, "k", "v"), tc.kind)
		})
	}
	if redirected {
		t.Error("a redirection was followed")
	}
}

func TestAnHTTPErrorSaysNothingOfTheRequest(t *testing.T) {
	doris := New(root())
	err := doris.SetBackendConfig(t.Context(), serveAndClose(t), "some_key", "7")
	if text := wantKind(t, err, ErrUnreachable).Error(); strings.Contains(text, "http:") || strings.Contains(text, "persist") {
		t.Errorf("error is %q", text)
	}
}

func TestAnAnswerThatIsTooLongIsNotRead(t *testing.T) {
	at := httpDouble(t, body(`{"status":"OK","msg":"`+strings.Repeat("x", bodyLimit)+`"}`))
	_, err := New(root()).BackendHealth(t.Context(), at)
	if e := wantKind(t, err, ErrAnswer); !strings.Contains(e.Text, "too long") {
		t.Errorf("error is %v", err)
	}
	var rows [][]string
	for range rowLimit + 1 {
		rows = append(rows, []string{"h", "9010"})
	}
	sql := &sqlDouble{user: "root", answer: func(string) (*mysql.Result, error) {
		return texts(t, []string{"Host", "EditLogPort"}, rows...), nil
	}}
	_, err = New(root()).Frontends(t.Context(), sql.start(t))
	wantKind(t, err, ErrAnswer)
}

// Not parallel: it counts the goroutines of the process.
func TestCallsLeaveNothingBehind(t *testing.T) {
	sql := &sqlDouble{user: "root", answer: func(string) (*mysql.Result, error) {
		return texts(t, []string{"Host", "EditLogPort"}, []string{"h", "9010"}), nil
	}}
	sqlAt, webAt := sql.start(t), httpDouble(t, body(`{"status":"OK"}`))
	doris := New(root())
	const calls = 50
	before := runtime.NumGoroutine()
	for range calls {
		_, err := doris.Frontends(t.Context(), sqlAt)
		must(t, err)
		_, err = doris.BackendHealth(t.Context(), webAt)
		must(t, err)
	}
	eventually(t, "their goroutines have ended", func() bool { return runtime.NumGoroutine() < before+calls/2 })
}

func TestHealthIsReadFromTheBody(t *testing.T) {
	doris := New(root())
	for _, tc := range []struct {
		name, body string
		want       BackendHealth
	}{
		{"serving", `{"status": "OK","msg": "OK"}`, BackendHealth{OK: true, Says: "OK"}},
		{"shutting down", `{"status": "Server is not available","msg": "Server is shutting down"}`, BackendHealth{Says: "Server is not available"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := doris.BackendHealth(t.Context(), httpDouble(t, body(tc.body)))
			must(t, err)
			if got != tc.want {
				t.Errorf("got %+v", got)
			}
		})
	}
	h, err := doris.FrontendHealth(t.Context(), httpDouble(t, body(`{"msg":"not ready","code":1,"data":"FE is not ready"}`)))
	must(t, err)
	if h.Ready {
		t.Error("a frontend that is not ready is ready")
	}
	_, err = doris.FrontendHealth(t.Context(), httpDouble(t, body(`{"msg":"Unauthorized","code":401,"data":"Access denied"}`)))
	wantKind(t, err, ErrDenied)
}

func TestAChangeIsAppliedOnlyIfTheNodeSaysSo(t *testing.T) {
	for _, tc := range []struct {
		name, set, shown string
		want             Outcome
		kind             error
	}{
		{"the value is shown", `[{"config_name":"k","status":"OK","msg":""}]`, `[["k","int32_t","1000","true"]]`, Applied, nil},
		{"all settings are shown", `{"status":"OK","msg":""}`, `[["a","bool","true","true"],["k","int32_t","1000","true"]]`, Applied, nil},
		{"another value is shown", `{"status":"OK"}`, `[["k","int32_t","10","true"]]`, Different, nil},
		{"the setting is not shown", `{"status":"OK"}`, `[]`, Different, nil},
		{"the value is masked", `{"status":"OK"}`, `[["k","std::string","********","true"]]`, Unshown, nil},
		{"the answer is about another", `[{"config_name":"x","status":"OK"}]`, `[]`, "", ErrAnswer},
		{"the answer is empty", `[]`, `[]`, "", ErrAnswer},
		{"the change failed", `{"status":"FAILED","msg":"no"}`, `[["k","int32_t","1000","true"]]`, "", ErrRefused},
		{"reading back fails", `{"status":"OK"}`, `nonsense`, "", ErrAnswer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := httpDouble(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/show_config" {
					fmt.Fprint(w, tc.shown)
					return
				}
				if r.Method != http.MethodPost || r.URL.Query().Get("persist") != "false" || r.URL.Query().Get("k") != "1000" {
					t.Errorf("the request is %s %s", r.Method, r.URL)
				}
				fmt.Fprint(w, tc.set)
			})
			got, err := New(root()).ChangeBackend(t.Context(), at, "k", "1000")
			if tc.kind == nil {
				must(t, err)
			} else {
				wantKind(t, err, tc.kind)
			}
			if got != tc.want {
				t.Errorf("outcome is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAMasterThatIsNamedButIsNot(t *testing.T) {
	columns := []string{"Host", "EditLogPort", "QueryPort", "IsMaster", "CurrentConnected"}
	var named Node
	follower := &sqlDouble{user: "root", answer: func(string) (*mysql.Result, error) {
		return texts(t, columns, []string{"127.0.0.1", "9010", fmt.Sprint(named.Port), "true", "No"}, []string{"127.0.0.2", "9010", "1", "false", "Yes"}), nil
	}}
	deposed := &sqlDouble{user: "root", answer: func(string) (*mysql.Result, error) {
		return texts(t, columns, []string{"127.0.0.1", "9010", "1", "false", "Yes"}), nil
	}}
	named = deposed.start(t)
	_, _, err := New(root()).Master(t.Context(), []Node{follower.start(t)})
	wantKind(t, err, ErrNoMaster)

	old := &sqlDouble{user: "root"}
	at := old.start(t)
	old.answer = func(string) (*mysql.Result, error) {
		return texts(t, []string{"IP", "EditLogPort", "QueryPort", "Role"}, []string{"127.0.0.1", "9010", fmt.Sprint(at.Port), "MASTER"}), nil
	}
	got, _, err := New(root()).Master(t.Context(), []Node{at})
	must(t, err)
	if got != at {
		t.Errorf("the master of an old version is %s, want %s", got, at)
	}
}

// certificates makes an authority and certificates of it for a server and a client.
func certificates(t *testing.T) (authority []byte, server tls.Certificate, clientCert, clientKey []byte) {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	must(t, err)
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	leaf := func(serial int64, usage x509.ExtKeyUsage) (cert, key []byte) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		c := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage}, KeyUsage: x509.KeyUsageDigitalSignature,
		}
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &k.PublicKey, caKey)
		must(t, err)
		kder, err := x509.MarshalECPrivateKey(k)
		must(t, err)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kder})
	}
	cert, key := leaf(2, x509.ExtKeyUsageServerAuth)
	server, err = tls.X509KeyPair(cert, key)
	must(t, err)
	clientCert, clientKey = leaf(3, x509.ExtKeyUsageClientAuth)
	return authority, server, clientCert, clientKey
}

func TestEncryptedConnections(t *testing.T) {
	authority, server, cert, key := certificates(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	other, otherServer, _, _ := certificates(t)
	if len(otherServer.Certificate) == 0 {
		t.Fatal("no other authority")
	}
	serverConfig := &tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	sql := &sqlDouble{user: "root", tls: serverConfig, answer: func(string) (*mysql.Result, error) {
		return texts(t, []string{"Host", "EditLogPort"}, []string{"h", "9010"}), nil
	}}
	plain := &sqlDouble{user: "root", answer: sql.answer}
	sqlAt, plainAt := sql.start(t), plain.start(t)
	web := httptest.NewUnstartedServer(body(`{"status":"OK"}`))
	web.TLS = serverConfig
	web.Config.ErrorLog = nil
	web.StartTLS()
	t.Cleanup(web.Close)
	for _, tc := range []struct {
		name                 string
		authority, cert, key []byte
		at                   Node
		ok                   bool
		kind                 error
	}{
		{"both sides show certificates", authority, cert, key, sqlAt, true, nil},
		{"the client shows none", authority, nil, nil, sqlAt, false, ErrUntrusted},
		{"the server's authority is not known", other, cert, key, sqlAt, false, ErrUntrusted},
		{"the server offers no encryption", authority, cert, key, plainAt, false, ErrUnreachable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := TLSConfig(tc.authority, tc.cert, tc.key)
			must(t, err)
			opt := root()
			opt.TLS, opt.HTTPS = c, true
			doris := New(opt)
			_, errSQL := doris.Frontends(t.Context(), tc.at)
			webAt := nodeOf(t, web.URL)
			if tc.at == plainAt {
				webAt = httpDouble(t, body(`{"status":"OK"}`))
			}
			_, errHTTP := doris.BackendHealth(t.Context(), webAt)
			if tc.ok {
				must(t, errSQL)
				must(t, errHTTP)
				return
			}
			wantKind(t, errSQL, tc.kind)
			if errHTTP == nil {
				t.Error("the HTTP call is answered")
			}
		})
	}
}

func TestTLSConfigSaysNothingOfItsInput(t *testing.T) {
	const secret = "Zq7SeCrEt9"
	authority, _, cert, key := certificates(t)
	for _, tc := range []struct {
		name                 string
		authority, cert, key []byte
	}{
		{"bundle that is none", []byte(secret), nil, nil},
		{"key that is none", authority, cert, []byte(secret)},
		{"certificate without key", authority, cert, nil},
		{"key in the place of the certificate", authority, key, []byte(secret)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := TLSConfig(tc.authority, tc.cert, tc.key)
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func FuzzShowConfig(f *testing.F) {
	f.Add([]byte(`[["be_port","int32_t","9060","false"]]`))
	f.Add([]byte(`{"data":[{"key":"a","value":"b","isMutable":true}]}`))
	f.Add([]byte(`[[1,2,3,true]]`))
	f.Add([]byte(`[{"name":"x","Value":null}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := parseShowConfig(data)
		if err != nil && items != nil {
			t.Error("settings come with an error")
		}
		for _, i := range items {
			if i.Key == "" || i.Key != strings.TrimSpace(i.Key) {
				t.Errorf("setting is %v", i)
			}
			if _, found := setting.Find(items, i.Key); !found {
				t.Errorf("setting %v is not found", i)
			}
		}
		if a, ok := parseUpdateConfig(data, "k"); ok && (a.Result == "" || a.Name != "" && a.Name != "k") {
			t.Errorf("answer is %v", a)
		}
	})
}
