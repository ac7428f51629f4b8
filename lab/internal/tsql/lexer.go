// Package tsql reads the T-SQL subset that the lab's SQL Server executes: text in, syntax tree out.
package tsql

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what a token is.
type Kind int

// Token kinds.
const (
	EOF      Kind = iota
	Word          // bare identifier or keyword, #temp names included
	Quoted        // [name] or "name"
	Variable      // @name or @@name
	Number        // 12, 1.5, 1e3
	Text          // 'text' or N'text'
	Binary        // 0xABCD
	Symbol        // operator or punctuation
)

// Token is one lexical unit and its position.
type Token struct {
	Kind       Kind
	Text       string // unquoted value
	Upper      string // upper case of a Word, else empty
	Line       int    // 1 = first line of the batch
	Start, End int    // byte offsets in the batch
}

type lexer struct {
	text string
	pos  int
	line int
	out  []Token
}

// Lex splits a batch into tokens; the last one is always EOF.
func Lex(text string) ([]Token, *Error) {
	l := &lexer{text: text, line: 1}
	for {
		if err := l.skipBlank(); err != nil {
			return nil, err
		}
		if l.pos >= len(l.text) {
			l.out = append(l.out, Token{Kind: EOF, Line: l.line, Start: l.pos, End: l.pos})
			return l.out, nil
		}
		if err := l.next(); err != nil {
			return nil, err
		}
	}
}

func (l *lexer) peek(ahead int) byte {
	if l.pos+ahead < len(l.text) {
		return l.text[l.pos+ahead]
	}
	return 0
}

func (l *lexer) rest() string { return l.text[l.pos:] }

// skipBlank skips white space, -- comments and (nested) /* */ comments.
func (l *lexer) skipBlank() *Error {
	for l.pos < len(l.text) {
		switch {
		case strings.HasPrefix(l.rest(), "--"):
			for l.pos < len(l.text) && l.text[l.pos] != '\n' {
				l.pos++
			}
		case strings.HasPrefix(l.rest(), "/*"):
			if err := l.skipComment(); err != nil {
				return err
			}
		default:
			r, size := utf8.DecodeRuneInString(l.rest())
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return nil
			}
			if r == '\n' {
				l.line++
			}
			l.pos += size
		}
	}
	return nil
}

func (l *lexer) skipComment() *Error {
	start, depth := l.line, 0
	for l.pos < len(l.text) {
		switch {
		case strings.HasPrefix(l.rest(), "/*"):
			depth++
			l.pos += 2
		case strings.HasPrefix(l.rest(), "*/"):
			depth--
			l.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			if l.text[l.pos] == '\n' {
				l.line++
			}
			l.pos++
		}
	}
	return &Error{Number: 113, Class: 15, State: 1, Line: start, Text: "Missing end comment mark '*/'."}
}

func (l *lexer) next() *Error {
	c := l.peek(0)
	switch {
	case c == '\'':
		return l.quoted(Text, 1, '\'')
	case (c == 'N' || c == 'n') && l.peek(1) == '\'':
		return l.quoted(Text, 2, '\'')
	case c == '[':
		return l.quoted(Quoted, 1, ']')
	case c == '"':
		return l.quoted(Quoted, 1, '"')
	case c == '0' && (l.peek(1) == 'x' || l.peek(1) == 'X'):
		l.emit(Binary, l.span(2, isHex))
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		l.emit(Number, l.numberLength())
	case c == '@':
		l.emit(Variable, l.span(1, isNameByte))
	case isNameStart(l.rest()):
		l.emit(Word, l.span(0, isNameByte))
	default:
		return l.symbol()
	}
	return nil
}

// emit adds the next n bytes as a token.
func (l *lexer) emit(kind Kind, n int) {
	t := Token{Kind: kind, Text: l.text[l.pos : l.pos+n], Line: l.line, Start: l.pos, End: l.pos + n}
	if kind == Word {
		t.Upper = strings.ToUpper(t.Text)
	}
	l.out = append(l.out, t)
	l.pos += n
}

// span is the length of the run of accepted bytes that starts `from` bytes ahead.
func (l *lexer) span(from int, accept func(byte) bool) int {
	n := from
	for l.pos+n < len(l.text) && accept(l.text[l.pos+n]) {
		n++
	}
	return n
}

func (l *lexer) numberLength() int {
	n := l.span(0, isDigit)
	if l.peek(n) == '.' {
		n = l.span(n+1, isDigit)
	}
	if e := l.peek(n); e == 'e' || e == 'E' {
		m := n + 1
		if s := l.peek(m); s == '+' || s == '-' {
			m++
		}
		if isDigit(l.peek(m)) {
			n = l.span(m, isDigit)
		}
	}
	return n
}

// quoted reads up to the closing mark; a doubled mark means the mark itself.
func (l *lexer) quoted(kind Kind, skip int, mark byte) *Error {
	start, line := l.pos, l.line
	var b strings.Builder
	for i := l.pos + skip; i < len(l.text); i++ {
		c := l.text[i]
		if c == '\n' {
			l.line++
		}
		if c != mark {
			b.WriteByte(c)
			continue
		}
		if i+1 < len(l.text) && l.text[i+1] == mark {
			b.WriteByte(c)
			i++
			continue
		}
		l.pos = i + 1
		l.out = append(l.out, Token{Kind: kind, Text: b.String(), Line: line, Start: start, End: l.pos})
		return nil
	}
	return &Error{Number: 105, Class: 15, State: 1, Line: line,
		Text: "Unclosed quotation mark after the character string '" + clip(b.String()) + "'."}
}

var longSymbols = []string{"<>", "<=", ">=", "!=", "!<", "!>", "+=", "-=", "*=", "/=", "%=", "::"}

func (l *lexer) symbol() *Error {
	for _, s := range longSymbols {
		if strings.HasPrefix(l.rest(), s) {
			l.emit(Symbol, len(s))
			return nil
		}
	}
	if strings.IndexByte("=<>+-*/%&|^~(),.;:", l.peek(0)) >= 0 {
		l.emit(Symbol, 1)
		return nil
	}
	r, _ := utf8.DecodeRuneInString(l.rest())
	return &Error{Number: 102, Class: 15, State: 1, Line: l.line, Text: "Incorrect syntax near '" + string(r) + "'."}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isNameByte(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '#' || c == '$' || c == '@' || c >= 0x80
}

func isNameStart(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || r == '_' || r == '#'
}

func clip(s string) string {
	if r := []rune(s); len(r) > 128 {
		return string(r[:128])
	}
	return s
}
