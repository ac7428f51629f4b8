package tds

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Writer sends the response to one request. It belongs to the goroutine that runs the request.
//
// Every method keeps the token stream valid: the client's attention takes effect between two tokens, and what is
// anything written after it, or after the connection is lost, is discarded (see Err).
type Writer struct {
	// DropAfter > 0 cuts the connection, without any notice, in the middle of this response after this many rows.
	DropAfter int64

	// Procedure is what an RPC request called, as the client wrote it, or the name of the procedure that has a
	// number (sp_execute for a prepared statement); empty for a batch.
	Procedure string

	*ending
	out    *packetWriter
	server string // name in messages
	cut    func() // ends the connection at once

	inProcedure bool // DONEINPROC instead of DONE
	columns     []Column
	scratch     []byte
	last        *Done // not sent yet: only what follows shows whether it is the last
	failed      bool  // an error since the last Done
	fatal       bool  // the connection must end after the response
	rows        int64
	outputs     []Param
	err         error
}

// Err is why nothing more can be sent: ErrAttention, ErrConnectionLost, ErrDropped, or a value that its column
// cannot hold. A loop that produces rows stops when it is not nil.
func (w *Writer) Err() error {
	switch {
	case w.err != nil:
	case w.ctx.Err() != nil:
		w.err = context.Cause(w.ctx)
	case w.out.err != nil:
		w.err = fmt.Errorf("%w: %w", ErrConnectionLost, w.out.err)
	}
	return w.err
}

// token sends what build appends, after a Done that was waiting.
func (w *Writer) token(build func([]byte) []byte) {
	if w.Err() != nil {
		return
	}
	w.settle()
	w.scratch = build(w.scratch[:0])
	w.out.write(w.scratch)
}

// settle sends the waiting Done as one that others follow.
func (w *Writer) settle() {
	if w.last != nil {
		w.sendLast(doneMore)
	}
}

func (w *Writer) sendLast(more uint16) {
	d, token, status := w.last, byte(tokenDone), more
	w.last = nil
	if w.inProcedure {
		token = tokenDoneInProc
	}
	if d.Error {
		status |= doneError
	}
	if d.HasCount {
		status |= doneCount
	}
	w.out.write(appendDone(nil, token, status, d.Command, d.Count))
}

// Columns begins a result.
func (w *Writer) Columns(columns []Column) {
	if len(columns) == 0 || len(columns) >= math.MaxUint16 {
		w.refuse(fmt.Errorf("a result of %d columns", len(columns)))
		return
	}
	for _, c := range columns {
		if err := checkType(c.Type); err != nil {
			w.refuse(fmt.Errorf("column %q: %w", c.Name, err))
			return
		}
	}
	w.columns = columns
	w.token(func(b []byte) []byte { return appendColumns(b, columns) })
}

// Row sends one row of the result that Columns began.
func (w *Writer) Row(values []any) {
	if w.Err() != nil {
		return
	}
	if w.DropAfter > 0 && w.rows >= w.DropAfter {
		w.drop()
		return
	}
	if len(w.columns) == 0 {
		w.refuse(errors.New("a row outside a result"))
		return
	}
	row, err := appendRow(append(w.scratch[:0], tokenRow), w.columns, values)
	w.scratch = row
	if err != nil {
		w.refuse(err)
		return
	}
	w.settle()
	w.out.write(row)
	w.rows++
}

