package sqlparse

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError says where a statement could not be read.
type SyntaxError struct {
	Near string
	Want string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("errCode = 2, detailMessage = Syntax error near '%s': expected %s", e.Near, e.Want)
}

type parser struct {
	in     string
	tokens []token
	at     int
}

// Parse reads exactly one statement; a semicolon at its end is allowed, a second statement is not.
func Parse(in string) (Statement, error) {
	ts, err := tokens(in)
	if err != nil {
		return nil, &SyntaxError{Near: clip(in), Want: err.Error()}
	}
	p := &parser{in: in, tokens: ts}
	s, err := p.statement()
	if err != nil {
		return nil, err
	}
	for p.symbol(";") {
	}
	if p.peek().kind != end {
		return nil, p.fail("the end of the statement (one statement per query)")
	}
	return s, nil
}

// statements are the ways in which statements begin.
func (p *parser) statements() map[string]func() (Statement, error) {
	return map[string]func() (Statement, error){
		"SHOW": p.show, "ALTER": p.alter, "CANCEL": p.cancel, "ADMIN": p.admin, "CREATE": p.create, "DROP": p.drop,
		"GRANT": p.grant, "SET": p.set, "INSERT": p.insert, "SELECT": p.selectRows, "USE": p.use,
	}
}

func (p *parser) statement() (Statement, error) {
	t := p.peek()
	read, ok := p.statements()[strings.ToUpper(t.value)]
	if !ok || t.kind != word {
		return nil, p.fail("a statement")
	}
	p.at++
	return read()
}

func (p *parser) use() (Statement, error) {
	name, err := p.name()
	return Use{Database: name}, err
}

func (p *parser) cancel() (Statement, error) {
	if err := p.wantWords("DECOMMISSION", "BACKEND"); err != nil {
		return nil, err
	}
	return p.nodes(CancelDecommiss)
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) advance() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

// words takes the keywords if all of them come next, in order.
func (p *parser) words(keywords ...string) bool {
	for i, k := range keywords {
		if p.at+i >= len(p.tokens) || !p.tokens[p.at+i].is(k) {
			return false
		}
	}
	p.at += len(keywords)
	return true
}

func (p *parser) symbol(s string) bool {
	if p.peek().isSymbol(s) {
		p.at++
		return true
	}
	return false
}

func (p *parser) wantWords(keywords ...string) error {
	if p.words(keywords...) {
		return nil
	}
	return p.fail(strings.Join(keywords, " "))
}

func (p *parser) wantSymbol(s string) error {
	if p.symbol(s) {
		return nil
	}
	return p.fail("'" + s + "'")
}

func (p *parser) text() (string, error) {
	if t := p.peek(); t.kind == text {
		p.at++
		return t.value, nil
	}
	return "", p.fail("a quoted text")
}

func (p *parser) name() (string, error) {
	if t := p.peek(); t.kind == word || t.kind == quoted {
		p.at++
		return t.value, nil
	}
	return "", p.fail("a name")
}

func (p *parser) number() (int, error) {
	t := p.peek()
	n, err := strconv.Atoi(t.value)
	if t.kind != number || err != nil {
		return 0, p.fail("a number")
	}
	p.at++
	return n, nil
}

func (p *parser) fail(want string) error {
	return &SyntaxError{Near: clip(p.in[p.peek().pos:]), Want: want}
}

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// list reads items with commas between them.
func list[T any](p *parser, item func() (T, error)) ([]T, error) {
	var out []T
	for {
		v, err := item()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if !p.symbol(",") {
			return out, nil
		}
	}
}

// properties reads ("k"="v", …).
func (p *parser) properties() (map[string]string, error) {
	if err := p.wantSymbol("("); err != nil {
		return nil, err
	}
	out := map[string]string{}
	_, err := list(p, func() (struct{}, error) {
		k, err := p.text()
		if err != nil {
			return struct{}{}, err
		}
		if err := p.wantSymbol("="); err != nil {
			return struct{}{}, err
		}
		v, err := p.text()
		out[k] = v
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	return out, p.wantSymbol(")")
}

// account reads 'name'[@'host'], with or without quotes. The host is not kept: accounts here hold for every host.
func (p *parser) account() (string, error) {
	t := p.advance()
	if t.kind != word && t.kind != quoted && t.kind != text {
		p.at--
		return "", p.fail("a user")
	}
	if at := p.peek(); at.kind == variable {
		p.at++
		if at.value == "" {
			host := p.advance()
			if host.kind != text && host.kind != quoted && !host.isSymbol("%") {
				return "", p.fail("a host")
			}
		}
	}
	return t.value, nil
}

func (p *parser) tableName() (Name, error) {
	first, err := p.name()
	if err != nil {
		return Name{}, err
	}
	if !p.symbol(".") {
		return Name{Table: first}, nil
	}
	second, err := p.name()
	if err != nil || !p.symbol(".") {
		return Name{Database: first, Table: second}, err
	}
	third, err := p.name() // catalog.database.table
	return Name{Database: second, Table: third}, err
}
