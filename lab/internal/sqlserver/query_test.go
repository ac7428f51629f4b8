package sqlserver

import (
	"strings"
	"testing"

	"vnuma.dev/lab/internal/tds"
)

// Each query gives the result that SQL Server gives.
func TestQueries(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	for text, want := range map[string]string{
		"SELECT 7 / 2, 7 % 2, -7 / 2":                                                                                                 "3,1,-3",
		"SELECT 1 + 2 * 3, (1 + 2) * 3":                                                                                               "7,9",
		"SELECT CAST(CAST(12345 AS money) / 100 * (1 + 2) AS numeric(38, 6))":                                                         "370.350000",
		"SELECT N'a' + CAST(5 AS nvarchar(10)) + RIGHT(N'000' + N'42', 3)":                                                            "a5042",
		"SELECT CASE WHEN NULL = NULL THEN 1 WHEN 1 = 1 THEN 2 END":                                                                   "2",
		"SELECT 1 WHERE 'ABC' LIKE 'a[b-c]%' AND 'x' NOT IN ('y', 'z') AND 2 BETWEEN 1 AND 3":                                         "1",
		"SELECT 1 WHERE NULL NOT IN (1, 2)":                                                                                           "",
		"SELECT 1 WHERE 1 NOT IN (2, NULL)":                                                                                           "",
		"SELECT DATEADD(day, 31, CAST('20130131' AS datetime))":                                                                       "2013-03-03 00:00:00.000",
		"SELECT v, COUNT(*), SUM(CAST(id AS bigint)) FROM dbo.a WHERE id <= 14 AND v < 2 GROUP BY v ORDER BY 1 DESC":                  "1,2,9|0,2,21",
		"SELECT a.v FROM dbo.a WHERE a.id = 5":                                                                                        "5",
		"SELECT COUNT(*), COUNT(t), MIN(id), MAX(id) FROM dbo.a":                                                                      "3000,1500,1,3000",
		"SELECT COUNT(*), SUM(id) FROM dbo.a WHERE id < 0":                                                                            "0,NULL",
		"SELECT TOP (2) id FROM dbo.a ORDER BY id DESC":                                                                               "3000|2999",
		"SELECT DISTINCT v FROM dbo.a WHERE v > 4 ORDER BY v":                                                                         "5|6",
		"SELECT x.id, y.w FROM dbo.a AS x INNER JOIN dbo.b AS y ON y.id = x.id + 1 WHERE x.id < 3":                                    "1,6|2,9",
		"SELECT v.n, a.id FROM (VALUES (1), (9999)) AS v (n) LEFT JOIN dbo.a ON a.id = v.n":                                           "1,1|9999,NULL",
		"SELECT (SELECT MAX(id) FROM dbo.a AS i WHERE i.id < 10) FROM dbo.a AS o WHERE o.id = 2":                                      "9",
		"SELECT 1 WHERE 4 IN (SELECT v FROM dbo.a)":                                                                                   "1",
		"WITH d (n) AS (SELECT 1 UNION ALL SELECT 2), e AS (SELECT n * 10 AS m FROM d) SELECT n, m FROM d CROSS JOIN e ORDER BY m, n": "1,10|2,10|1,20|2,20",
		"SELECT 1 UNION SELECT 1 UNION ALL SELECT 2":                                                                                  "1|2",
		"DECLARE @n int = 4; SET @n += 1; SELECT @n * 2":                                                                              "10",
		"DECLARE @i int = 0; WHILE @i < 5 BEGIN SET @i += 1; END SELECT @i":                                                           "5",
		"SELECT CHECKSUM(1, 2), CHECKSUM(-1)":                                                                                         "18,-1",
		"SELECT DB_NAME(), COL_LENGTH('dbo.a', 't'), SCHEMA_ID('dbo'), SCHEMA_NAME(), SCHEMA_NAME(4)":                                 "study,20,1,dbo,sys",
	} {
		r := s.ask(text)
		if len(r.errors) > 0 || r.text() != want {
			t.Errorf("%s\n gives %q %+v, want %q", text, r.text(), r.errors, want)
		}
	}
}