// appendRow adds the values of some columns.
func appendRow(dst []byte, columns []Column, values []any) ([]byte, error) {
	if len(columns) != len(values) {
		return dst, fmt.Errorf("%d values for %d columns", len(values), len(columns))
	}
	var err error
	for i, c := range columns {
		if dst, err = appendValue(dst, c.Type, values[i]); err != nil {
			return dst, fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	return dst, nil
}

// Info sends an informational message (class 0..10).
func (w *Writer) Info(m Message) {
	w.token(func(b []byte) []byte { return appendMessage(b, tokenInfo, m, w.server) })
}

// Error sends an error (class 11..25). The statement's Done still has to follow.
func (w *Writer) Error(m Message) {
	w.token(func(b []byte) []byte { return appendMessage(b, tokenError, m, w.server) })
	w.failed = true
	w.fatal = w.fatal || m.Class >= 20
}

// Done ends a statement. An error sent since the last Done marks it as failed.
func (w *Writer) Done(d Done) {
	if w.Err() != nil {
		return
	}
	w.settle()
	d.Error = d.Error || w.failed
	w.failed = false
	w.last = &d
}

// Database reports that the current database changed; SQL Server sends INFO 5701 after it.
func (w *Writer) Database(now, before string) {
	w.token(func(b []byte) []byte { return appendEnvText(b, envDatabase, now, before) })
}

// Output sets an output parameter of a procedure.
func (w *Writer) Output(p Param) {
	if err := checkType(p.Type); err != nil {
		w.refuse(fmt.Errorf("parameter %q: %w", p.Name, err))
		return
	}
	w.outputs = append(w.outputs, p)
}

// refuse reports an error of the engine: what it asked for cannot be sent.
func (w *Writer) refuse(err error) {
	w.Error(Message{Number: 50000, State: 1, Class: 20, Text: "The server cannot send its result: " + err.Error() + ".", Line: 1})
	if w.err == nil {
		w.err = err
	}
}

// drop cuts the connection once DropAfter is reached.
func (w *Writer) drop() {
	w.settle()
	w.out.flush()
	w.err = ErrDropped
	w.cut()
}

// endCall ends one procedure of a request.
func (w *Writer) endCall(last bool) {
	if w.Err() == nil {
		w.settle()
	}
	w.token(func(b []byte) []byte {
		b = append(b, tokenReturnStatus, 0, 0, 0, 0)
		for i, p := range w.outputs {
			b = w.appendOutput(b, i, p)
		}
		return b
	})
	w.outputs = nil
	if !last && w.Err() == nil {
		w.out.write(appendDone(nil, tokenDoneProc, w.errorBit()|doneMore, 0, 0))
		w.failed = false
	}
}

// appendOutput adds RETURNVALUE.
func (w *Writer) appendOutput(b []byte, ordinal int, p Param) []byte {
	b = append(b, tokenReturnValue, byte(ordinal), byte(ordinal>>8))
	b = appendShortText(b, p.Name)
	b = append(b, 1, 0, 0, 0, 0, 0, 0) // output parameter; no user type, no flags
	b = appendType(b, p.Type)
	out, err := appendValue(b, p.Type, p.Value)
	if err != nil {
		w.failed = true
		return appendNull(b, p.Type)
	}
	return out
}

func (w *Writer) errorBit() uint16 {
	if w.failed {
		return doneError
	}
	return 0
}

// end sends the last token of the response. attention means that the client waits for its acknowledgement.
func (w *Writer) end(attention bool) error {
	err := w.Err()
	switch {
	case attention:
		// The statement ends as failed, then the acknowledgement follows; without the former msodbcsql takes a
		// cancelled request that has no result for a successful one.
		w.settle()
		w.out.write(appendDone(nil, tokenDone, doneError|doneMore, 0, 0))
		w.out.write(appendDone(nil, tokenDone, doneAttention, commandAttention, 0))
	case errors.Is(err, ErrDropped) || errors.Is(err, ErrConnectionLost):
		return err
	case w.inProcedure:
		w.out.write(appendDone(nil, tokenDoneProc, w.errorBit(), 0, 0))
	case w.last != nil && err == nil:
		w.sendLast(0)
	default:
		w.settle()
		w.out.write(appendDone(nil, tokenDone, w.errorBit(), 0, 0))
	}
	return w.out.finish()
}

// CrossRows sends every outer row joined with every inner row, outer by outer, and returns how many rows it sent.
// The outer rows fill the first columns, the inner rows the others.
//
// Each row is encoded once: sending a joined row is two copies. It stops between two rows with Writer.Err, and
// blocks while the client does not read.
func (w *Writer) CrossRows(outer, inner [][]any) (int64, error) {
	if w.Err() != nil || len(outer) == 0 || len(inner) == 0 {
		return 0, w.err
	}
	split := len(outer[0])
	if split > len(w.columns) {
		w.refuse(fmt.Errorf("%d outer values for %d columns", split, len(w.columns)))
		return 0, w.err
	}
	block, ends, err := encodeRows(w.columns[split:], inner)
	if err != nil {
		w.refuse(err)
		return 0, w.err
	}
	w.settle()
	before := w.rows
	for _, row := range outer {
		w.scratch, err = appendRow(append(w.scratch[:0], tokenRow), w.columns[:split], row)
		if err != nil {
			w.refuse(err)
			break
		}
		if !w.joined(w.scratch, block, ends) {
			break
		}
	}
	return w.rows - before, w.Err()
}

// encodeRows encodes rows into one block; row i ends at ends[i].
func encodeRows(columns []Column, rows [][]any) (block []byte, ends []int, err error) {
	ends = make([]int, 0, len(rows))
	for _, row := range rows {
		if block, err = appendRow(block, columns, row); err != nil {
			return nil, nil, err
		}
		ends = append(ends, len(block))
	}
	return block, ends, nil
}

// joined sends one outer row with every inner row; false when the response is over.
func (w *Writer) joined(outer, block []byte, ends []int) bool {
	allowed := int64(math.MaxInt64)
	if w.DropAfter > 0 {
		allowed = w.DropAfter
	}
	start := 0
	for _, end := range ends {
		if w.stopped.Load() {
			return false
		}
		if w.rows >= allowed {
			w.drop()
			return false
		}
		w.out.writeRow(outer, block[start:end])
		w.rows++
		start = end
	}
	return w.Err() == nil
}
