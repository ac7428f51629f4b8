package tsql

import "strings"

// statements reads statements up to the end of the batch.
func (p *parser) statements() []Statement {
	var out []Statement
	for {
		for p.symbol(";") {
		}
		if p.peek().Kind == EOF {
			return out
		}
		out = append(out, p.statement(len(out) == 0))
	}
}

// blockUntil reads statements up to a closing word, which stays unread.
func (p *parser) blockUntil(words ...string) []Statement {
	var out []Statement
	for {
		for p.symbol(";") {
		}
		if p.is(words...) {
			return out
		}
		p.must(p.peek().Kind != EOF)
		out = append(out, p.statement(false))
	}
}

type statementReader func(*parser, at) Statement

var readers map[string]statementReader

func init() {
	readers = map[string]statementReader{
		"SELECT": readQuery, "WITH": readQuery,
		"INSERT": readInsert, "DELETE": readDelete,
		"CREATE": readCreate, "ALTER": readAlter, "DROP": readDrop,
		"DECLARE": readDeclare, "SET": readSet, "IF": readIf, "WHILE": readWhile, "BEGIN": readBegin,
		"RAISERROR": readRaiseError, "THROW": readThrow,
		"EXEC": readExec, "EXECUTE": readExec, "USE": readUse,
		"CHECKPOINT": readAccepted, "RECONFIGURE": readAccepted, "DBCC": readDBCC,
		"WAITFOR": readWaitFor, "BACKUP": readBackup,
	}
}

// statement reads one statement; only the first of a batch may be just a procedure name.
func (p *parser) statement(first bool) Statement {
	p.enter()
	defer p.leave()
	p.began = p.pos
	t := p.peek()
	if read := readers[t.Upper]; read != nil && t.Kind == Word {
		if !p.is("SELECT", "WITH") {
			p.next()
		}
		return read(p, at(t.Line))
	}
	p.must(first && p.isName())
	return p.procedure(at(t.Line))
}

func readQuery(p *parser, line at) Statement {
	if p.is("WITH") && p.cteFeeds() == "INSERT" {
		p.next()
		ctes := p.ctes()
		p.expect("INSERT")
		insert := readInsert(p, line).(*Insert)
		p.must(insert.Source.With == nil)
		insert.Source.With = ctes
		return insert
	}
	return &SelectStatement{at: line, Query: p.query()}
}

// cteFeeds looks past a WITH list for the statement that uses it.
func (p *parser) cteFeeds() string {
	depth := 0
	for i := p.pos + 1; i < len(p.tokens); i++ {
		t := p.tokens[i]
		switch {
		case t.Kind == Symbol && t.Text == "(":
			depth++
		case t.Kind == Symbol && t.Text == ")":
			depth--
		case depth == 0 && (t.Upper == "SELECT" || t.Upper == "INSERT"):
			return t.Upper
		}
	}
	return ""
}

func readDeclare(p *parser, line at) Statement {
	d := &Declare{at: line}
	p.list(func() { d.Variables = append(d.Variables, p.declaration()) })
	return d
}

func (p *parser) declaration() Declaration {
	p.must(p.peek().Kind == Variable)
	d := Declaration{Name: lower(p.next().Text)}
	p.word("AS")
	d.Type = p.typeName()
	if p.symbol("=") {
		d.Init = p.expr()
	}
	return d
}

func readSet(p *parser, line at) Statement {
	if p.peek().Kind != Variable {
		return p.setOption(line)
	}
	t := p.next()
	s := &SetVariable{at: line, Name: lower(t.Text)}
	op := p.operator("=", "+=", "-=", "*=", "/=", "%=")
	p.must(op != "")
	s.X = p.expr()
	if op != "=" {
		s.X = &Arith{Op: op[:1], L: &VarRef{Name: s.Name, Line: t.Line}, R: s.X, Line: t.Line}
	}
	return s
}

// setOptions are the session options that the lab knows; the others are errors (195, as on the server).
var setOptions = []string{"STATISTICS TIME", "STATISTICS XML", "STATISTICS IO", "STATISTICS PROFILE",
	"TRANSACTION ISOLATION LEVEL", "NOCOUNT", "XACT_ABORT", "ARITHABORT", "ARITHIGNORE", "QUOTED_IDENTIFIER",
	"ANSI_NULLS", "ANSI_PADDING", "ANSI_WARNINGS", "ANSI_DEFAULTS", "ANSI_NULL_DFLT_ON", "ANSI_NULL_DFLT_OFF",
	"CONCAT_NULL_YIELDS_NULL", "CURSOR_CLOSE_ON_COMMIT", "IMPLICIT_TRANSACTIONS", "LANGUAGE", "DATEFORMAT", "DATEFIRST",
	"LOCK_TIMEOUT", "DEADLOCK_PRIORITY", "ROWCOUNT", "TEXTSIZE", "NUMERIC_ROUNDABORT", "FMTONLY", "NOEXEC", "PARSEONLY",
	"SHOWPLAN_XML", "CONTEXT_INFO", "REMOTE_PROC_TRANSACTIONS"}

func (p *parser) setOption(line at) Statement {
	for _, option := range setOptions {
		if p.phrase(option) {
			return &SetOption{at: line, Option: option, Value: p.optionValue(option)}
		}
	}
	t := p.peek()
	p.must(t.Kind == Word)
	panic(Errorf(195, t.Line, "'%s' is not a recognized SET option.", t.Text))
}

