package tds

import (
	"bytes"
	"context"
	"encoding/hex"
	"testing"
)

var oneColumn = []Column{{"n", Type{Kind: KindInt32}, true}}

const (
	oneColumnMeta = "810100000000000900260401" + "6e00"
	rowOfOne      = "d1" + "0401000000"
)

func done(token byte, status, command uint16, count int64) string {
	return hex.EncodeToString(appendDone(nil, token, status, command, count))
}

func info(number int32) string {
	return hex.EncodeToString(appendMessage(nil, tokenInfo, Message{Number: number}, "LAB"))
}

func fault(number int32) string {
	return hex.EncodeToString(appendMessage(nil, tokenError, Message{Number: number, Class: 16}, "LAB"))
}

// Only the last DONE of a response lacks the flag that more follows, whatever follows the last statement.
func TestTheLastDone(t *testing.T) {
	selected := Done{Count: 1, HasCount: true, Command: CommandSelect}
	one := func(w *Writer) { w.Columns(oneColumn); w.Row([]any{int64(1)}); w.Done(selected) }
	result := oneColumnMeta + rowOfOne
	for name, c := range map[string]struct {
		run  func(*Writer)
		want string
	}{
		"nothing":       {func(*Writer) {}, done(0xFD, 0, 0, 0)},
		"one statement": {one, result + done(0xFD, 0x10, 0xC1, 1)},
		"a message after the statement": {func(w *Writer) { one(w); w.Info(Message{Number: 3612}) },
			result + done(0xFD, 0x11, 0xC1, 1) + info(3612) + done(0xFD, 0, 0, 0)},
		"two statements": {func(w *Writer) { one(w); w.Done(Done{}) }, result + done(0xFD, 0x11, 0xC1, 1) + done(0xFD, 0, 0, 0)},
		"two results":    {func(w *Writer) { one(w); one(w) }, result + done(0xFD, 0x11, 0xC1, 1) + result + done(0xFD, 0x10, 0xC1, 1)},
		"a failed statement": {func(w *Writer) {
			w.Error(Message{Number: 8134, Class: 16})
			w.Info(Message{Number: 3612})
			w.Info(Message{Number: 3621})
			w.Done(Done{})
		}, fault(8134) + info(3612) + info(3621) + done(0xFD, 2, 0, 0)},
		"an error without a Done": {func(w *Writer) { w.Error(Message{Number: 208, Class: 16}) }, fault(208) + done(0xFD, 2, 0, 0)},
		"an error before a good statement": {func(w *Writer) { w.Error(Message{Number: 208, Class: 16}); w.Done(Done{}); one(w) },
			fault(208) + done(0xFD, 3, 0, 0) + result + done(0xFD, 0x10, 0xC1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := start(t, &script{batch: func(_ context.Context, _ string, _ []Param, w *Writer) { c.run(w) }}, Options{})
			if got := hex.EncodeToString(login(t, server).ask("x")); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// In a procedure statements end with DONEINPROC, and status, outputs and DONEPROC end the call.
func TestTheEndOfACall(t *testing.T) {
	s := &script{call: func(_ context.Context, _ string, _ []Param, w *Writer) {
		w.Done(Done{Count: 3, HasCount: true, Command: CommandDelete})
		w.Info(Message{Number: 3612})
		w.Output(Param{Name: "@o", Type: Type{Kind: KindInt32}, Value: int64(1), Output: true})
	}}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	request := appendText(bytes.Clone(headers), "dbo.p")
	c.send(packetRPC, append(request, 0, 0))
	want := done(0xFF, 0x11, 0xC4, 3) + info(3612) + "7900000000" +
		"ac0000" + "0240006f00" + "01" + "00000000" + "0000" + "2604" + "0401000000" + done(0xFE, 0, 0, 0)
	if got := hex.EncodeToString(c.receive()); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// Joined rows equal those of the two sides joined row by row, at every packet size.
func TestCrossRowsEqualRows(t *testing.T) {
	columns := []Column{oneColumn[0], {"t", Type{Kind: KindNVarChar, Size: 10}, true}, {"m", Type{Kind: KindMoney}, true}}
	outer := [][]any{{int64(1)}, {nil}, {int64(3)}}
	inner := [][]any{{"a", Money(1)}, {nil, nil}, {"żółw", Money(-5)}}
	var plain bool
	s := &script{batch: func(_ context.Context, _ string, _ []Param, w *Writer) {
		w.Columns(columns)
		if !plain {
			if n, err := w.CrossRows(outer, inner); n != 9 || err != nil {
				t.Errorf("%d rows, %v", n, err)
			}
			return
		}
		for _, o := range outer {
			for _, i := range inner {
				w.Row([]any{o[0], i[0], i[1]})
			}
		}
	}}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	joined := c.ask("x")
	plain = true
	if rows := c.ask("x"); !bytes.Equal(rows, joined) {
		t.Errorf("joined %x\nplain %x", joined, rows)
	}
}

// stopper ends a request's context at its first write.
type stopper struct{ w *Writer }

func (s stopper) Write(p []byte) (int, error) {
	s.w.stopped.Store(true)
	return len(p), nil
}

// A cross join stops within one outer row, however many inner rows there are.
func TestCrossRowsStopWithinAnOuterRow(t *testing.T) {
	inner := make([][]any, 100_000)
	for i := range inner {
		inner[i] = []any{int64(i)}
	}
	w := &Writer{ending: newEnding(context.Background())}
	w.out = newPacketWriter(stopper{w}, defaultPacketSize, firstSPID)
	w.Columns([]Column{oneColumn[0], oneColumn[0]})
	if n, _ := w.CrossRows([][]any{{int64(1)}}, inner); n < 1000 || n > 20_000 {
		t.Errorf("%d rows after one write of %d bytes", n, writeAhead)
	}
}

// A cross join with an empty side sends no row.
func TestCrossRowsOfNothing(t *testing.T) {
	s := &script{batch: func(_ context.Context, _ string, _ []Param, w *Writer) {
		w.Columns(oneColumn)
		if n, err := w.CrossRows(nil, [][]any{{int64(1)}}); n != 0 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	}}
	server, _ := start(t, s, Options{})
	if got := hex.EncodeToString(login(t, server).ask("x")); got != oneColumnMeta+done(0xFD, 0, 0, 0) {
		t.Error(got)
	}
}

// What cannot be sent becomes an error that names it, and ends the connection.
func TestUnsendableResults(t *testing.T) {
	for name, run := range map[string]func(*Writer){
		"text (string) is no":  func(w *Writer) { w.Columns(oneColumn); w.Row([]any{"text"}) },
		"2 values":             func(w *Writer) { w.Columns(oneColumn); w.Row([]any{int64(1), int64(2)}) },
		"no value of type int": func(w *Writer) { w.Columns(oneColumn); _, _ = w.CrossRows([][]any{{int64(1 << 40)}}, [][]any{{}}) },
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := start(t, &script{batch: func(_ context.Context, _ string, _ []Param, w *Writer) { run(w) }}, Options{})
			c := login(t, server)
			if answer := c.ask("x"); !bytes.Contains(answer, AppendUTF16(nil, name)) {
				t.Errorf("answer %x", answer)
			}
			c.ended()
		})
	}
}
