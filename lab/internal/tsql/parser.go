package tsql

import (
	"fmt"
	"strings"
)

// maxDepth limits nesting, so that no input can exhaust the stack.
const maxDepth = 200

type parser struct {
	text   string
	tokens []Token
	pos    int
	began  int // first token of the statement being read
	depth  int
}

// Parse reads a batch.
func Parse(text string) ([]Statement, *Error) {
	tokens, err := Lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens}
	var out []Statement
	err = Catch(func() { out = p.statements() })
	return out, err
}

// ParseType reads a data type, as in a parameter declaration.
func ParseType(text string) (TypeName, *Error) {
	tokens, err := Lex(text)
	if err != nil {
		return TypeName{}, err
	}
	p := &parser{text: text, tokens: tokens}
	var out TypeName
	return out, Catch(func() { out = p.typeName() })
}

// Catch runs a piece of the parser, or of a statement, whose functions return errors by panicking with *Error.
func Catch(run func()) (err *Error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			err = r
		default:
			panic(r)
		}
	}()
	run()
	return nil
}

func (p *parser) fail() { panic(syntaxError(p.peek())) }
func (p *parser) end()  { p.must(p.peek().Kind == EOF) }
func (p *parser) must(b bool) {
	if !b {
		p.fail()
	}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		panic(&Error{Number: 191, Class: 15, State: 1, Line: p.peek().Line,
			Text: "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries."})
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) peek() Token { return p.tokens[p.pos] }

func (p *parser) peekAt(ahead int) Token {
	return p.tokens[min(p.pos+ahead, len(p.tokens)-1)]
}

func (p *parser) next() Token {
	t := p.tokens[p.pos]
	if t.Kind != EOF {
		p.pos++
	}
	return t
}

// is reports whether the next token is one of the bare words.
func (p *parser) is(words ...string) bool { return p.isAt(0, words...) }

func (p *parser) isAt(ahead int, words ...string) bool {
	t := p.peekAt(ahead)
	if t.Kind != Word {
		return false
	}
	for _, w := range words {
		if t.Upper == w {
			return true
		}
	}
	return false
}

func (p *parser) isSymbol(s string) bool { return p.isSymbolAt(0, s) }

func (p *parser) isSymbolAt(ahead int, s string) bool {
	t := p.peekAt(ahead)
	return t.Kind == Symbol && t.Text == s
}

// word takes the next token if it is one of the words, and returns the word.
func (p *parser) word(words ...string) string {
	if p.is(words...) {
		return p.next().Upper
	}
	return ""
}

// phrase takes a run of words if all of them follow.
func (p *parser) phrase(phrase string) bool {
	parts := strings.Fields(phrase)
	for i, w := range parts {
		if !p.isAt(i, w) {
			return false
		}
	}
	p.pos += len(parts)
	return true
}

func (p *parser) expect(words ...string) string {
	w := p.word(words...)
	p.must(w != "")
	return w
}

