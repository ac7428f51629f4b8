package tsql

import "encoding/hex"

// expr reads an expression or predicate; OR binds weakest.
func (p *parser) expr() Expr {
	p.enter()
	defer p.leave()
	x := p.conjunction()
	for p.word("OR") != "" {
		x = &Logic{Op: "OR", L: x, R: p.conjunction()}
	}
	return x
}

func (p *parser) conjunction() Expr {
	x := p.negation()
	for p.word("AND") != "" {
		x = &Logic{Op: "AND", L: x, R: p.negation()}
	}
	return x
}

func (p *parser) negation() Expr {
	p.enter()
	defer p.leave()
	if p.word("NOT") != "" {
		return &Not{X: p.negation()}
	}
	return p.predicate()
}

var comparisons = map[string]string{"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
	"!<": ">=", "!>": "<="}

func (p *parser) predicate() Expr {
	x := p.sum()
	for {
		if op, ok := comparisons[p.peek().Text]; ok && p.peek().Kind == Symbol {
			p.next()
			x = &Compare{Op: op, L: x, R: p.sum()}
			continue
		}
		if p.word("IS") != "" {
			not := p.word("NOT") != ""
			p.expect("NULL")
			x = &IsNull{X: x, Not: not}
			continue
		}
		negated := p.is("NOT") && p.isAt(1, "IN", "LIKE", "BETWEEN")
		if negated {
			p.next()
		}
		switch p.word("IN", "LIKE", "BETWEEN") {
		case "IN":
			x = negatedIf(negated, p.in(x))
		case "LIKE":
			x = negatedIf(negated, &Like{X: x, Pattern: p.sum()})
		case "BETWEEN":
			lo := p.sum()
			p.expect("AND")
			x = negatedIf(negated, &Logic{Op: "AND", L: &Compare{Op: ">=", L: x, R: lo}, R: &Compare{Op: "<=", L: x, R: p.sum()}})
		default:
			return x
		}
	}
}

// in reads a query, or a list, which stands for comparisons.
func (p *parser) in(x Expr) (in Expr) {
	p.expectSymbol("(")
	if p.is("SELECT", "WITH") {
		in = &In{X: x, Query: p.query()}
	} else {
		list := p.exprList()
		in = &Compare{Op: "=", L: x, R: list[0]}
		for _, item := range list[1:] {
			in = &Logic{Op: "OR", L: in, R: &Compare{Op: "=", L: x, R: item}}
		}
	}
	p.expectSymbol(")")
	return in
}

func negatedIf(not bool, x Expr) Expr {
	if not {
		return &Not{X: x}
	}
	return x
}

func (p *parser) exprList() (out []Expr) {
	p.list(func() { out = append(out, p.expr()) })
	return out
}

func (p *parser) operator(symbols ...string) string {
	for _, s := range symbols {
		if p.symbol(s) {
			return s
		}
	}
	return ""
}

func (p *parser) sum() Expr     { return p.operations(p.product, "+", "-") }
func (p *parser) product() Expr { return p.operations(p.unary, "*", "/", "%") }

// operations reads operands between operators that bind equally.
func (p *parser) operations(operand func() Expr, operators ...string) Expr {
	x := operand()
	for {
		line := p.peek().Line
		op := p.operator(operators...)
		if op == "" {
			return x
		}
		x = &Arith{Op: op, L: x, R: operand(), Line: line}
	}
}

func (p *parser) unary() Expr {
	p.enter()
	defer p.leave()
	if op := p.operator("-", "+"); op != "" {
		x := p.unary()
		n, number := x.(*NumberLit)
		switch {
		case op == "+":
			return x
		case number:
			return &NumberLit{Text: "-" + n.Text} // of the type of its digits
		}
		panic(Unmodelled(p.peek().Line, "a minus sign before anything but a number"))
	}
	x := p.primary()
	for p.word("COLLATE") != "" { // collations are not modelled: comparison ignores case
		p.identifier()
	}
	return x
}

func (p *parser) primary() Expr {
	t := p.peek()
	switch t.Kind {
	case Number:
		p.next()
		return &NumberLit{Text: t.Text}
	case Text:
		p.next()
		return &TextLit{Value: t.Text}
	case Binary:
		p.next()
		return &BinaryLit{Value: hexBytes(t.Text[2:])}
	case Variable:
		p.next()
		return &VarRef{Name: lower(t.Text), Line: t.Line}
	case Symbol:
		return p.parenthesis()
	case Word:
		if x := p.special(t); x != nil {
			return x
		}
	}
	return p.nameOrCall()
}

func hexBytes(digits string) []byte {
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	b, err := hex.DecodeString(digits)
	if err != nil { // the lexer accepts only hexadecimal digits
		panic(err)
	}
	return b
}

func (p *parser) parenthesis() Expr {
	p.expectSymbol("(")
	if p.is("SELECT", "WITH") || p.isSymbol("(") && p.nestedQuery() {
		q := p.query()
		p.expectSymbol(")")
		return &Subquery{Query: q}
	}
	x := p.expr()
	p.expectSymbol(")")
	return x
}

// nestedQuery looks past opening brackets for a SELECT.
func (p *parser) nestedQuery() bool {
	n := 0
	for p.isSymbolAt(n, "(") {
		n++
	}
	return p.isAt(n, "SELECT")
}

// special reads the expressions that start with a reserved word.
func (p *parser) special(t Token) Expr {
	switch t.Upper {
	case "NULL":
		p.next()
		return &NullLit{}
	case "CASE":
		return p.caseExpr()
	case "CAST":
		return p.cast()
	case "RIGHT":
		if p.isSymbolAt(1, "(") {
			p.next()
			return p.call(Name{Parts: []string{t.Text}, Line: t.Line})
		}
	}
	return nil
}

func (p *parser) caseExpr() Expr {
	p.expect("CASE")
	c := &Case{}
	if !p.is("WHEN") {
		c.Operand = p.expr()
	}
	for p.word("WHEN") != "" {
		cond := p.expr()
		p.expect("THEN")
		c.Whens = append(c.Whens, When{Cond: cond, Then: p.expr()})
	}
	p.must(len(c.Whens) > 0)
	if p.word("ELSE") != "" {
		c.Else = p.expr()
	}
	p.expect("END")
	return c
}

func (p *parser) cast() Expr {
	p.next()
	c := &Cast{}
	p.bracketed(func() {
		c.X = p.expr()
		p.expect("AS")
		c.Type = p.typeName()
	})
	return c
}

func (p *parser) nameOrCall() Expr {
	n := p.name()
	if p.isSymbol("(") {
		return p.call(n)
	}
	return &ColumnRef{Name: n}
}

func (p *parser) call(n Name) *Call {
	c := &Call{Name: n}
	p.expectSymbol("(")
	switch {
	case p.isSymbol(")"):
	case p.isSymbol("*") && p.isSymbolAt(1, ")"):
		p.next()
		c.Star = true
	default:
		c.Args = p.exprList()
	}
	p.expectSymbol(")")
	return c
}

func (p *parser) orderBy() (out []OrderItem) {
	p.list(func() {
		x := p.expr()
		out = append(out, OrderItem{X: x, Desc: p.word("ASC", "DESC") == "DESC"})
	})
	return out
}