func (p *parser) optionValue(option string) string {
	if option == "TRANSACTION ISOLATION LEVEL" {
		for _, level := range []string{"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SNAPSHOT", "SERIALIZABLE"} {
			if p.phrase(level) {
				return level
			}
		}
		p.fail()
	}
	sign := p.operator("-")
	t := p.next()
	p.must(t.Kind != EOF && t.Kind != Symbol)
	value := sign + strings.ToUpper(t.Text)
	switch option {
	case "LANGUAGE", "DATEFORMAT", "DATEFIRST", "LOCK_TIMEOUT", "DEADLOCK_PRIORITY", "ROWCOUNT", "TEXTSIZE", "CONTEXT_INFO":
		return value
	}
	if value != "ON" && value != "OFF" {
		p.pos--
		p.fail()
	}
	return value
}

func readIf(p *parser, line at) Statement {
	s := &If{at: line, Cond: p.expr()}
	s.Then = p.statement(false)
	mark := p.pos
	for p.symbol(";") {
	}
	if p.word("ELSE") != "" {
		s.Else = p.statement(false)
	} else {
		p.pos = mark
	}
	return s
}

func readWhile(p *parser, line at) Statement {
	cond := p.expr()
	return &While{at: line, Cond: cond, Body: p.statement(false)}
}

func readBegin(p *parser, line at) Statement {
	if p.is("TRAN", "TRANSACTION") {
		panic(Unmodelled(int(line), "transactions of more than one statement"))
	}
	b := &Block{at: line, Body: p.blockUntil("END")}
	p.expect("END")
	return b
}

func readRaiseError(p *parser, line at) Statement {
	s := &RaiseError{at: line}
	p.bracketed(func() { s.Args = p.exprList() })
	p.must(len(s.Args) == 3)
	return s
}

func readThrow(p *parser, line at) Statement {
	s := &Throw{at: line, Args: p.exprList()}
	p.must(len(s.Args) == 3)
	return s
}

func readUse(p *parser, line at) Statement {
	return &Use{at: line, Database: p.identifier()}
}

func readWaitFor(p *parser, line at) Statement {
	p.expect("DELAY")
	return &WaitFor{at: line, Delay: p.primary()}
}

func readExec(p *parser, line at) Statement {
	if p.peek().Kind == Variable && p.isSymbolAt(1, "=") {
		status := lower(p.next().Text)
		p.next()
		e := p.procedure(line).(*Exec)
		e.Status = status
		return e
	}
	return p.procedure(line)
}

func (p *parser) procedure(line at) Statement {
	e := &Exec{at: line, Name: p.name()}
	if !p.argumentsEnd() {
		p.list(func() { e.Args = append(e.Args, p.argument()) })
	}
	return e
}

func (p *parser) argumentsEnd() bool {
	t := p.peek()
	return t.Kind == EOF || p.isSymbol(";") || t.Kind == Word && (readers[t.Upper] != nil || t.Upper == "END" || t.Upper == "ELSE")
}

func (p *parser) argument() Argument {
	var a Argument
	if p.peek().Kind == Variable && p.isSymbolAt(1, "=") {
		a.Name = lower(p.next().Text)
		p.next()
	}
	if p.isName() { // a bare word is text
		a.X = &TextLit{Value: p.next().Text}
	} else {
		a.X = p.unary()
	}
	return a
}

// readAccepted skips a statement that has no effect in the lab, up to its end.
func readAccepted(p *parser, line at) Statement {
	what := p.tokens[p.pos-1].Upper
	p.skipStatement()
	return &Accepted{at: line, What: what}
}

// skipStatement passes tokens up to a semicolon, the end, or a word that starts a statement.
func (p *parser) skipStatement() {
	depth := 0
	for p.peek().Kind != EOF && !(depth == 0 && p.isSymbol(";")) {
		if depth == 0 && p.peek().Kind == Word && p.startsStatement() {
			return
		}
		if p.isSymbol("(") {
			depth++
		} else if p.isSymbol(")") {
			depth--
		}
		p.next()
	}
}

// startsStatement tells a new statement from a permission or option of the same name (GRANT SELECT ON ...).
func (p *parser) startsStatement() bool {
	return !p.is("ALTER", "CREATE", "SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE", "CHECKPOINT", "WITH", "SET") &&
		(readers[p.peek().Upper] != nil || p.is("END", "ELSE"))
}

// dbcc are the console commands that can be accepted: they do not change what the lab models.
var dbcc = words("TRACEON TRACEOFF TRACESTATUS DROPCLEANBUFFERS FREEPROCCACHE FREESYSTEMCACHE")

func readDBCC(p *parser, line at) Statement {
	t := p.peek()
	if p.word("INPUTBUFFER") != "" {
		return p.inputBuffer(line)
	}
	if !dbcc[t.Upper] {
		panic(Unmodelled(t.Line, "DBCC %s", t.Text))
	}
	p.skipStatement()
	return &Accepted{at: line, What: "DBCC " + t.Upper}
}

// inputBuffer reads the rest of DBCC INPUTBUFFER (session [, request]) [WITH NO_INFOMSGS].
func (p *parser) inputBuffer(line at) Statement {
	p.expectSymbol("(")
	s := &InputBuffer{at: line, Session: p.expr()}
	if p.symbol(",") {
		p.expr()
	}
	p.expectSymbol(")")
	p.phrase("WITH NO_INFOMSGS")
	return s
}
