package sqlserver

import (
	"strings"
	"testing"

	"vnuma.dev/lab/internal/tds"
)

// generator is a session with the product's empty tables, and its INSERT into Sales.SalesOrderDetail.
func generator(b *testing.B) (s *Session, insert string) {
	s = open(b, nil)
	for _, text := range batches(readFile(b, "../tsql/testdata/statements.sql")) {
		switch {
		case strings.Contains(text, "WITH digit") && strings.Contains(text, "Sales.SalesOrderDetail"):
			insert = text
		case strings.Contains(text, "CREATE ") || strings.Contains(text, "ADD FILE") || strings.Contains(text, "USE [vnuma"):
			s.ask(text, tds.Param{Name: "@P1", Type: tds.Type{Kind: tds.KindNVarChar, Size: 9}, Value: "vnuma"})
		}
	}
	return s, insert
}

// BenchmarkGenerateRows is the product's set-based INSERT of 121,317 rows of eleven columns.
func BenchmarkGenerateRows(b *testing.B) {
	s, insert := generator(b)
	for b.Loop() {
		must(b, s, insert)
		must(b, s, "DELETE FROM Sales.SalesOrderDetail")
	}
}

// BenchmarkVerify is the product's count and checksum over those rows.
func BenchmarkVerify(b *testing.B) {
	s, insert := generator(b)
	must(b, s, insert)
	for b.Loop() {
		must(b, s, `SELECT COUNT_BIG(*), SUM(CAST(BINARY_CHECKSUM(SalesOrderID, SalesOrderDetailID, CarrierTrackingNumber, OrderQty, ProductID,
			SpecialOfferID, UnitPrice, UnitPriceDiscount, LineTotal, rowguid, ModifiedDate) AS bigint)) FROM Sales.SalesOrderDetail`)
	}
}

// BenchmarkTop reads the first 3000 rows of them in the order of the primary key.
func BenchmarkTop(b *testing.B) {
	s, insert := generator(b)
	must(b, s, insert)
	for b.Loop() {
		must(b, s, "SELECT COUNT_BIG(*) FROM (SELECT TOP (3000) * FROM Sales.SalesOrderDetail ORDER BY SalesOrderID, SalesOrderDetailID) AS x")
	}
}

// BenchmarkServerForm is the server form of the join with 3000 x 3000 pairs.
func BenchmarkServerForm(b *testing.B) {
	s := open(b, nil)
	must(b, s, dataset)
	for b.Loop() {
		must(b, s, `SELECT COUNT_BIG(*), SUM(CAST(CHECKSUM(a.id, b.id) AS bigint)) FROM (SELECT TOP (3000) * FROM dbo.a ORDER BY id) AS a
			CROSS JOIN (SELECT TOP (3000) * FROM dbo.b ORDER BY id) AS b`)
	}
}

// BenchmarkCall is one remote procedure call of the product's two procedures, without the network.
func BenchmarkCall(b *testing.B) {
	for _, name := range []string{"noop", "seek"} {
		b.Run(name, func(b *testing.B) {
			s := open(b, nil)
			must(b, s, callProcedures)
			b.ReportAllocs()
			for b.Loop() {
				s.rpc(b, "dbo."+name, 2)
			}
		})
	}
}
