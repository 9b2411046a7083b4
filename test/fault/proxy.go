package fault

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Options say where a proxy leads and whom it harms.
type Options struct {
	// Upstream is the API server: its address and what it is known by. Nothing
	// else is used of it.
	Upstream *rest.Config
	// Kill ends the operator with SIGKILL, and returns when it has ended.
	Kill func()
}

// Proxy stands between one operator and the API server. It is safe for
// concurrent use.
type Proxy struct {
	server    *httptest.Server
	upstream  *url.URL
	transport *http.Transport
	forward   *httputil.ReverseProxy
	kill      func()

	mu      sync.Mutex
	plans   []Plan
	fired   []Plan
	count   int
	writes  []*Write // that have a number
	others  []*Write
	watches map[*watching]struct{}
	begun   int                 // watches ever
	newest  time.Time           // when the last of them began
	lists   map[string]keptList // the first of each request
	old     map[string]bool     // requests whose next answer is that one
	served  int                 // such answers
}

// Start starts a proxy on a free port.
func Start(o Options) (*Proxy, error) {
	known := rest.CopyConfig(o.Upstream)
	if err := rest.LoadTLSFiles(known); err != nil {
		return nil, err
	}
	upstream, err := url.Parse(known.Host)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(known.CAData) {
		return nil, errors.New("no certificate to know the API server by")
	}
	p := &Proxy{
		upstream: upstream, kill: o.Kill,
		transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true, DisableCompression: true,
		},
		watches: map[*watching]struct{}{}, lists: map[string]keptList{}, old: map[string]bool{},
	}
	silent := log.New(io.Discard, "", 0) // broken connections are what this is for
	p.forward = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { p.address(r.Out) },
		Transport: p.transport, FlushInterval: -1, ErrorLog: silent,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = silent
	p.server.StartTLS()
	return p, nil
}

// Config is what the operator finds the proxy by. It holds no credentials.
func (p *Proxy) Config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return &rest.Config{Host: p.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() {
	p.cut("")
	p.server.CloseClientConnections()
	p.server.Close()
	p.transport.CloseIdleConnections()
}

// Arm forgets what was counted, so that the next write is number 1, and sets
// what shall happen.
func (p *Proxy) Arm(plans ...Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans, p.fired = slices.Clone(plans), nil
	p.count, p.writes, p.others = 0, nil, nil
	clear(p.old)
}

// Writes lists the numbered writes since the proxy was armed.
func (p *Proxy) Writes() []Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return values(p.writes)
}

// Unnumbered lists the events and leases that were written.
func (p *Proxy) Unnumbered() []Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return values(p.others)
}

func values(list []*Write) []Write {
	out := make([]Write, 0, len(list))
	for _, w := range list {
		out = append(out, *w)
	}
	return out
}

// Fired lists the faults that happened.
func (p *Proxy) Fired() []Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.fired)
}

// Watches counts the watches that were ever begun.
func (p *Proxy) Watches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// LastWatch is when the newest watch began.
func (p *Proxy) LastWatch() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := parse(r)
	switch {
	case q.writes():
		p.write(w, r, q)
	case q.watch:
		p.watch(w, r, q)
	case q.lists():
		p.list(w, r, q)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// address turns a request to the proxy into one to the API server.
func (p *Proxy) address(out *http.Request) {
	out.URL.Scheme, out.URL.Host, out.Host = p.upstream.Scheme, p.upstream.Host, ""
}
