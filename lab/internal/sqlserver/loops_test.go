package sqlserver

import (
	"strings"
	"testing"
)

const loopSetup = `CREATE DATABASE d
GO
ALTER DATABASE d SET DELAYED_DURABILITY = FORCED
GO
ALTER DATABASE d ADD FILEGROUP m CONTAINS MEMORY_OPTIMIZED_DATA
GO
ALTER DATABASE d ADD FILE (NAME = 'm1', FILENAME = 'c:\m1') TO FILEGROUP m
GO
USE d
GO
CREATE TABLE dbo.big (c1 bigint NOT NULL PRIMARY KEY CLUSTERED, c2 datetime NULL DEFAULT (getdate()), c3 char(111) NULL DEFAULT ('a'), c4 int NULL DEFAULT (1))
GO
CREATE PROCEDURE dbo.fill @session bigint, @n int AS
BEGIN
	SET NOCOUNT ON;
	DECLARE @i int = 0, @k bigint = @session * 10000000000;
	WHILE @i < @n
	BEGIN
		INSERT INTO dbo.big (c1) VALUES (@k), (@k + 1);
		SET @k += 2;
		SET @i += 1;
	END;
END
GO
SET NOCOUNT ON
`

// modelled is how long a statement takes on the virtual clock, in ms.
func modelled(t *testing.T, s *Session, statement string) int64 {
	t.Helper()
	before := s.inst.clock.offset
	must(t, s, statement)
	return (s.inst.clock.offset - before).Milliseconds()
}

// A loop of a million inserts adds as many rows as pass by pass, in the model's time.
func TestALoopOfAMillionInserts(t *testing.T) {
	s := open(t, nil)
	must(t, s, loopSetup)
	if ms := modelled(t, s, "EXEC dbo.fill 1, 1000000"); ms < 7200 || ms > 7900 {
		t.Errorf("it takes %d ms, want about 7,400 (one session, near the log writer)", ms)
	}
	must(t, s, "EXEC dbo.fill 2, 1000")
	gives(t, s, "SELECT COUNT_BIG(*) FROM dbo.big", "2002000")
	for _, text := range []string{"SELECT MAX(c1) FROM dbo.big", "SELECT * FROM dbo.big", "DELETE FROM dbo.big WHERE c1 = 1"} {
		fails(t, s, text, "50000")
	}
	restart(t, s.inst, func(*bootFaults) {})
	gives(t, login(t, s.inst, "d"), "SELECT COUNT_BIG(*) FROM dbo.big", "2002000")
}

// Computed at once or pass by pass, a loop gives the same number of rows and the same variables.
func TestLoopsAtOnceAndPassByPassAgree(t *testing.T) {
	for _, loop := range []string{
		"INSERT INTO dbo.r (a, b) VALUES (@i * 3, @k - @i); SET @k += 5; SET @i += 2;",
		"SET @i += 1; INSERT INTO dbo.r (a, b) VALUES (@k + 1, @i), (@k + 2, 7); SET @k += 2;",
	} {
		var results []string
		for _, spoiler := range []string{"", "WAITFOR DELAY '00:00:00'; "} { // with anything else in it, it runs as written
			s := open(t, nil)
			must(t, s, "CREATE TABLE dbo.r (a bigint NOT NULL, b int NULL, c int DEFAULT (4))")
			got := must(t, s, "SET NOCOUNT ON; DECLARE @i int = 0, @k bigint = 100; WHILE @i < 3001 BEGIN "+loop+spoiler+" END; "+
				"SELECT @i, @k, COUNT(*) FROM dbo.r").text()
			results = append(results, got)
		}
		if results[0] != results[1] {
			t.Errorf("%s\n at once      %s\n pass by pass %s", loop, results[0], results[1])
		}
	}
}

// A loop that violates a key, and one whose client gets a message for every pass, runs as written.
func TestLoopsThatRunAsWritten(t *testing.T) {
	s := open(t, nil)
	must(t, s, "CREATE TABLE dbo.r (a int NOT NULL PRIMARY KEY)")
	const fill = "DECLARE @i int = 0; WHILE @i < 1500 BEGIN INSERT INTO dbo.r (a) VALUES (%); SET @i += 1; END"
	r := s.ask("SET NOCOUNT ON; " + strings.Replace(fill, "%", "5", 1))
	if len(r.errors) != 1499 || r.number() != "2627" {
		t.Errorf("one key again and again gives %d errors, the first of them %s", len(r.errors), r.number())
	}
	fails(t, s, "DECLARE @j int = 0, @k bigint = 0; WHILE @j < 1500 BEGIN INSERT INTO dbo.r (a) VALUES (@j - 9000); "+
		"SET @k += 9000000000000000; SET @j += 1; END", "8115")
	must(t, s, "DELETE FROM dbo.r; SET NOCOUNT OFF")
	r = must(t, s, strings.Replace(fill, "%", "@i", 1))
	if n := strings.Count(strings.Join(r.lines, " "), "done 1"); n != 1500 {
		t.Errorf("%d passes told, want 1500", n)
	}
	gives(t, s, "SELECT COUNT(*), MAX(a) FROM dbo.r", "1500,1499")
}

// Workers on the log writer's node and on the other: the published times and spins; a fully durable load
// waits for the log once per transaction.
func TestTheLogWritersNode(t *testing.T) {
	i := newInstance(t, func(c *Config) { c.Version = "12.0.6024.0"; c.Cost.BootSD, c.Cost.IterationSD = 0, 0 })
	if err := i.Start(boot(1, 2, 8, 2)); err != nil {
		t.Fatal(err)
	}
	s := login(t, i, "")
	must(t, s, loopSetup)
	const spins = "SELECT spins FROM sys.dm_os_spinlock_stats WHERE name = 'LOGCACHE_ACCESS'"
	if got := must(t, s, "SELECT r.command, s.cpu_id, s.parent_node_id, s.status FROM sys.dm_exec_requests AS r JOIN sys.dm_os_schedulers AS s "+
		"ON s.scheduler_id = r.scheduler_id WHERE r.command = N'LOG WRITER'").text(); got != "LOG WRITER,0,0,HIDDEN ONLINE" {
		t.Errorf("the log writers of 2014: %s", got)
	}
	must(t, s, "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = 1 TO 7")
	near := modelled(t, s, "EXEC dbo.fill 1, 1000000")
	nearSpins := must(t, s, spins).text()
	must(t, s, "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = 9 TO 15")
	far := modelled(t, s, "EXEC dbo.fill 2, 1000000")
	farSpins := must(t, s, spins).text()
	if near != 7400 || far != 8000 || nearSpins != "20000000" || farSpins != "110000000" {
		t.Errorf("near %d ms and %s spins, then far %d ms and %s spins in all", near, nearSpins, far, farSpins)
	}
	must(t, s, "ALTER DATABASE d SET DELAYED_DURABILITY = DISABLED")
	const waits = "SELECT waiting_tasks_count, wait_time_ms FROM sys.dm_os_wait_stats WHERE wait_type = 'WRITELOG'"
	before := must(t, s, waits).text()
	must(t, s, "EXEC dbo.fill 3, 10000")
	if after := must(t, s, waits).text(); before != "10,4" || after != "10010,1204" {
		t.Errorf("WRITELOG before %s, after %s", before, after)
	}
}
