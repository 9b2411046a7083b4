package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// DialPods opens connections to ports of Pods of the namespace through the API server, as
// `kubectl port-forward` does; pods are their names by address.
func (s *Session) DialPods(pods map[string]string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("address of a Pod: %w", err)
		}
		pod, known := pods[host]
		if !known {
			return nil, fmt.Errorf("no Pod has the address %s", host)
		}
		return s.forward(ctx, pod, port)
	}
}

// forward opens one connection. Whoever waits for it goes on when the context ends; one
// that comes after that is closed.
func (s *Session) forward(ctx context.Context, pod, port string) (net.Conn, error) {
	dialer, err := s.forwarder(pod)
	if err != nil {
		return nil, fmt.Errorf("reaching Pod %q: %w", pod, err)
	}
	type opened struct {
		conn httpstream.Connection
		err  error
	}
	came := make(chan opened, 1)
	go func() {
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		came <- opened{conn, err}
	}()
	select {
	case o := <-came:
		switch {
		case apierrors.IsForbidden(o.err), o.err != nil && strings.Contains(o.err.Error(), "forbidden"): // an upgrade that is refused has no typed error
			return nil, fmt.Errorf("reaching Pod %q: your account needs the right to create pods/portforward: %w", pod, o.err)
		case o.err != nil:
			return nil, fmt.Errorf("reaching Pod %q: %w", pod, o.err)
		}
		return through(o.conn, port)
	case <-ctx.Done():
		go func() {
			if o := <-came; o.err == nil {
				_ = o.conn.Close()
			}
		}()
		return nil, fmt.Errorf("reaching Pod %q: %w", pod, ctx.Err())
	}
}

// forwarder speaks to the API server by a web socket, and the older way where it, or
// something between, cannot.
func (s *Session) forwarder(pod string) (httpstream.Dialer, error) {
	cfg := rest.CopyConfig(s.config)
	cfg.GroupVersion, cfg.APIPath, cfg.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	url := c.Post().Resource("pods").Namespace(s.Namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, cfg)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(socket, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// through is one conversation with a port over a connection to a Pod, which ends with it.
func through(conn httpstream.Connection, port string) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	faults, err := conn.CreateStream(headers)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	_ = faults.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	near, far := net.Pipe() // has the deadlines that a stream lacks
	piped := &pipedConn{Conn: near}
	end := sync.OnceFunc(func() {
		_ = far.Close()
		_ = data.Reset()
		_ = conn.Close()
	})
	go func() {
		if said, err := io.ReadAll(faults); err == nil && len(said) > 0 {
			piped.failed(errors.New(string(said)))
			end()
		}
	}()
	go func() { defer end(); _, _ = io.Copy(far, data) }()
	go func() { defer end(); _, _ = io.Copy(data, far) }()
	return piped, nil
}

// pipedConn is a connection that knows why its other end closed it.
type pipedConn struct {
	net.Conn
	mu  sync.Mutex
	why error
}

func (c *pipedConn) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = err
}

// Read says what the node of the Pod said, where nobody listens at the port.
func (c *pipedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, io.EOF) && c.why != nil {
		return n, c.why
	}
	return n, err //nolint:wrapcheck // a connection's own
}
