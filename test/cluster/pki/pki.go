// Package pki makes the certificates and kubeconfigs of one local cluster.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is generous: a local cluster never renews.
const lifetime = 5 * 365 * 24 * time.Hour

// Authority signs the certificates of one cluster and keeps them in a directory.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  time.Time
}

// Identity is what a certificate says about its holder.
type Identity struct {
	Name   string   // the common name: a Kubernetes user
	Groups []string // the organisations: Kubernetes groups
	Hosts  []string // names and addresses that a server answers for
}

// New makes an authority; its certificate is written to dir/ca.crt and its key to dir/ca.key.
func New(dir string, now time.Time) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "fairlead-local-cluster"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a := &Authority{dir: dir, key: key, now: now}
	if a.cert, err = a.write("ca", template, key); err != nil {
		return nil, fmt.Errorf("make the authority: %w", err)
	}
	return a, nil
}

// Issue writes dir/<file>.crt and dir/<file>.key for the identity.
func (a *Authority) Issue(file string, id Identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: id.Name, Organization: id.Groups},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, host := range id.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if _, err := a.write(file, template, key); err != nil {
		return fmt.Errorf("make the certificate of %q: %w", id.Name, err)
	}
	return nil
}

// IssueKeyPair writes a bare signing key to dir/<file>.key and its public half
// to dir/<file>.pub.
func (a *Authority) IssueKeyPair(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := a.writePEM(file+".pub", "PUBLIC KEY", public); err != nil {
		return err
	}
	return a.writeKey(file, key)
}

// Cert and Key return the paths of an issued certificate.
func (a *Authority) Cert(file string) string { return filepath.Join(a.dir, file+".crt") }

// Key returns the path of an issued key.
func (a *Authority) Key(file string) string { return filepath.Join(a.dir, file+".key") }

// Pub returns the path of the public half of an issued key pair.
func (a *Authority) Pub(file string) string { return filepath.Join(a.dir, file+".pub") }

// write signs the template and stores certificate and key. Without a
// certificate of its own yet, the authority signs itself.
func (a *Authority) write(file string, template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = a.now.Add(-time.Hour)
	template.NotAfter = a.now.Add(lifetime)
	parent := a.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	if err := a.writePEM(file+".crt", "CERTIFICATE", der); err != nil {
		return nil, err
	}
	if err := a.writeKey(file, key); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (a *Authority) writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return a.writePEM(file+".key", "EC PRIVATE KEY", der)
}

func (a *Authority) writePEM(file, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	return os.WriteFile(filepath.Join(a.dir, file), data, 0o600)
}
