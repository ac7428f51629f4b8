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

// Err is why nothing more can be sent: ErrAttention, ErrConnectionLost or ErrDropped. A loop that produces rows stops
// when it is not nil.
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
	w.scratch = appendRow(append(w.scratch[:0], tokenRow), w.columns, values)
	w.settle()
	w.out.write(w.scratch)
	w.rows++
}

// appendRow adds the values of some columns.
func appendRow(dst []byte, columns []Column, values []any) []byte {
	if len(columns) != len(values) {
		panic(fmt.Errorf("%d values for %d columns", len(values), len(columns)))
	}
	for i, c := range columns {
		dst = appendValue(dst, c.Type, values[i])
	}
	return dst
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
func (w *Writer) Output(p Param) { w.outputs = append(w.outputs, p) }

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
			b = appendOutput(b, i, p)
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
func appendOutput(b []byte, ordinal int, p Param) []byte {
	b = append(b, tokenReturnValue, byte(ordinal), byte(ordinal>>8))
	b = appendShortText(b, p.Name)
	b = append(b, 1, 0, 0, 0, 0, 0, 0) // output parameter; no user type, no flags
	return appendValue(appendType(b, p.Type), p.Type, p.Value)
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
		// The statement ends as failed; without that msodbcsql takes a cancelled request that has no result for a
		// successful one. The acknowledgement is a message of its own, for which tedious waits.
		w.settle()
		w.out.write(appendDone(nil, tokenDone, doneError, 0, 0))
		if err := w.out.finish(); err != nil {
			return err
		}
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
	block, ends := []byte(nil), make([]int, 0, len(inner)) // the inner rows, and where each ends
	for _, row := range inner {
		block = appendRow(block, w.columns[split:], row)
		ends = append(ends, len(block))
	}
	w.settle()
	before := w.rows
	for _, row := range outer {
		w.scratch = appendRow(append(w.scratch[:0], tokenRow), w.columns[:split], row)
		if !w.joined(w.scratch, block, ends) {
			break
		}
	}
	return w.rows - before, w.Err()
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
