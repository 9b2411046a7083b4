package doris

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// certificate makes an authority, and a certificate of it that servers and clients may
// show, for names and addresses.
func certificate(t *testing.T, names []string, addresses ...net.IP) map[string][]byte {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	fatal(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, DNSNames: names, IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}, ca, &key.PublicKey, caKey)
	fatal(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	fatal(t, err)
	return map[string][]byte{
		"ca.crt":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

// encryptedNodes are a frontend and a backend of the stand-in, which is a test double,
// that speak TLS, and the Secret that the operator reads.
type encryptedNodes struct {
	*local.Cluster
	dir    string
	secret map[string][]byte
	reads  int
	nodes  Nodes
	dc     *dorisv1.DorisCluster
}

func (e *encryptedNodes) serve(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, text := range files {
		fatal(t, os.WriteFile(filepath.Join(e.dir, name), text, 0o600))
	}
}

func startEncrypted(t *testing.T, more string, files map[string][]byte) *encryptedNodes {
	t.Helper()
	e := &encryptedNodes{
		Cluster: &local.Cluster{Dir: t.TempDir(), Version: "4.1.3", Pace: local.FastPace, Log: slog.New(slog.DiscardHandler)},
		dir:     t.TempDir(), secret: files, dc: &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "doris", UID: "uid"}},
	}
	e.serve(t, files)
	extra := fmt.Sprintf("enable_tls = true\ntls_ca_certificate_path = %[1]s/ca.crt\ntls_certificate_path = %[1]s/tls.crt\ntls_private_key_path = %[1]s/tls.key\n%[2]s\n", e.dir, more)
	ctx := context.WithoutCancel(t.Context())
	fe, err := e.NewFE(extra)
	fatal(t, err)
	fatal(t, fe.Start(ctx, ""))
	be, err := e.NewBE(extra)
	fatal(t, err)
	fatal(t, be.Start(ctx))
	t.Cleanup(func() { _ = e.StopAll() })
	e.nodes = NewNodes((&net.Dialer{}).DialContext, func(context.Context, string, string) (map[string][]byte, error) {
		e.reads++
		return e.secret, nil
	})
	return e
}

// at is how the frontend is asked with a Secret of some version.
func (e *encryptedNodes) at(version string, names ...string) databaseAddress {
	node := client.Node{Host: "127.0.0.1", Port: int32(e.FEs[0].QueryPort)}
	tls := &encryption{kind: dorisv1.ComponentFE, ca: pemFile{"tls", "ca.crt"}, cert: pemFile{"tls", "tls.crt"}, key: pemFile{"tls", "tls.key"}, versions: version}
	if len(names) > 0 {
		tls.names = map[string][]string{"127.0.0.1": names}
	}
	return databaseAddress{cluster: e.dc, frontends: []client.Node{node}, tls: tls}
}

// members asks until the frontend serves.
func (e *encryptedNodes) members(t *testing.T, at databaseAddress) (membersAnswer, error) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := e.nodes.(Database).Members(t.Context(), at, false)
		if err == nil || errors.Is(err, client.ErrUntrusted) || time.Now().After(deadline) {
			return answer, err
		}
	}
}

