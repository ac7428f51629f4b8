package tsql

import (
	"os"
	"strings"
	"testing"
)

// Every statement that the product is known to send is read, as a batch of its own.
func TestProductStatements(t *testing.T) {
	text, err := os.ReadFile("testdata/statements.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range batches(string(text)) {
		if _, err := Parse(batch); err != nil {
			t.Errorf("%v\n%s", err, batch)
		}
	}
}

// batches splits a script at its GO lines.
func batches(script string) []string { return strings.Split(script, "\nGO\n") }

// Operators bind as in T-SQL: multiplication, addition, comparison, NOT, AND, OR.
func TestPrecedence(t *testing.T) {
	for text, want := range map[string]string{
		"1 + 2 * 3":                    "(1 + (2 * 3))",
		"1 - 2 - 3":                    "((1 - 2) - 3)",
		"NOT a = 1 AND b = 2 OR c = 3": "(((NOT (a = 1)) AND (b = 2)) OR (c = 3))",
		"a BETWEEN 1 AND 2 AND b <> 3": "((a BETWEEN 1 AND 2) AND (b <> 3))",
		"a NOT IN (1, 2) OR b IS NULL": "((a NOT IN (1, 2)) OR (b IS NULL))",
	} {
		if one, other := readExpression(t, text), readExpression(t, want); Format(one) != Format(other) {
			t.Errorf("%s reads as %s, want %s", text, Format(one), Format(other))
		}
	}
}

// Expressions that differ in anything but the case of names and their line differ in their canonical spelling.
func TestCanonicalSpelling(t *testing.T) {
	texts := []string{"a", "'a'", "1", "0x1", "a + b", "a - b", "b + a", "a IS NULL", "a IS NOT NULL", "a IN (1)", "a IN (1, 2)",
		"a LIKE 'x'", "COUNT_BIG(*)", "COUNT(a)", "CAST(a AS int)", "CAST(a AS bigint)",
		"CASE WHEN 1 = 1 THEN 'a' ELSE b END", "CASE WHEN 1 = 1 THEN 'a' END", "(SELECT 1)", "(SELECT 2)"}
	seen := map[string]string{}
	for _, text := range texts {
		spelled := Format(readExpression(t, text))
		if other, twice := seen[spelled]; twice {
			t.Errorf("%s and %s are both spelled %s", text, other, spelled)
		}
		seen[spelled] = text
	}
	if one, other := Format(readExpression(t, "Sum([T].X)")), Format(readExpression(t, "\n SUM(t.x)")); one != other {
		t.Errorf("names in another case on another line are spelled %s, not %s", other, one)
	}
}

// readExpression is the one column of a SELECT.
func readExpression(t *testing.T, text string) Expr {
	statements, err := Parse("SELECT " + text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return statements[0].(*SelectStatement).Query.Body.(*Select).Items[0].X
}

// What cannot be parsed gets the number and the word that SQL Server would name.
func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT FROM t":                         "156 FROM",
		"SELEKT 1 2":                            "102 2",
		"SELECT 1 +":                            "102 end of the batch",
		"SELECT 'abc":                           "105 abc",
		"SELECT 1 /* open":                      "113 end comment",
		"SELECT a FROM t WHERE a = = 1":         "102 =",
		"SET NONSENSE ON":                       "195 NONSENSE",
		"MERGE t USING u ON 1 = 1":              "156 MERGE",
		"SELECT 1 FOR XML PATH":                 "156 FOR",
		"ALTER DATABASE d SET NONSENSE ON":      "102 NONSENSE",
		"SELECT 1 OPTION (NONSENSE 1)":          "102 NONSENSE",
		"RESTORE DATABASE d FROM DISK = 'x'":    "156 RESTORE",
		"SELECT " + strings.Repeat("(", 100000): "191 nested",
	} {
		_, err := Parse(text)
		number, word, _ := strings.Cut(want, " ")
		if err == nil || !strings.Contains(err.Error(), "Msg "+number+",") || !strings.Contains(err.Text, word) {
			t.Errorf("%.60s: got %v, want %s", text, err, want)
		}
	}
}

// Line numbers of errors count from the start of the batch, comments and literals included.
func TestErrorLine(t *testing.T) {
	_, err := Parse("-- a\n/* b\n */ SELECT 'x\ny'\nFROM")
	if err == nil || err.Line != 5 {
		t.Errorf("got %v, want an error in line 5", err)
	}
}

// IF and ELSE, and blocks keep their statements.
func TestControlFlow(t *testing.T) {
	statements, err := Parse(`IF OBJECT_ID(N'tempdb..#t') IS NOT NULL DROP TABLE #t; ELSE BEGIN SELECT 2; SELECT 1 END`)
	if err != nil {
		t.Fatal(err)
	}
	choice := statements[0].(*If)
	if _, ok := choice.Then.(*Drop); !ok || len(choice.Else.(*Block).Body) != 2 {
		t.Errorf("IF reads as %+v", choice)
	}
}

// A memory-optimised table keeps its options, keys and bucket count.
func TestCreateTable(t *testing.T) {
	statements, err := Parse(`CREATE TABLE dbo.t (id int NOT NULL, v decimal(38, 6) NULL DEFAULT (0),
		CONSTRAINT pk PRIMARY KEY NONCLUSTERED HASH (id) WITH (BUCKET_COUNT = 131072))
		WITH (MEMORY_OPTIMIZED = ON, DURABILITY = SCHEMA_ONLY)`)
	if err != nil {
		t.Fatal(err)
	}
	table := statements[0].(*CreateTable)
	if !table.MemoryOptimized || !table.SchemaOnly || len(table.Columns) != 2 || len(table.Indexes) != 1 {
		t.Fatalf("read as %+v", table)
	}
	if pk := table.Indexes[0]; !pk.Primary || !pk.Hash {
		t.Errorf("key reads as %+v", pk)
	}
}

// FuzzParse: no input makes the parser panic or run forever, and parsing is repeatable.
func FuzzParse(f *testing.F) {
	if text, err := os.ReadFile("testdata/statements.sql"); err == nil {
		for _, batch := range batches(string(text)) {
			f.Add(batch)
		}
	}
	f.Add("SELECT [a]]b], \"c\"\"d\", 0x1, .5e-3 FROM t AS [x] WHERE a NOT LIKE N'''' -- end")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse(text)
		second, again := Parse(text)
		if (err == nil) != (again == nil) || len(first) != len(second) {
			t.Errorf("two readings differ: %v, %v", err, again)
		}
		if err != nil && (err.Number == 0 || err.Text == "") {
			t.Errorf("an error without number or text: %+v", err)
		}
	})
}
