package sqlparse

import "strings"

func (p *parser) create() (Statement, error) {
	switch {
	case p.words("USER"):
		return p.createUser()
	case p.words("DATABASE"), p.words("SCHEMA"):
		s := CreateDatabase{IfNotExists: p.words("IF", "NOT", "EXISTS")}
		var err error
		s.Name, err = p.name()
		return s, err
	case p.words("TABLE"):
		return p.createTable()
	}
	return nil, p.fail("USER, DATABASE or TABLE")
}

func (p *parser) createTable() (Statement, error) {
	s := CreateTable{IfNotExists: p.words("IF", "NOT", "EXISTS")}
	var err error
	if s.Name, err = p.tableName(); err != nil {
		return nil, err
	}
	if err := p.wantSymbol("("); err != nil {
		return nil, err
	}
	if s.Columns, err = list(p, p.column); err != nil {
		return nil, err
	}
	if err := p.wantSymbol(")"); err != nil {
		return nil, err
	}
	return s, p.tableOptions(&s)
}

func (p *parser) column() (ColumnDef, error) {
	name, err := p.name()
	if err != nil {
		return ColumnDef{}, err
	}
	kind, err := p.name()
	if err != nil {
		return ColumnDef{}, err
	}
	c := ColumnDef{Name: name, Type: strings.ToUpper(kind)}
	// The rest of the definition (length, NOT NULL, DEFAULT, COMMENT) has no effect here.
	for depth := 0; p.peek().kind != end; p.at++ {
		t := p.peek()
		if t.isSymbol("(") {
			depth++
		}
		if depth == 0 && (t.isSymbol(",") || t.isSymbol(")")) {
			break
		}
		if t.isSymbol(")") {
			depth--
		}
	}
	return c, nil
}

// tableOptions reads keys, distribution and properties, and passes over what has no effect here.
func (p *parser) tableOptions(s *CreateTable) error {
	for p.peek().kind != end && !p.peek().isSymbol(";") {
		switch {
		case p.words("BUCKETS"):
			if p.words("AUTO") {
				continue
			}
			n, err := p.number()
			if err != nil {
				return err
			}
			s.Buckets = n
		case p.words("HASH"):
			if err := p.wantSymbol("("); err != nil {
				return err
			}
			name, err := p.name()
			if err != nil {
				return err
			}
			s.HashColumn = name
		case p.words("PROPERTIES"):
			properties, err := p.properties()
			if err != nil {
				return err
			}
			s.Properties = properties
		default:
			p.at++
		}
	}
	return nil
}

func (p *parser) drop() (Statement, error) {
	switch {
	case p.words("USER"):
		s := DropUser{IfExists: p.words("IF", "EXISTS")}
		var err error
		s.Name, err = p.account()
		return s, err
	case p.words("DATABASE"), p.words("SCHEMA"):
		s := DropDatabase{IfExists: p.words("IF", "EXISTS")}
		var err error
		s.Name, err = p.name()
		p.words("FORCE")
		return s, err
	case p.words("TABLE"):
		s := DropTable{IfExists: p.words("IF", "EXISTS")}
		var err error
		s.Name, err = p.tableName()
		p.words("FORCE")
		return s, err
	}
	return nil, p.fail("USER, DATABASE or TABLE")
}

func (p *parser) insert() (Statement, error) {
	if err := p.wantWords("INTO"); err != nil {
		return nil, err
	}
	var s Insert
	var err error
	if s.Name, err = p.tableName(); err != nil {
		return nil, err
	}
	if p.symbol("(") {
		if s.Columns, err = list(p, p.name); err != nil {
			return nil, err
		}
		if err := p.wantSymbol(")"); err != nil {
			return nil, err
		}
	}
	if err := p.wantWords("VALUES"); err != nil {
		return nil, err
	}
	s.Rows, err = list(p, p.row)
	return s, err
}

func (p *parser) row() ([]*string, error) {
	if err := p.wantSymbol("("); err != nil {
		return nil, err
	}
	values, err := list(p, p.value)
	if err != nil {
		return nil, err
	}
	return values, p.wantSymbol(")")
}

// value reads a constant.
func (p *parser) value() (*string, error) {
	if p.words("NULL") {
		return nil, nil
	}
	sign := ""
	if p.symbol("-") {
		sign = "-"
	}
	t := p.peek()
	switch {
	case t.kind == number, t.kind == text && sign == "":
		p.at++
		v := sign + t.value
		return &v, nil
	case t.is("TRUE"), t.is("FALSE"):
		p.at++
		v := map[bool]string{true: "1", false: "0"}[t.is("TRUE")]
		return &v, nil
	}
	return nil, p.fail("a constant")
}

func (p *parser) selectRows() (Statement, error) {
	s := Select{Limit: -1}
	var err error
	if s.Items, err = list(p, p.item); err != nil {
		return nil, err
	}
	if p.words("FROM") {
		name, err := p.tableName()
		if err != nil {
			return nil, err
		}
		s.From = &name
	}
	if p.words("WHERE") {
		if s.Where, err = p.conditions(); err != nil {
			return nil, err
		}
	}
	if p.words("ORDER", "BY") {
		if s.OrderBy, err = p.name(); err != nil {
			return nil, err
		}
		s.Desc = p.words("DESC")
		p.words("ASC")
	}
	if p.words("LIMIT") {
		if s.Limit, err = p.number(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *parser) conditions() ([]Condition, error) {
	var out []Condition
	for {
		var c Condition
		var err error
		if c.Column, err = p.name(); err != nil {
			return nil, err
		}
		op := p.advance()
		switch op.value {
		case "=", "<", ">", "<=", ">=", "<>", "!=":
			c.Op = op.value
		default:
			return nil, p.fail("a comparison")
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		if v == nil {
			return nil, p.fail("a constant other than NULL")
		}
		c.Value = *v
		out = append(out, c)
		if !p.words("AND") {
			return out, nil
		}
	}
}

func (p *parser) item() (Item, error) {
	it, err := p.expression()
	if err != nil {
		return Item{}, err
	}
	if p.words("AS") {
		t := p.advance()
		if t.kind != word && t.kind != quoted && t.kind != text {
			return Item{}, p.fail("a name")
		}
		it.Alias = t.value
	}
	return it, nil
}

func (p *parser) expression() (Item, error) {
	t := p.peek()
	switch {
	case p.symbol("*"):
		return Item{Star: true}, nil
	case t.kind == variable:
		return p.variable()
	case t.kind == word && p.tokens[p.at+1].isSymbol("("):
		return p.call()
	case t.kind == quoted, t.kind == word && !t.is("NULL") && !t.is("TRUE") && !t.is("FALSE"):
		p.at++
		return Item{Column: t.value}, nil
	}
	v, err := p.value()
	if err == nil && v == nil {
		return Item{Function: "NULL"}, nil
	}
	return Item{Literal: v}, err
}

// variable reads @@name or @@scope.name.
func (p *parser) variable() (Item, error) {
	name := p.advance().value
	for p.symbol(".") {
		var err error
		if name, err = p.name(); err != nil {
			return Item{}, err
		}
	}
	return Item{Function: "@@" + name}, nil
}

// call reads count(*), count(1) or a function without arguments.
func (p *parser) call() (Item, error) {
	t := p.advance()
	p.at++
	if !t.is("COUNT") {
		return Item{Function: strings.ToUpper(t.value) + "()"}, p.wantSymbol(")")
	}
	if !p.symbol("*") {
		if _, err := p.number(); err != nil {
			return Item{}, p.fail("* or 1")
		}
	}
	return Item{Count: true}, p.wantSymbol(")")
}
