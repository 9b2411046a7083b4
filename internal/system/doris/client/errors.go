package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of failure. Errors of this package are found by errors.Is with one
// of them, and with context.DeadlineExceeded or context.Canceled where the time
// was over.
var (
	// ErrUnreachable: there was no answer. A change may have been made all the
	// same.
	ErrUnreachable = errors.New("unreachable")
	// ErrDenied: the node does not accept the account, or the account may not do
	// this.
	ErrDenied = errors.New("access denied")
	// ErrUntrusted: the certificate of the node, or that of this client, is not
	// accepted by the other side.
	ErrUntrusted = errors.New("certificate not accepted")
	// ErrRefused: the node answered that it does not do it.
	ErrRefused = errors.New("refused")
	// ErrAnswer: the node's answer cannot be understood.
	ErrAnswer = errors.New("answer not understood")
	// ErrInput: the call was not made, because its arguments cannot be right.
	ErrInput = errors.New("not asked")
	// ErrNoMaster: frontends answer, and none of them is the master.
	ErrNoMaster = errors.New("no frontend is master")
)

// Error is the failure of one call.
type Error struct {
	// Op is what was asked, without values: "show backends", "set qe_slow_log_ms".
	Op string
	// Node that was asked.
	Node Node
	// Kind is one of the errors above.
	Kind error
	// Code is the number of a SQL error or the status of an HTTP answer, else 0.
	Code int
	// Text is what the node or the network said, without secrets. May be empty.
	Text string
	// over is the context's error if the time was over.
	over error
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Op + " on " + e.Node.String() + ": " + e.Kind.Error()
	if e.over != nil {
		s += " in time"
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Unwrap returns the kind, and the context's error if the time was over. What
// the driver or the network returned is not kept: it may hold secrets.
func (e *Error) Unwrap() []error {
	if e.over != nil {
		return []error{e.Kind, e.over}
	}
	return []error{e.Kind}
}

// timeoutOf returns the context error that a failure amounts to, or nil.
func timeoutOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var n net.Error
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout() {
		return context.DeadlineExceeded
	}
	return nil
}

// say makes what somebody else worded fit for an error of this package.
func (d *Doris) say(text string, secrets []string) string {
	all := append([]string{}, secrets...)
	if c := d.opt.Credentials; c.Password != "" {
		all = append(all, c.Password, c.User+":"+c.Password)
	}
	return shorten(scrub(text, all...))
}

// hidden stands where a secret was.
const hidden = "***"

// longEnough is the length from which a secret is hidden wherever it occurs. A
// shorter one may be part of any word, and is hidden where it stands alone.
const longEnough = 4

// textLimit bounds what is kept of a node's words.
const textLimit = 500

// scrub removes secrets from a text that somebody else worded, in the spellings
// that servers and libraries quote them in, and makes one short line of it.
func scrub(s string, secrets ...string) string {
	spellings := map[string]bool{}
	for _, secret := range secrets {
		for _, form := range formsOf(secret) {
			spellings[form] = form != ""
		}
	}
	var forms []string
	for form, ok := range spellings {
		if ok {
			forms = append(forms, form)
		}
	}
	slices.SortFunc(forms, func(a, b string) int { // longest first: one may hold another
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	s = hideAll(s, forms)
	s = hideAll(oneLine(s), forms) // joining lines may have brought one together
	for _, form := range forms {
		if len(form) >= longEnough && strings.Contains(s, form) {
			return "" // hiding one made another
		}
	}
	return s
}

func hideAll(s string, forms []string) string {
	for _, form := range forms {
		if len(form) >= longEnough {
			s = strings.ReplaceAll(s, form, hidden)
		} else {
			s = hideAlone(s, form)
		}
	}
	return s
}

// hideAlone hides a short secret where no letter or digit touches it.
func hideAlone(s, secret string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, secret)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		before, _ := utf8.DecodeLastRuneInString(b.String() + s[:i])
		after, _ := utf8.DecodeRuneInString(s[i+len(secret):])
		b.WriteString(s[:i])
		if isWord(before) || isWord(after) {
			b.WriteString(secret)
		} else {
			b.WriteString(hidden)
		}
		s = s[i+len(secret):]
	}
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// formsOf returns a secret and the ways in which it may be spelt in a text.
func formsOf(secret string) []string {
	if secret == "" {
		return nil
	}
	quoted := strconv.Quote(secret)
	ascii := strconv.QuoteToASCII(secret)
	forms := []string{
		secret, strings.TrimSpace(secret), oneLine(secret), quoted[1 : len(quoted)-1], ascii[1 : len(ascii)-1],
		sqlText(secret), strings.ReplaceAll(secret, "'", "''"), url.QueryEscape(secret), url.PathEscape(secret),
		queryText(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
	}
	if b, err := json.Marshal(secret); err == nil && len(b) > 2 {
		forms = append(forms, string(b[1:len(b)-1]))
	}
	return forms
}

// oneLine joins lines, drops what cannot be printed and cuts a long text.
func oneLine(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// shorten cuts a text that is too long for an error.
func shorten(s string) string {
	if len(s) <= textLimit {
		return s
	}
	cut := textLimit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