func (p *parser) symbol(s string) bool {
	if p.isSymbol(s) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expectSymbol(s string) { p.must(p.symbol(s)) }

// isName reports whether the next token can be an identifier.
func (p *parser) isName() bool { return isNameToken(p.peek()) }

func isNameToken(t Token) bool { return t.Kind == Quoted || t.Kind == Word && !reserved[t.Upper] }

func (p *parser) identifier() string {
	p.must(p.isName())
	return p.next().Text
}

// name reads up to four dotted parts; an omitted middle part (db..t) is "".
func (p *parser) name() Name {
	n := Name{Line: p.peek().Line, Parts: []string{p.identifier()}}
	for p.isSymbol(".") {
		p.next()
		if p.isSymbol(".") {
			n.Parts = append(n.Parts, "")
			continue
		}
		// after a dot any word is a name: sys.schemas.schema, t.key
		p.must(p.peek().Kind == Quoted || p.peek().Kind == Word)
		n.Parts = append(n.Parts, p.next().Text)
	}
	if len(n.Parts) > 4 {
		panic(Errorf(117, n.Line, "The object name '%s' contains more than the maximum number of prefixes. The maximum is 3.",
			strings.Join(n.Parts, ".")))
	}
	return n
}

// list reads items between commas; bracketed, what is between brackets.
func (p *parser) list(item func()) {
	item()
	for p.symbol(",") {
		item()
	}
}

func (p *parser) bracketed(read func()) {
	p.expectSymbol("(")
	read()
	p.expectSymbol(")")
}

func (p *parser) nameList() (out []string) {
	p.bracketed(func() {
		p.list(func() {
			out = append(out, p.identifier())
			p.word("ASC", "DESC")
		})
	})
	return out
}

func (p *parser) integer() int64 {
	p.must(p.peek().Kind == Number)
	var n int64
	for _, c := range p.peek().Text {
		p.must(c >= '0' && c <= '9' && n < 1<<58/10)
		n = n*10 + int64(c-'0')
	}
	p.next()
	return n
}

// typeName reads a data type with its length, precision and scale.
func (p *parser) typeName() TypeName {
	name := p.name()
	t := TypeName{Name: strings.ToLower(name.Object()), Line: name.Line}
	if !p.symbol("(") {
		return t
	}
	p.list(func() {
		if p.word("MAX") != "" {
			t.Args = append(t.Args, -1)
		} else {
			t.Args = append(t.Args, int(p.integer()))
		}
	})
	p.expectSymbol(")")
	return t
}

// Error is an error with SQL Server's number and wording.
type Error struct {
	Number int32
	Class  uint8
	State  uint8
	Line   int
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("Msg %d, line %d: %s", e.Number, e.Line, e.Text) }

// Errorf builds an ordinary statement error (class 16, state 1).
func Errorf(number int32, line int, format string, args ...any) *Error {
	return &Error{Number: number, Class: 16, State: 1, Line: line, Text: fmt.Sprintf(format, args...)}
}

// Unmodelled is the error for valid T-SQL that the lab does not implement: never an empty success.
func Unmodelled(line int, format string, args ...any) *Error {
	return Errorf(50000, line, "vnuma-lab does not model: %s", fmt.Sprintf(format, args...))
}

func syntaxError(t Token) *Error {
	if t.Kind == EOF {
		return &Error{Number: 102, Class: 15, State: 1, Line: t.Line, Text: "Incorrect syntax near the end of the batch."}
	}
	number, kind := int32(102), ""
	if t.Kind == Word && reserved[t.Upper] {
		number, kind = 156, "the keyword "
	}
	return &Error{Number: number, Class: 15, State: 1, Line: t.Line,
		Text: fmt.Sprintf("Incorrect syntax near %s'%s'.", kind, t.Text)}
}

// reserved words cannot be bare identifiers or aliases.
var reserved = words(`ADD ALL ALTER AND ANY AS ASC BACKUP BEGIN BETWEEN BREAK BY CASE CHECK CHECKPOINT CLUSTERED
	COALESCE COLLATE COLUMN COMMIT CONSTRAINT CONTINUE CONVERT CREATE CROSS CURRENT_TIMESTAMP CURSOR DATABASE DBCC
	DECLARE DEFAULT DELETE DENY DESC DISTINCT DROP ELSE END EXCEPT EXEC EXECUTE EXISTS FETCH FOR FOREIGN FROM FULL
	FUNCTION GOTO GRANT GROUP HAVING IDENTITY IF IN INDEX INNER INSERT INTERSECT INTO IS JOIN KEY KILL LEFT LIKE MERGE
	NOCHECK NONCLUSTERED NOT NULL NULLIF OF OFF ON OPEN OPTION OR ORDER OUTER OVER PERCENT PIVOT PRIMARY PRINT PROC
	PROCEDURE RAISERROR READ RECONFIGURE REFERENCES RESTORE RETURN REVOKE RIGHT ROLLBACK ROWCOUNT SAVE SCHEMA SELECT
	SESSION_USER SET SHUTDOWN SOME STATISTICS SYSTEM_USER TABLE TABLESAMPLE THEN TO TOP TRAN TRANSACTION TRIGGER
	TRUNCATE TRY_CONVERT UNION UNIQUE UNPIVOT UPDATE USE USER VALUES VIEW WAITFOR WHEN WHERE WHILE WITH`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}
