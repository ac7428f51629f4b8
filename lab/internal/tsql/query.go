package tsql

import (
	"strconv"
	"strings"
)

func lower(s string) string { return strings.ToLower(s) }

// query reads [WITH ...] body [ORDER BY ...] [OPTION (...)].
func (p *parser) query() *Query {
	p.enter()
	defer p.leave()
	q := &Query{Line: p.peek().Line}
	if p.word("WITH") != "" {
		q.With = p.ctes()
	}
	q.Body = p.union()
	if p.phrase("ORDER BY") {
		q.OrderBy = p.orderBy()
	}
	if p.word("OPTION") != "" {
		q.Hints = p.hints()
	}
	return q
}

func (p *parser) ctes() (out []CTE) {
	p.list(func() {
		c := CTE{Name: p.identifier(), Columns: p.columnAliases()}
		p.expect("AS")
		p.bracketed(func() { c.Query = p.query() })
		out = append(out, c)
	})
	return out
}

// union reads SELECT blocks joined by UNION [ALL].
func (p *parser) union() Body {
	left := p.body()
	for p.word("UNION") != "" {
		all := p.word("ALL") != ""
		left = &Union{All: all, Left: left, Right: p.body()}
	}
	return left
}

func (p *parser) body() Body {
	p.enter()
	defer p.leave()
	if p.word("VALUES") != "" {
		return p.values()
	}
	return p.selectBlock()
}

func (p *parser) values() *Values {
	v := &Values{}
	p.list(func() {
		p.bracketed(func() { v.Rows = append(v.Rows, p.exprList()) })
		if len(v.Rows[0]) != len(v.Rows[len(v.Rows)-1]) {
			panic(Errorf(10709, p.peek().Line, "The number of columns for each row in a table value constructor must be the same."))
		}
	})
	return v
}

func (p *parser) selectBlock() *Select {
	s := &Select{Line: p.peek().Line}
	p.expect("SELECT")
	s.Distinct = p.word("ALL", "DISTINCT") == "DISTINCT"
	if p.word("TOP") != "" {
		s.Top = p.top()
	}
	p.list(func() { s.Items = append(s.Items, p.item()) })
	if p.word("INTO") != "" {
		n := p.name()
		s.Into = &n
	}
	if p.word("FROM") != "" {
		s.From = p.tableRef()
	}
	if p.word("WHERE") != "" {
		s.Where = p.expr()
	}
	if p.phrase("GROUP BY") {
		s.GroupBy = p.exprList()
	}
	return s
}

func (p *parser) top() (n Expr) {
	if p.isSymbol("(") {
		p.bracketed(func() { n = p.expr() })
		return n
	}
	p.must(p.peek().Kind == Number)
	return p.primary()
}

// item reads *, a.*, or x [AS] alias.
func (p *parser) item() Item {
	if p.symbol("*") {
		return Item{Star: true}
	}
	if q := p.qualifiedStar(); q != nil {
		return Item{Star: true, Qualifier: q}
	}
	if p.peek().Kind == Variable && p.isSymbolAt(1, "=") {
		panic(Unmodelled(p.peek().Line, "SELECT @variable ="))
	}
	return Item{X: p.expr(), Alias: p.columnAlias()}
}

func (p *parser) columnAlias() string {
	if p.word("AS") != "" {
		if p.peek().Kind == Text {
			return p.next().Text
		}
		return p.identifier()
	}
	if p.isName() || p.peek().Kind == Text {
		return p.next().Text
	}
	return ""
}

// qualifiedStar takes name(.name)*.* and returns the qualifier.
func (p *parser) qualifiedStar() []string {
	n := 0
	for isNameToken(p.peekAt(n)) && p.isSymbolAt(n+1, ".") {
		n += 2
		if p.isSymbolAt(n, "*") {
			var q []string
			for i := 0; i < n; i += 2 {
				q = append(q, p.peekAt(i).Text)
			}
			p.pos += n + 1
			return q
		}
	}
	return nil
}

