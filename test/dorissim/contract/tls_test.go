package contract

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// certified writes an authority and certificates of it for a server and a client into
// a directory.
func certified(t *testing.T, dir string) (authority *x509.CertPool, client tls.Certificate) {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	write := func(name, kind string, der []byte) []byte {
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		return text
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	must(t, err)
	authority = x509.NewCertPool()
	authority.AppendCertsFromPEM(write("ca.crt", "CERTIFICATE", der))
	leaf := func(name string, usage x509.ExtKeyUsage) tls.Certificate {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{usage}, KeyUsage: x509.KeyUsageDigitalSignature,
		}, ca, &key.PublicKey, caKey)
		must(t, err)
		keyDER, err := x509.MarshalECPrivateKey(key)
		must(t, err)
		pair, err := tls.X509KeyPair(write(name+".crt", "CERTIFICATE", der), write(name+".key", "EC PRIVATE KEY", keyDER))
		must(t, err)
		return pair
	}
	leaf("tls", x509.ExtKeyUsageServerAuth)
	return authority, leaf("client", x509.ExtKeyUsageClientAuth)
}

// TestEncryptedPorts asks nodes whose files say enable_tls = true.
func TestEncryptedPorts(t *testing.T) {
	dir := t.TempDir()
	authority, pair := certified(t, dir)
	c := &local.Cluster{Dir: t.TempDir(), Version: "4.1.3", Pace: local.FastPace, Log: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() { _ = c.StopAll() })
	extra := fmt.Sprintf("enable_tls = true\ntls_ca_certificate_path = %s/ca.crt\ntls_certificate_path = %s/tls.crt\ntls_private_key_path = %s/tls.key\ntls_verify_mode = verify_fail_if_no_peer_cert\n", dir, dir, dir)
	f, err := c.NewFE(extra)
	must(t, err)
	must(t, f.Start(running(t), ""))
	b, err := c.NewBE(extra)
	must(t, err)
	must(t, b.Start(running(t)))
	shows := &tls.Config{RootCAs: authority, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	ask := func(encrypted *tls.Config) error {
		config := mysql.NewConfig()
		config.User, config.Net, config.Addr = "root", "tcp", fmt.Sprintf("127.0.0.1:%d", f.QueryPort)
		config.Logger, config.TLS, config.Timeout = &mysql.NopLogger{}, encrypted, 2*time.Second
		connector, err := mysql.NewConnector(config)
		must(t, err)
		db := sql.OpenDB(connector)
		defer func() { _ = db.Close() }()
		return db.PingContext(t.Context())
	}
	eventually(t, "it answers over TLS", func() bool { return ask(shows) == nil })
	if ask(nil) == nil {
		t.Error("it answers without TLS")
	}
	if ask(&tls.Config{RootCAs: authority, MinVersion: tls.VersionTLS12}) == nil {
		t.Error("it answers who shows no certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: shows}}
	for _, port := range []int{f.HTTPPort, b.HTTPPort} {
		eventually(t, "the HTTP API answers over TLS", func() bool {
			resp, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/api/health", port))
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
		if resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/api/health", port)); err == nil {
			if _ = resp.Body.Close(); resp.StatusCode == http.StatusOK {
				t.Error("the HTTP API answers without TLS")
			}
		}
	}
}
