package sqlparse

import "strings"

func (p *parser) show() (Statement, error) {
	for _, scope := range []string{"FULL", "GLOBAL", "SESSION"} {
		p.words(scope)
	}
	what, err := p.showWhat()
	if err != nil {
		return nil, err
	}
	s := Show{What: what}
	switch {
	case what == "PROC":
		s.Arg, err = p.text()
		return s, err
	case what == "GRANTS" && p.words("FOR"):
		s.Arg, err = p.account()
		return s, err
	case p.words("FROM"), p.words("IN"):
		if s.Arg, err = p.name(); err != nil {
			return nil, err
		}
	}
	if p.words("LIKE") {
		s.Like, err = p.text()
	}
	if p.words("WHERE") {
		p.skipRest()
	}
	return s, err
}

// showWhat reads the word or words that say what is to be shown.
func (p *parser) showWhat() (string, error) {
	if p.words("ALL", "GRANTS") {
		return "ALL GRANTS", nil
	}
	what, err := p.name()
	if what = strings.ToUpper(what); what == "SCHEMAS" {
		what = "DATABASES"
	}
	return what, err
}

func (p *parser) skipRest() {
	for p.peek().kind != end {
		p.at++
	}
}

// nodeOps maps the words of ALTER SYSTEM to operations, longest first where one begins another.
var nodeOps = []struct {
	words []string
	op    NodeOp
}{
	{[]string{"ADD", "FOLLOWER"}, AddFollower},
	{[]string{"ADD", "OBSERVER"}, AddObserver},
	{[]string{"ADD", "BACKEND"}, AddBackend},
	{[]string{"DROP", "FOLLOWER"}, DropFollower},
	{[]string{"DROP", "OBSERVER"}, DropObserver},
	{[]string{"DROP", "BACKEND"}, DropBackend},
	{[]string{"DROPP", "BACKEND"}, ForceDropBackend},
	{[]string{"DECOMMISSION", "BACKEND"}, Decommission},
	{[]string{"MODIFY", "BACKEND"}, ModifyBackend},
	{[]string{"ADD", "BROKER"}, AddBroker},
	{[]string{"DROP", "BROKER"}, DropBroker},
}

func (p *parser) alter() (Statement, error) {
	if p.words("USER") {
		return p.alterUser()
	}
	if p.words("DATABASE") || p.words("TABLE") {
		return nil, p.fail("ALTER SYSTEM or ALTER USER")
	}
	if p.words("SYSTEM") {
		for _, o := range nodeOps {
			if p.words(o.words...) {
				return p.nodes(o.op)
			}
		}
		return nil, p.fail("an operation on a node")
	}
	return nil, p.fail("SYSTEM or USER")
}

func (p *parser) nodes(op NodeOp) (Statement, error) {
	name := ""
	if op == AddBroker || op == DropBroker {
		var err error
		if name, err = p.name(); err != nil {
			return nil, err
		}
	}
	addrs, err := list(p, p.text)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(string(op), "FOLLOWER") || strings.HasSuffix(string(op), "OBSERVER") {
		if len(addrs) > 1 {
			return nil, p.fail("one frontend per statement")
		}
	}
	s := AlterSystem{Op: op, Addrs: addrs, Name: name}
	if op == ModifyBackend {
		if err := p.wantWords("SET"); err != nil {
			return nil, err
		}
		s.Properties, err = p.properties()
		return s, err
	}
	if op == AddBackend && p.words("PROPERTIES") {
		s.Properties, err = p.properties()
	}
	return s, err
}

func (p *parser) admin() (Statement, error) {
	if p.words("SHOW", "FRONTEND", "CONFIG") {
		if !p.words("LIKE") {
			return ShowConfig{}, nil
		}
		like, err := p.text()
		return ShowConfig{Like: like}, err
	}
	if !p.words("SET") {
		return nil, p.fail("SET or SHOW FRONTEND CONFIG")
	}
	s := SetConfig{}
	if p.words("ALL", "FRONTENDS") {
		s.All = true
	} else if !p.words("FRONTEND") {
		return nil, p.fail("FRONTEND or ALL FRONTENDS")
	}
	if err := p.wantWords("CONFIG"); err != nil {
		return nil, err
	}
	var err error
	s.Values, err = p.properties()
	return s, err
}

func (p *parser) grant() (Statement, error) {
	var g Grant
	privileges, err := list(p, p.name)
	if err != nil {
		return nil, err
	}
	for _, name := range privileges {
		if name == "" {
			return nil, p.fail("a privilege")
		}
		g.Privileges = append(g.Privileges, strings.ToUpper(name[:1])+strings.ToLower(name[1:]))
	}
	if p.words("PRIVILEGES") {
		g.Privileges = []string{"Admin_priv"}
	}
	if err := p.wantWords("ON"); err != nil {
		return nil, err
	}
	// Only global grants (*.*.* and *.*) have an effect here; others are read and kept as if they were global.
	for !p.peek().is("TO") && p.peek().kind != end {
		p.at++
	}
	if err := p.wantWords("TO"); err != nil {
		return nil, err
	}
	g.Name, err = p.account()
	return g, err
}

func (p *parser) alterUser() (Statement, error) {
	p.words("IF", "EXISTS")
	name, err := p.account()
	if err != nil {
		return nil, err
	}
	if err := p.wantWords("IDENTIFIED", "BY"); err != nil {
		return nil, err
	}
	hashed := p.words("PASSWORD")
	password, err := p.text()
	return SetPassword{Name: name, Password: password, Hashed: hashed}, err
}

func (p *parser) set() (Statement, error) {
	if !p.words("PASSWORD") {
		p.skipToSemicolon()
		return Set{}, nil
	}
	var s SetPassword
	var err error
	if p.words("FOR") {
		if s.Name, err = p.account(); err != nil {
			return nil, err
		}
	}
	if err := p.wantSymbol("="); err != nil {
		return nil, err
	}
	plain := p.words("PASSWORD")
	if plain {
		if err := p.wantSymbol("("); err != nil {
			return nil, err
		}
	}
	s.Hashed = !plain
	if s.Password, err = p.text(); err != nil || !plain {
		return s, err
	}
	return s, p.wantSymbol(")")
}

func (p *parser) skipToSemicolon() {
	for p.peek().kind != end && !p.peek().isSymbol(";") {
		p.at++
	}
}

func (p *parser) createUser() (Statement, error) {
	s := CreateUser{IfNotExists: p.words("IF", "NOT", "EXISTS")}
	var err error
	if s.Name, err = p.account(); err != nil {
		return nil, err
	}
	if !p.words("IDENTIFIED", "BY") {
		return s, nil
	}
	s.Hashed = p.words("PASSWORD")
	s.Password, err = p.text()
	return s, err
}
