package tsql

// CreateProcedure is CREATE PROCEDURE.
type CreateProcedure struct {
	at
	Name       Name
	Parameters []Declaration // with their defaults
	Native     bool          // NATIVE_COMPILATION: its body is one atomic block
	Body       []Statement
}

func (p *parser) createProcedure(line at) Statement {
	p.expect("PROCEDURE", "PROC")
	s := &CreateProcedure{at: line, Name: p.name()}
	p.parameters(s)
	if p.word("WITH") != "" {
		p.procedureOptions(s)
	}
	p.expect("AS")
	if s.Native {
		p.must(p.phrase("BEGIN ATOMIC WITH"))
		p.hintList(nil)
		s.Body = p.blockUntil("END")
		p.expect("END")
	} else {
		s.Body = p.statements()
	}
	for p.symbol(";") {
	}
	p.end()
	return s
}

func (p *parser) parameters(s *CreateProcedure) {
	bracketed := p.symbol("(")
	for p.peek().Kind == Variable {
		s.Parameters = append(s.Parameters, p.declaration())
		if !p.symbol(",") {
			break
		}
	}
	if bracketed {
		p.expectSymbol(")")
	}
}

func (p *parser) procedureOptions(s *CreateProcedure) {
	for {
		switch p.expect("NATIVE_COMPILATION", "SCHEMABINDING", "EXECUTE", "EXEC", "RECOMPILE") {
		case "NATIVE_COMPILATION":
			s.Native = true
		case "EXECUTE", "EXEC":
			p.expect("AS")
			p.expect("OWNER", "CALLER", "SELF")
		}
		if !p.symbol(",") {
			return
		}
	}
}