func (p *parser) tableRef() TableRef {
	p.enter()
	defer p.leave()
	left := p.tablePrimary()
	for {
		kind := p.joinKind()
		if kind == "" {
			return left
		}
		j := &Join{Kind: kind, Left: left, Right: p.tablePrimary()}
		if kind != "CROSS" {
			p.expect("ON")
			j.On = p.expr()
		}
		left = j
	}
}

func (p *parser) joinKind() string {
	switch {
	case p.phrase("CROSS JOIN"):
		return "CROSS"
	case p.is("JOIN"):
		p.next()
		return "INNER"
	case p.is("INNER", "LEFT"):
		kind := p.next().Upper
		p.word("OUTER")
		p.word("LOOP", "HASH", "MERGE")
		p.expect("JOIN")
		return kind
	}
	return ""
}

func (p *parser) tablePrimary() TableRef {
	if p.isSymbol("(") {
		return p.parenthesisedTable()
	}
	n := p.name()
	if p.isSymbol("(") {
		panic(Errorf(208, n.Line, "Invalid object name '%s'.", strings.Join(n.Parts, ".")))
	}
	t := &Table{Name: n, Alias: p.tableAlias()}
	p.tableHints() // the lab has no locks to wait for
	return t
}

func (p *parser) parenthesisedTable() TableRef {
	d := &Derived{}
	p.bracketed(func() { d.Query = p.query() })
	d.Alias = p.tableAlias()
	p.must(d.Alias != "")
	d.Columns = p.columnAliases()
	return d
}

func (p *parser) columnAliases() []string {
	if p.isSymbol("(") {
		return p.nameList()
	}
	return nil
}

func (p *parser) tableAlias() string {
	if p.word("AS") != "" || p.isName() {
		return p.identifier()
	}
	return ""
}

func (p *parser) tableHints() {
	if p.is("WITH") && p.isSymbolAt(1, "(") {
		p.next()
		p.hintList(nil)
	}
}

// hintList reads a bracketed, comma-separated list of word runs, each returned in upper case.
func (p *parser) hintList(each func(words []string)) []string {
	var out []string
	item := func() {
		var parts []string
		for depth := 0; depth > 0 || !p.isSymbol(",") && !p.isSymbol(")"); {
			p.must(p.peek().Kind != EOF)
			if p.isSymbol("(") {
				depth++
			} else if p.isSymbol(")") {
				depth--
			}
			parts = append(parts, strings.ToUpper(p.next().Text))
		}
		p.must(len(parts) > 0)
		out = append(out, strings.Join(parts, " "))
		if each != nil {
			each(parts)
		}
	}
	p.bracketed(func() { p.list(item) })
	return out
}

// knownHints are the first words of query hints; another one is an error, as on the server.
var knownHints = words(`MAXDOP RECOMPILE NO_PERFORMANCE_SPOOL FORCE LOOP HASH MERGE FAST OPTIMIZE KEEP KEEPFIXED USE
	QUERYTRACEON MAX_GRANT_PERCENT MIN_GRANT_PERCENT LABEL ORDER CONCAT ROBUST MAXRECURSION EXPAND PARAMETERIZATION`)

func (p *parser) hints() Hints {
	var h Hints
	line := p.peek().Line
	h.All = p.hintList(func(parts []string) {
		if !knownHints[parts[0]] {
			panic(Errorf(102, line, "Incorrect syntax near '%s'.", parts[0]))
		}
		switch {
		case parts[0] == "NO_PERFORMANCE_SPOOL":
			h.NoPerformanceSpool = true
		case parts[0] == "MAXDOP" && len(parts) == 2:
			h.MaxDOP = atoi(parts[1])
		}
	})
	return h
}

// atoi is a whole number, 0 for anything else.
func atoi(s string) int {
	n, err := strconv.ParseUint(s, 10, 20)
	if err != nil {
		return 0
	}
	return int(n)
}
