package sqlserver

import (
	"strconv"
	"testing"
)

// number is that of the first error, "" if none.
func (r *record) number() string {
	if len(r.errors) == 0 {
		return ""
	}
	return strconv.Itoa(int(r.errors[0].Number))
}

// A procedure runs with its arguments by position, by name and by default, and returns a number.
func TestUserProcedures(t *testing.T) {
	s := open(t, nil)
	must(t, s, "CREATE DATABASE d")
	must(t, s, "USE d")
	must(t, s, "CREATE TABLE dbo.t (n int NOT NULL)")
	must(t, s, `CREATE PROCEDURE dbo.fill (@n int, @times int = 2) WITH RECOMPILE AS
BEGIN
	SET NOCOUNT ON;
	DECLARE @i int = 0;
	WHILE @i < @times BEGIN
		INSERT INTO dbo.t (n) VALUES (@n + @i);
		SET @i += 1;
	END;
END`)
	must(t, s, "EXEC dbo.fill 10")
	must(t, s, "EXEC dbo.fill @times = 1, @n = 20")
	gives(t, s, "DECLARE @r int; EXEC @r = fill 30, 3; SELECT @r, (SELECT SUM(n) FROM dbo.t)", "0,134")
	gives(t, s, "SELECT name FROM sys.objects WHERE type = 'P' AND object_id = OBJECT_ID('dbo.fill', 'P')", "fill")
	must(t, s, "DROP PROCEDURE IF EXISTS dbo.fill, dbo.nothing")
	for text, want := range map[string]string{
		"EXEC dbo.fill":                      "2812",
		"DROP PROCEDURE dbo.fill":            "3701",
		"CREATE PROCEDURE dbo.t AS SELECT 1": "2714",
	} {
		fails(t, s, text, want)
	}
}

// Wrong arguments are refused by their numbers.
func TestArgumentsOfProcedures(t *testing.T) {
	s := open(t, nil)
	must(t, s, "CREATE PROCEDURE dbo.one @a int AS SELECT @a")
	for text, want := range map[string]string{
		"EXEC dbo.one":              "201",
		"EXEC dbo.one 1, 2":         "8144",
		"EXEC dbo.one @b = 1":       "201",
		"EXEC dbo.one @a=1, @b = 1": "8144",
		"EXEC dbo.one 'x'":          "245",
	} {
		fails(t, s, text, want)
	}
}

// A natively compiled procedure runs what the lab knows in one; @@ROWCOUNT is 0 after it.
func TestNativelyCompiledProcedures(t *testing.T) {
	s := open(t, nil)
	must(t, s, "CREATE DATABASE d")
	must(t, s, "ALTER DATABASE d ADD FILEGROUP m CONTAINS MEMORY_OPTIMIZED_DATA")
	must(t, s, `ALTER DATABASE d ADD FILE (NAME = 'm1', FILENAME = 'c:\m1') TO FILEGROUP m`)
	must(t, s, "USE d")
	must(t, s, "CREATE TABLE dbo.im (c1 bigint NOT NULL PRIMARY KEY NONCLUSTERED HASH WITH (BUCKET_COUNT = 1024)) WITH (MEMORY_OPTIMIZED = ON)")
	native := func(body string) string {
		return `CREATE PROCEDURE dbo.p WITH NATIVE_COMPILATION, SCHEMABINDING, EXECUTE AS OWNER AS BEGIN ATOMIC WITH
			(TRANSACTION ISOLATION LEVEL = SNAPSHOT, LANGUAGE = N'us_english') ` + body + " END"
	}
	fails(t, s, native("WAITFOR DELAY '00:00:01'"), "50000")
	must(t, s, native("INSERT INTO dbo.im (c1) VALUES (1);"))
	gives(t, s, "EXEC dbo.p; SELECT @@ROWCOUNT, (SELECT COUNT_BIG(*) FROM dbo.im)", "0,1")
}
