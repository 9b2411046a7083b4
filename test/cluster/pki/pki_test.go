package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func authority(t *testing.T) *Authority {
	t.Helper()
	ca, err := New(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issued(t *testing.T, ca *Authority, file string, id Identity) *x509.Certificate {
	t.Helper()
	if err := ca.Issue(file, id); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(ca.Cert(file), ca.Key(file))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestIssuedCertificate(t *testing.T) {
	ca := authority(t)
	cert := issued(t, ca, "server", Identity{Name: "me", Groups: []string{"ours"}, Hosts: []string{"127.0.0.1", "localhost"}})
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("as %s: %v", host, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "10.0.0.1"}); err == nil {
		t.Error("the certificate answers for a host it was not issued for")
	}
	if cert.Subject.CommonName != "me" || strings.Join(cert.Subject.Organization, ",") != "ours" {
		t.Errorf("subject = %s", cert.Subject)
	}
	if cert.IsCA {
		t.Error("an issued certificate can issue others")
	}
}

func TestCertificateOfAnotherClusterIsRefused(t *testing.T) {
	cert := issued(t, authority(t), "client", Identity{Name: "me"})
	roots := x509.NewCertPool()
	roots.AddCert(authority(t).cert)
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: usages}); err == nil {
		t.Error("another authority's certificate was accepted")
	}
}

func TestKeysAreReadByTheirOwnerOnly(t *testing.T) {
	ca := authority(t)
	if err := ca.IssueKeyPair("signing"); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := ca.Kubeconfig(config, "https://127.0.0.1:1", "user", Identity{Name: "user"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{ca.Key("ca"), ca.Key("signing"), ca.Key("user"), config} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(path), mode)
		}
	}
}
