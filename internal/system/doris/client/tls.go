package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
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
