package sqlserver

import (
	"strings"
	"testing"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// BenchmarkGenerateRows is the product's set-based INSERT of 100,000 rows of eleven columns.
func BenchmarkGenerateRows(b *testing.B) {
	s := open(b, nil)
	var insert string
	for _, text := range tsql.Batches(readFile(b, "../tsql/testdata/statements.sql")) {
		switch {
		case strings.Contains(text, "WITH digit") && strings.Contains(text, "Sales.SalesOrderDetail"):
			insert = text
		case strings.Contains(text, "CREATE ") || strings.Contains(text, "ADD FILE") || strings.Contains(text, "USE [vnuma"):
			s.ask(text, tds.Param{Name: "@P1", Type: tds.Type{Kind: tds.KindNVarChar, Size: 9}, Value: "vnuma"})
		}
	}
	for b.Loop() {
		must(b, s, insert)
		must(b, s, "DELETE FROM Sales.SalesOrderDetail")
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
