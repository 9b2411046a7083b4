package conf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// TLS are the settings of the ports that clients use (SQL and HTTP), nil without
// enable_tls. The files are read at each handshake, so that new certificates need no
// restart. With a CA a certificate of the client is checked where it shows one, and
// asked for where tls_verify_mode is verify_fail_if_no_peer_cert.
func (v Values) TLS() (*tls.Config, error) {
	if !v.Bool("enable_tls", false) {
		return nil, nil //nolint:nilnil // nothing is encrypted then, and nothing is wrong
	}
	if _, err := v.handshake(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return v.handshake()
	}}, nil
}

func (v Values) handshake() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(v["tls_certificate_path"], v["tls_private_key_path"])
	if err != nil {
		return nil, fmt.Errorf("enable_tls: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	file := v["tls_ca_certificate_path"]
	if file == "" {
		return c, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("enable_tls: %w", err)
	}
	if c.ClientCAs = x509.NewCertPool(); !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("enable_tls: tls_ca_certificate_path holds no certificate")
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven
	if strings.EqualFold(v["tls_verify_mode"], "verify_fail_if_no_peer_cert") {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}
