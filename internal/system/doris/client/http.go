package client

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// bodyLimit bounds what is read of an answer. The settings of a backend are some
// hundred kilobytes.
const bodyLimit = 8 << 20

// request is one HTTP call.
type request struct {
	op     string
	method string
	path   string
	query  url.Values
	// timeout bounds the call, where it may take longer than others.
	timeout time.Duration
	// secrets are texts of the query that errors must not hold.
	secrets []string
}

// call makes a request and returns the body of an answer with status 200.
func (d *Doris) call(ctx context.Context, at Node, r request) ([]byte, error) {
	e := &Error{Op: r.op, Node: at, Kind: ErrInput}
	if !at.valid() {
		e.Text = "the host or port is not valid"
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, max(r.timeout, d.opt.CallTimeout))
	defer cancel()
	e.Kind = ErrUnreachable // unless an answer decides
	body, err := d.exchange(ctx, at, r, e)
	if err == nil {
		return body, nil
	}
	if u, ok := errors.AsType[*url.Error](err); ok { // its text holds the whole query
		err = u.Err
	}
	e.Text = d.say(err.Error(), r.secrets)
	if e.Kind == ErrUnreachable && untrusted(err) { //nolint:errorlint // a field of ours, never wrapped
		e.Kind = ErrUntrusted
		return nil, e
	}
	if e.Kind == ErrUnreachable { //nolint:errorlint // a field of ours, never wrapped
		if e.over = timeoutOf(ctx, err); e.over != nil {
			e.Text = ""
		}
	}
	return nil, e
}

// exchange sets the kind and code of e where the answer decides them.
func (d *Doris) exchange(ctx context.Context, at Node, r request, e *Error) ([]byte, error) {
	u := url.URL{Scheme: "http", Host: at.String(), Path: r.path, RawQuery: queryOf(r.query)}
	if d.opt.HTTPS {
		u.Scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), http.NoBody)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller words it
	}
	if c := d.opt.Credentials; c.User != "" {
		req.SetBasicAuth(c.User, c.Password)
	}
	transport := d.transport(at)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the account is for the node that was named
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller words it
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		e.Code = resp.StatusCode
		return nil, refusal(resp, e)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit+1))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller words it
	}
	if len(body) > bodyLimit {
		e.Kind = ErrAnswer
		return nil, errors.New("the answer is too long")
	}
	return body, nil
}

// refusal says what a status other than 200 means.
func refusal(resp *http.Response, e *Error) error {
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		e.Kind = ErrDenied
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		e.Kind = ErrAnswer
		return errors.New("a redirection is not followed")
	default:
		e.Kind = ErrRefused
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, textLimit))
	if err != nil || len(text) == 0 {
		text = []byte(http.StatusText(resp.StatusCode))
	}
	return errors.New(string(text))
}

// transport is for one call; connections are not kept.
func (d *Doris) transport(at Node) *http.Transport {
	t := &http.Transport{
		DialContext: d.dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 16,
		TLSHandshakeTimeout: d.opt.ConnectTimeout,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 is what nodes speak
	}
	t.TLSClientConfig = d.tlsFor(at, new(atomic.Bool))
	return t
}

// queryOf writes a query with every blank as %20: not every node reads a plus
// sign as one.
func queryOf(values url.Values) string {
	return strings.ReplaceAll(values.Encode(), "+", "%20")
}

// queryText is one text of such a query.
func queryText(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
