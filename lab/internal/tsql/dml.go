package tsql

func readInsert(p *parser, line at) Statement {
	p.expect("INSERT")
	p.word("INTO")
	s := &Insert{at: line, Target: p.name()}
	p.tableHints()
	if p.isSymbol("(") && !p.nestedQuery() {
		s.Columns = p.nameList()
	}
	switch {
	default:
		p.must(p.is("VALUES", "SELECT", "WITH") || p.isSymbol("("))
		s.Source = p.query()
	}
	return s
}

func readDelete(p *parser, line at) Statement {
	p.next()
	s := &Delete{at: line}
	p.word("FROM")
	s.Target = p.name()
	p.tableHints()
	if p.word("WHERE") != "" {
		s.Where = p.expr()
	}
	return s
}
