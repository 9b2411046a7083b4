package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"sync/atomic"
)

// TLSConfig makes the settings of encrypted connections out of PEM data: the
// bundle of authorities that servers are checked against (empty means those of
// the system), and the certificate and key that this client shows (empty means
// none). An error says nothing of the data's content.
func TLSConfig(authorities, certificate, key []byte) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(authorities) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, errors.New("the bundle of authorities holds no certificate in PEM form")
		}
	}
	if len(certificate) == 0 && len(key) == 0 {
		return c, nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("the client certificate and its key do not belong together, or are not in PEM form")
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// tlsFor is how a connection to one node is encrypted: its certificate has to be for
// one of the names that the node may have.
//
// asked tells afterwards that the node wanted to see a certificate and there was none:
// what it says then gets lost on the way through the driver.
func (d *Doris) tlsFor(at Node, asked *atomic.Bool) *tls.Config {
	if d.opt.TLS == nil {
		return nil
	}
	c := d.opt.TLS.Clone()
	c.ServerName = at.Host
	if len(c.Certificates) == 0 {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked.Store(true)
			return &tls.Certificate{}, nil
		}
	}
	if d.opt.ServerNames == nil {
		return c
	}
	names := d.opt.ServerNames(at)
	if len(names) == 0 {
		return c
	}
	c.ServerName = names[0]
	c.InsecureSkipVerify = true // verified right below, against several names
	c.VerifyConnection = func(s tls.ConnectionState) error { return verify(c.RootCAs, names, s.PeerCertificates) }
	return c
}

// verify checks a chain of certificates, and that the first is for one of the names. A
// name that ends in a dot stands for all that begin with it, in whatever domain the
// cluster is.
func verify(authorities *x509.CertPool, names []string, chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("tls: the server shows no certificate")
	}
	leaf := chain[0]
	opt := x509.VerifyOptions{Roots: authorities, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		opt.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(opt); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: chain, Err: err}
	}
	var first error
	for _, name := range names {
		for _, name := range inDomains(name, leaf.DNSNames) {
			err := leaf.VerifyHostname(name)
			if err == nil {
				return nil
			}
			if first == nil {
				first = err
			}
		}
	}
	return &tls.CertificateVerificationError{UnverifiedCertificates: chain, Err: first}
}

// inDomains completes a name that ends in a dot by the domains that a certificate
// speaks of.
func inDomains(name string, certified []string) []string {
	if !strings.HasSuffix(name, ".") {
		return []string{name}
	}
	out := []string{name + "cluster.local"}
	for _, c := range certified {
		if _, domain, found := strings.Cut(c, ".svc."); found {
			out = append(out, name+domain)
		}
	}
	return out
}

// untrusted tells whether a failure is about a certificate, of the server or of this
// client.
func untrusted(err error) bool {
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return true
	}
	if alert, is := errors.AsType[tls.AlertError](err); is {
		return alert != 0
	}
	// The alert of a server is of a type that cannot be named.
	return err != nil && strings.Contains(err.Error(), "remote error: tls: ")
}
