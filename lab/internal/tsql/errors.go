package tsql

import "fmt"

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