// Text is measured in UTF-16 units; REPLICATE cuts a sized text at 8,000 bytes and no other.
func TestTextIsMeasuredInUTF16Units(t *testing.T) {
	s := open(t, nil)
	for text, want := range map[string]string{
		"SELECT CAST(N'😀😁' AS nvarchar(3)), RIGHT(N'x😀', 2)":                                                                "😀�,😀",
		"SELECT CAST(0x3DD800DE AS nvarchar(4)) WHERE CAST(N'😀' AS varbinary(8)) = 0x3DD800DE":                              "😀",
		"SELECT 1 WHERE REPLICATE(N'abc', 5000) = RIGHT(REPLICATE(N'abc', 1333), 3999) + N'a'":                              "1",
		"DECLARE @m nvarchar(max) = N'abc'; SELECT 1 WHERE RIGHT(REPLICATE(@m, 5000), 14999) = N'bc' + REPLICATE(@m, 4999)": "1",
	} {
		gives(t, s, text, want)
	}
	fails(t, s, "SELECT REPLICATE(CAST(N'abc' AS nvarchar(max)), 2000000000)", "50000")
}

// A failure has the real server's number, and a text that names the cause.
func TestErrors(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	for text, want := range map[string]string{
		"SELECT * FROM dbo.missing":             "208 dbo.missing",
		"SELECT nothing FROM dbo.a":             "207 nothing",
		"SELECT z.id FROM dbo.a":                "4104 z.id",
		"SELECT id FROM dbo.a CROSS JOIN dbo.b": "209 id",
		"SELECT FOO(1)":                         "195 FOO",
		"SELECT dbo.foo(1)":                     "4121 dbo.foo",
		"SELECT 1 +":                            "102 end",
		"SELECT 1 / 0":                          "8134 zero",
		"SELECT CAST('x' AS int)":               "245 'x'",
		"SELECT 2147483647 + 1":                 "8115 int",
		"SELECT v, id FROM dbo.a GROUP BY v":    "8120 id",
		"SELECT @nope":                          "137 @nope",
		"SELECT id, id INTO #twice FROM dbo.a":  "2705 id",
		"SELECT a.*, b.* INTO #twice FROM dbo.a CROSS JOIN dbo.b":   "2705 id",
		"CREATE DATABASE study":                                     "1801 study",
		"DROP DATABASE other":                                       "3701 other",
		"DROP TABLE dbo.missing":                                    "3701 dbo.missing",
		"DROP DATABASE study":                                       "3702 study",
		"USE other":                                                 "911 other",
		"CREATE TABLE dbo.a (x int)":                                "2714 'a'",
		"CREATE TABLE nowhere.a (x int)":                            "2760 nowhere",
		"INSERT INTO dbo.a VALUES (1, 2, N'x')":                     "2627 (1)",
		"INSERT INTO dbo.a VALUES (9001, NULL, N'x')":               "515 'v'",
		"INSERT INTO dbo.a VALUES (9002, 1, N'much too long text')": "2628 't'",
		"INSERT INTO dbo.a (id) VALUES (1, 2)":                      "213 supplied values",
		"SELECT * FROM sys.dm_os_nonsense":                          "208 dm_os_nonsense",
		"SELECT * FROM GENERATE_SERIES(1, 2)":                       "208 GENERATE_SERIES",
		"EXEC dbo.unknown_procedure":                                "2812 unknown_procedure",
		"BEGIN TRANSACTION":                                         "50000 transactions",
		"SELECT 1 FROM dbo.a AS o WHERE 1 = (SELECT MAX(i.id) FROM dbo.a AS i WHERE i.v = o.v)": "4104 o.v",
		"MERGE dbo.a USING dbo.b ON 1 = 1":             "156 MERGE",
		"SELECT SUM(id) OVER (ORDER BY id) FROM dbo.a": "156 OVER",
		"SELECT 1 AS n UNION SELECT 2 ORDER BY n":      "50000 ORDER BY",
		"DECLARE @m int; SELECT @m = 1":                "50000 SELECT @variable",
		"THROW 51000, 'mine', 1":                       "51000 mine",
		"RAISERROR('bad thing', 16, 1)":                "50000 bad thing",
	} {
		r := s.ask(text)
		number, word, _ := strings.Cut(want, " ")
		if len(r.errors) != 1 || textOf(int64(r.errors[0].Number)) != number || !strings.Contains(r.errors[0].Text, word) {
			t.Errorf("%s\n gives %+v, want %s", text, r.errors, want)
		}
	}
}

// A memory-optimised table and another user database cannot be in the same statement.
func TestMemoryOptimisedTablesKeepToOneDatabase(t *testing.T) {
	s := open(t, func(c *Config) { c.AdventureWorks = true })
	must(t, s, dataset)
	for _, text := range []string{
		"INSERT INTO dbo.a SELECT TransactionID, Quantity, NULL FROM AdventureWorks2019.Production.TransactionHistory",
		"SELECT COUNT(*) FROM dbo.a CROSS JOIN AdventureWorks2019.Sales.SalesOrderDetail",
	} {
		r := s.ask(text)
		if len(r.errors) != 1 || r.errors[0].Number != 41317 {
			t.Errorf("%s\n gives %+v, want 41317", text, r.errors)
		}
	}
	r := must(t, s, `SELECT * INTO dbo.staging FROM AdventureWorks2019.Production.TransactionHistory
GO
INSERT INTO dbo.a SELECT TransactionID, Quantity, TransactionType FROM dbo.staging
GO
SELECT COUNT(*) FROM dbo.a`)
	if r.text() != "116443" {
		t.Errorf("after the copy in two steps there are %s rows, want 116443", r.text())
	}
}

