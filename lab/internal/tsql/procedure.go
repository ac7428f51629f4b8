package tsql

// CreateProcedure is CREATE PROCEDURE.
type CreateProcedure struct {
	at
	Name          Name
	Parameters    []Declaration // with their defaults
	Native        bool          // NATIVE_COMPILATION
	SchemaBinding bool
	Atomic        *Atomic // BEGIN ATOMIC ..., which natively compiled modules consist of
	Body          []Statement
}

// Atomic are the options of BEGIN ATOMIC WITH (...).
type Atomic struct {
	Isolation         string // upper case
	Language          string
	DelayedDurability bool
}

func (p *parser) createProcedure(line at) Statement {
	for _, t := range p.tokens[:p.began] {
		if t.Text != ";" {
			panic(&Error{Number: 111, Class: 15, State: 1, Line: int(line),
				Text: "'CREATE/ALTER PROCEDURE' must be the first statement in a query batch."})
		}
	}
	p.expect("PROCEDURE", "PROC")
	s := &CreateProcedure{at: line, Name: p.name()}
	p.parameters(s)
	if p.word("WITH") != "" {
		p.procedureOptions(s)
	}
	p.expect("AS")
	if s.Native {
		p.atomicBlock(s)
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
		if p.is("OUTPUT", "OUT") {
			panic(Unmodelled(p.peek().Line, "output parameters"))
		}
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
		case "SCHEMABINDING":
			s.SchemaBinding = true
		case "EXECUTE", "EXEC":
			p.expect("AS")
			p.expect("OWNER", "CALLER", "SELF")
		}
		if !p.symbol(",") {
			return
		}
	}
}

// atomicBlock reads BEGIN ATOMIC WITH (TRANSACTION ISOLATION LEVEL = ..., LANGUAGE = ...) ... END.
func (p *parser) atomicBlock(s *CreateProcedure) {
	p.must(p.phrase("BEGIN ATOMIC WITH"))
	s.Atomic = &Atomic{}
	p.hintList(func(parts []string) { p.atomicOption(s.Atomic, parts) })
	if s.Atomic.Isolation == "" || s.Atomic.Language == "" {
		panic(Errorf(10784, int(s.at), "The WITH clause of BEGIN ATOMIC statement must specify a value for the option '%s'.",
			map[bool]string{true: "transaction isolation level", false: "language"}[s.Atomic.Isolation == ""]))
	}
	s.Body = p.blockUntil("END")
	p.expect("END")
}

func (p *parser) atomicOption(a *Atomic, parts []string) {
	last := parts[len(parts)-1]
	switch {
	case len(parts) >= 5 && parts[0] == "TRANSACTION" && parts[1] == "ISOLATION":
		a.Isolation = last
	case parts[0] == "LANGUAGE":
		a.Language = last
	case parts[0] == "DELAYED_DURABILITY":
		a.DelayedDurability = last == "ON"
	case parts[0] == "DATEFIRST" || parts[0] == "DATEFORMAT":
	default:
		panic(Unmodelled(p.peek().Line, "the atomic block's option %s", parts[0]))
	}
}