func TestDatabaseIsAskedOverTLS(t *testing.T) {
	t.Parallel()
	const host = "doris-fe-0.doris-fe-internal.shop.svc"
	loopback := net.IPv4(127, 0, 0, 1)
	good := certificate(t, []string{"*.doris-fe-internal.shop.svc.example.org"}, loopback)
	e := startEncrypted(t, "", good)
	t.Run("right authority", func(t *testing.T) {
		answer, err := e.members(t, e.at("1"))
		if err != nil || len(answer.frontends) != 1 || !answer.frontends[0].IsMaster {
			t.Fatalf("members are %v, %v", answer, err)
		}
	})
	t.Run("by the name of the Pod, in whatever domain", func(t *testing.T) {
		if _, err := e.members(t, e.at("1", host+".")); err != nil {
			t.Error(err)
		}
	})
	t.Run("by another name", func(t *testing.T) {
		_, err := e.members(t, e.at("1", "doris-fe-0.other-fe-internal.shop.svc."))
		if !errors.Is(err, client.ErrUntrusted) || !strings.Contains(err.Error(), "doris-fe-internal") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a backend's settings", func(t *testing.T) {
		at := nodeAddress{cluster: e.dc, kind: dorisv1.ComponentBE, host: "127.0.0.1", http: int32(e.BEs[0].HTTPPort), tls: e.at("1").tls}
		if items, err := e.nodes.Settings(t.Context(), at); err != nil || len(items) == 0 {
			t.Errorf("%d settings, %v", len(items), err)
		}
		at.tls = nil
		if _, err := e.nodes.Settings(t.Context(), at); err == nil {
			t.Error("it answers without TLS")
		}
	})
	t.Run("the Secret is read once for each version", func(t *testing.T) {
		before := e.reads
		for range 5 {
			_, err := e.members(t, e.at("1"))
			fatal(t, err)
		}
		if e.reads != before {
			t.Errorf("it was read %d times more", e.reads-before)
		}
	})
	t.Run("rotated, then wrong, then right", func(t *testing.T) {
		next := certificate(t, nil, loopback)
		e.serve(t, next)
		_, err := e.members(t, e.at("1"))
		if !errors.Is(err, client.ErrUntrusted) || !strings.Contains(err.Error(), "signed by unknown authority") {
			t.Fatalf("with the old authority: %v", err)
		}
		if reason, _ := unanswered(err); reason != "CertificateNotAccepted" {
			t.Errorf("the reason is %s", reason)
		}
		e.secret = next
		if _, err := e.members(t, e.at("2")); err != nil {
			t.Errorf("with the new one: %v", err)
		}
	})
	t.Run("what is in the Secret is in no error", func(t *testing.T) {
		e.secret = map[string][]byte{"ca.crt": []byte("SECRETTEXT"), "tls.crt": []byte("SECRETTEXT"), "tls.key": []byte("SECRETTEXT")}
		_, err := e.members(t, e.at("3"))
		if err == nil || strings.Contains(fmt.Sprintf("%+v", err), "SECRETTEXT") || !strings.Contains(err.Error(), `Secret tls: the bundle of authorities`) {
			t.Errorf("the error is %v", err)
		}
		e.secret = map[string][]byte{}
		if _, err := e.members(t, e.at("4")); err == nil || !strings.Contains(err.Error(), `Secret "tls" has no key ca.crt, which the frontends need`) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestFrontendsThatWantACertificate(t *testing.T) {
	t.Parallel()
	e := startEncrypted(t, "tls_verify_mode = verify_fail_if_no_peer_cert", certificate(t, nil, net.IPv4(127, 0, 0, 1)))
	at := e.at("1")
	if _, err := e.members(t, at); err != nil {
		t.Errorf("with one: %v", err)
	}
	without := *at.tls
	without.cert, without.key, without.versions = pemFile{}, pemFile{}, "2"
	at.tls = &without
	if _, err := e.members(t, at); !errors.Is(err, client.ErrUntrusted) {
		t.Errorf("without one: %v", err)
	}
}

// TestEncryptionOfTheResource reads from a resource how its nodes are asked.
func TestEncryptionOfTheResource(t *testing.T) {
	t.Parallel()
	p := planner{
		dc: &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "doris"}},
		world: World{
			Versions: map[string]string{"tls-fe": "u 7", "ca": "u 9"},
			Pods:     map[string][]corev1.Pod{"fe": {{ObjectMeta: metav1.ObjectMeta{Name: "doris-fe-0"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}}},
		},
	}
	p.dc.Spec.FeSpec = &dorisv1.FeSpec{}
	p.dc.Spec.FeSpec.Secrets = []dorisv1.Secret{{SecretName: "other"}, {SecretName: "tls-fe", MountPath: "/etc/tls/"}, {SecretName: "ca", MountPath: "/etc/ca"}}
	recorded := accepted{Frontend: FrontendConfig{FQDN: true, TLS: &TLSFiles{CA: "/etc/ca/root.pem", Cert: "/etc/tls/tls.crt", Key: "/etc/tls/tls.key"}}}
	if got := p.encryptionOf(dorisv1.ComponentBE, recorded); got != nil {
		t.Errorf("backends are asked by %+v", got)
	}
	got := p.encryptionOf(dorisv1.ComponentFE, recorded)
	want := &encryption{
		kind: dorisv1.ComponentFE, ca: pemFile{"ca", "root.pem"}, cert: pemFile{"tls-fe", "tls.crt"}, key: pemFile{"tls-fe", "tls.key"},
		versions: "ca u 9 tls-fe u 7 tls-fe u 7",
		names: map[string][]string{"10.0.0.1": {
			"doris-fe-0.doris-fe-internal.shop.svc.", "doris-fe-0.doris-fe-internal.shop.svc", "doris-fe-service.shop.svc.", "doris-fe-service.shop.svc", "10.0.0.1",
		}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(encryption{}, pemFile{})); diff != "" {
		t.Errorf("encryption (-want +got):\n%s", diff)
	}
	recorded.Frontend.TLS.CA = "/opt/ca.pem"
	if got := p.encryptionOf(dorisv1.ComponentFE, recorded); !strings.Contains(got.problem, "no Secret of spec.feSpec.secrets is mounted at /opt") {
		t.Errorf("the problem is %q", got.problem)
	}
}