// A statement that fails removes all its rows again.
func TestFailedStatementLeavesNoRows(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	s.ask("INSERT INTO dbo.a SELECT n, 1, NULL FROM (VALUES (7001), (7002), (5)) AS v (n)")
	if r := must(t, s, "SELECT COUNT(*) FROM dbo.a"); r.text() != "3000" {
		t.Errorf("there are %s rows, want 3000", r.text())
	}
}

// Parameters have their names and types.
func TestParameters(t *testing.T) {
	s := open(t, nil)
	r := s.ask("SELECT @P1 + N'!', @P2 + 1, DB_ID(@P1)",
		tds.Param{Name: "@P1", Type: tds.Type{Kind: tds.KindNVarChar, Size: 10}, Value: "name"},
		tds.Param{Name: "@P2", Type: tds.Type{Kind: tds.KindInt32}, Value: int64(4)})
	if r.text() != "name!,5,NULL" {
		t.Errorf("parameters give %s %+v", r.text(), r.errors)
	}
}

// The aggregate over a cross join equals the sum over every pair, by the fast path and by the plain one.
func TestAggregateOverPairs(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	const from = ` FROM (SELECT TOP (61) * FROM dbo.a ORDER BY id) AS a CROSS JOIN (SELECT TOP (50) * FROM dbo.b ORDER BY id) AS b`
	for _, x := range []string{"SUM(CAST(CHECKSUM(a.id, b.w, a.t) AS bigint))", "SUM(CAST(BINARY_CHECKSUM(b.id, a.t) AS bigint))", "SUM(CAST(a.id AS bigint) * b.w - 7)",
		"MAX(a.id + b.id)", "MIN(a.v - b.id)", "COUNT_BIG(*)", "COUNT(a.id + b.id)", "SUM(BINARY_CHECKSUM(a.id) % 5 + b.id)"} {
		fast := must(t, s, "SELECT "+x+from).text()
		plain := must(t, s, "SELECT "+x+from+" WHERE 1 = 1").text()
		if fast != plain || fast == "" || fast == "NULL" {
			t.Errorf("%s is %s over pairs, %s row by row", x, fast, plain)
		}
	}
}

// The three forms of the join are recognised by their plan: rows as a product, one aggregate, a table of n x n rows.
func TestFormsOfTheJoin(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	const from = ` FROM (SELECT TOP (300) * FROM dbo.a ORDER BY id) AS a CROSS JOIN (SELECT TOP (200) * FROM dbo.b ORDER BY id) AS b OPTION (MAXDOP 1)`
	if r := must(t, s, "SELECT a.*, b.*"+from); r.lines[0] != "cross 300 x 200" || r.lines[1] != "done 60000" {
		t.Errorf("the client form sends %v", r.lines)
	}
	if r := must(t, s, "SELECT COUNT_BIG(*)"+from); r.text() != "60000" {
		t.Errorf("the server form counts %s", r.text())
	}
	must(t, s, "SELECT a.id, a.t, b.id AS other, b.w INTO #t"+from)
	gives(t, s, "SELECT COUNT(*) FROM #t", "60000")
	fails(t, s, "SELECT MAX(other) FROM #t", "50000")
	fails(t, s, "DELETE FROM #t WHERE other > 1", "50000")
}

// Every statement that the product is known to send runs, in the order of a study.
func TestProductStatements(t *testing.T) {
	s := open(t, func(c *Config) { c.AdventureWorks = true })
	text := readFile(t, "../tsql/testdata/statements.sql")
	expected := map[int32]bool{3701: true, 2627: true, 208: true, 41317: true, 3702: true, 2714: true, 1801: true}
	for _, text := range batches(text) {
		r := s.ask(text, tds.Param{Name: "@P1", Type: tds.Type{Kind: tds.KindNVarChar, Size: 100}, Value: "vnuma_study"},
			tds.Param{Name: "@P2", Type: tds.Type{Kind: tds.KindNVarChar, Size: 100}, Value: "value"})
		for _, e := range r.errors {
			if !expected[e.Number] {
				t.Errorf("%s\n gives %+v", text, e)
			}
		}
	}
}
