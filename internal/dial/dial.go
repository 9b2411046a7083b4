// Package dial opens the connections to data systems. An operator that runs
// outside the cluster cannot reach Services and Pods by itself; it can be told
// to go through a SOCKS5 proxy that can.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/net/proxy"
)

// Func opens one connection. Names are resolved on the far side of a proxy.
type Func func(ctx context.Context, network, address string) (net.Conn, error)

// timeout bounds the opening of one connection, the handshake with a proxy
// included.
const timeout = 10 * time.Second

// Via returns the dialer for a value of --dial-via: empty for direct
// connections, or socks5://[user:password@]host:port. An error says what is
// wrong with the value and quotes no part of it: it may hold a password, and a
// mistyped one may hold it anywhere.
func Via(value string) (Func, error) {
	direct := &net.Dialer{Timeout: timeout}
	if value == "" {
		return direct.DialContext, nil
	}
	u, err := parse(value)
	if err != nil {
		return nil, fmt.Errorf("--dial-via %w; write socks5://host:port or socks5://user:password@host:port", err)
	}
	d, err := proxy.FromURL(u, direct)
	if err != nil {
		return nil, errors.New("--dial-via is not accepted by the proxy dialer")
	}
	c, ok := d.(proxy.ContextDialer)
	if !ok {
		return nil, errors.New("--dial-via: the proxy dialer cannot be cancelled")
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return c.DialContext(ctx, network, address)
	}, nil
}

func parse(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	switch {
	case err != nil: // the error quotes the value
		return nil, errors.New("is not a URL")
	case u.Scheme != "socks5" && u.Scheme != "socks5h":
		return nil, errors.New("has another scheme than socks5")
	case u.Hostname() == "":
		return nil, errors.New("names no host")
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("has something after the port")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 {
		return nil, errors.New("names no port between 1 and 65535")
	}
	return u, nil
}
