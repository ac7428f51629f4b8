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
	case p.is("DEFAULT"):
		panic(Unmodelled(p.peek().Line, "INSERT ... DEFAULT VALUES"))
	case p.is("EXEC", "EXECUTE"):
		panic(Unmodelled(p.peek().Line, "INSERT ... EXEC"))
	case p.is("OUTPUT"):
		panic(Unmodelled(p.peek().Line, "the OUTPUT clause"))
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
	if p.is("FROM", "OUTPUT") {
		panic(Unmodelled(p.peek().Line, "DELETE ... %s", p.peek().Upper))
	}
	if p.word("WHERE") != "" {
		s.Where = p.expr()
	}
	return s
}
