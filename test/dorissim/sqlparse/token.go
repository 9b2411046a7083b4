// Package sqlparse reads the statements that the stand-in's FE understands. It is a small part of Doris's SQL: node
// statements, accounts, configuration, and enough of tables and rows to show that rows survive.
package sqlparse

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	end kind = iota
	word
	quoted // `name`
	text   // 'text' or "text"
	number
	symbol
	variable // @@name or @name
)

type token struct {
	kind  kind
	value string
	pos   int
}

func (t token) is(keyword string) bool { return t.kind == word && strings.EqualFold(t.value, keyword) }

func (t token) isSymbol(s string) bool { return t.kind == symbol && t.value == s }

type lexer struct {
	in  string
	pos int
}

// tokens splits a statement. The last token is always of kind end.
func tokens(in string) ([]token, error) {
	l := &lexer{in: in}
	var out []token
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		if t.kind == end {
			return out, nil
		}
	}
}

func (l *lexer) next() (token, error) {
	if err := l.skipBlank(); err != nil {
		return token{}, err
	}
	start := l.pos
	if start == len(l.in) {
		return token{kind: end, pos: start}, nil
	}
	r, size := utf8.DecodeRuneInString(l.in[start:])
	switch {
	case r == '\'' || r == '"' || r == '`':
		return l.quotedToken(byte(r))
	case r == '@':
		l.take(func(r rune) bool { return r == '@' })
		name := l.take(isWord)
		return token{kind: variable, value: name, pos: start}, nil
	case unicode.IsDigit(r):
		return token{kind: number, value: l.take(func(r rune) bool { return unicode.IsDigit(r) || r == '.' }), pos: start}, nil
	case isWord(r):
		return token{kind: word, value: l.take(isWord), pos: start}, nil
	}
	for _, s := range []string{"<=>", "<=", ">=", "<>", "!="} {
		if strings.HasPrefix(l.in[start:], s) {
			l.pos += len(s)
			return token{kind: symbol, value: s, pos: start}, nil
		}
	}
	l.pos += size
	return token{kind: symbol, value: l.in[start:l.pos], pos: start}, nil
}

func isWord(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func (l *lexer) take(ok func(rune) bool) string {
	start := l.pos
	for l.pos < len(l.in) {
		r, size := utf8.DecodeRuneInString(l.in[l.pos:])
		if !ok(r) {
			break
		}
		l.pos += size
	}
	return l.in[start:l.pos]
}

func (l *lexer) skipBlank() error {
	for l.pos < len(l.in) {
		rest := l.in[l.pos:]
		switch {
		case strings.HasPrefix(rest, "/*"):
			i := strings.Index(rest, "*/")
			if i < 0 {
				return fmt.Errorf("comment does not end at position %d", l.pos)
			}
			l.pos += i + 2
		case strings.HasPrefix(rest, "-- "), strings.HasPrefix(rest, "#"):
			i := strings.IndexByte(rest, '\n')
			if i < 0 {
				i = len(rest) - 1
			}
			l.pos += i + 1
		default:
			r, size := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != 0 {
				return nil
			}
			l.pos += size
		}
	}
	return nil
}

func (l *lexer) quotedToken(quote byte) (token, error) {
	start := l.pos
	var out strings.Builder
	for i := start + 1; i < len(l.in); i++ {
		c := l.in[i]
		switch {
		case c == '\\' && quote != '`' && i+1 < len(l.in):
			i++
			out.WriteString(unescape(l.in[i]))
		case c == quote && i+1 < len(l.in) && l.in[i+1] == quote:
			i++
			out.WriteByte(quote)
		case c == quote:
			l.pos = i + 1
			k := text
			if quote == '`' {
				k = quoted
			}
			return token{kind: k, value: out.String(), pos: start}, nil
		default:
			out.WriteByte(c)
		}
	}
	return token{}, fmt.Errorf("quote does not end at position %d", start)
}

func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case '0':
		return "\x00"
	}
	return string([]byte{c})
}
