// Package dial opens the connections to data systems. An operator that runs
// outside the cluster cannot reach Services and Pods by itself; it can be told
// to go through a SOCKS5 proxy that can.
package dial

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

// Func opens one connection. Names are resolved on the far side of a proxy.
type Func func(ctx context.Context, network, address string) (net.Conn, error)

// timeout bounds the opening of one connection when the context does not.
const timeout = 10 * time.Second

// Via returns the dialer for a value of --dial-via: empty for direct
// connections, or socks5://[user:password@]host:port. An error names what is
// wrong with the value, never its password.
func Via(value string) (Func, error) {
	direct := &net.Dialer{Timeout: timeout}
	if value == "" {
		return direct.DialContext, nil
	}
	u, err := url.Parse(value)
	if err != nil {
		return nil, fmt.Errorf("--dial-via is not a URL; write socks5://host:port")
	}
	if u.Scheme != "socks5" && u.Scheme != "socks5h" {
		return nil, fmt.Errorf("--dial-via has the scheme %q; only socks5://host:port is offered", u.Scheme)
	}
	if _, _, err := net.SplitHostPort(u.Host); err != nil {
		return nil, fmt.Errorf("--dial-via needs a host and a port, such as socks5://127.0.0.1:1080")
	}
	d, err := proxy.FromURL(u, direct)
	if err != nil {
		return nil, fmt.Errorf("--dial-via: %w", err)
	}
	c, ok := d.(proxy.ContextDialer)
	if !ok {
		return nil, fmt.Errorf("--dial-via: the proxy dialer cannot be cancelled")
	}
	return c.DialContext, nil
}
