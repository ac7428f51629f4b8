package tds

import (
	"context"
	"net"
	"testing"
	"time"
)

// adventureWorks are the 20 columns of Production.TransactionHistory and Sales.SalesOrderDetail, with rows of both.
func adventureWorks(rows int) (columns []Column, history, details [][]any) {
	integer, money, moment := Type{Kind: KindInt32}, Type{Kind: KindMoney}, Type{Kind: KindDateTime}
	for _, t := range []Type{
		integer, integer, integer, integer, moment, {Kind: KindNChar, Size: 1}, integer, money, moment,
		integer, integer, {Kind: KindNVarChar, Size: 25}, {Kind: KindInt16}, integer, integer, money, money,
		{Kind: KindDecimal, Precision: 38, Scale: 6}, {Kind: KindUniqueIdentifier}, moment,
	} {
		columns = append(columns, Column{Type: t, Nullable: true})
	}
	day := time.Date(2013, 7, 31, 0, 0, 0, 0, time.UTC)
	for i := range int64(rows) {
		history = append(history, []any{100000 + i, 1 + i%300, 41590 + i, int64(0), day, "W", 1 + i%9, Money(500000 + i), day})
		details = append(details, []any{43659 + i/12, i + 1, "4911-403C-98", 1 + i%5, 776 + i%200, int64(1),
			Money(20249940), Money(0), NewDecimal(2024994000+i, 6), [16]byte{byte(i), byte(i >> 8)}, day})
	}
	return columns, history, details
}

// BenchmarkCrossRows measures joined rows of the paper's shape over TCP to a client that only discards.
func BenchmarkCrossRows(b *testing.B) {
	columns, history, details := adventureWorks(1000)
	s := &script{batch: func(_ context.Context, _ string, _ []Param, w *Writer) {
		w.Columns(columns)
		if _, err := w.CrossRows(history, details); err != nil {
			b.Error(err)
		}
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := Serve([]net.Listener{l}, s, Options{})
	defer server.Close()
	c := login(b, server)
	if err := c.SetDeadline(time.Time{}); err != nil {
		b.Fatal(err)
	}
	in := make([]byte, 1<<20)
	for b.Loop() {
		c.query("x")
		for last := false; !last; {
			n, err := c.Read(in)
			if err != nil {
				b.Fatal(err)
			}
			// The server waits only at the end of the message, after a DONE with nothing following.
			last = n >= 13 && string(in[n-13:n]) == string(appendDone(nil, tokenDone, 0, 0, 0))
		}
	}
	// A million rows an operation.
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "Mrow/s")
}
