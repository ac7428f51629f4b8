package sqlserver

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"vnuma.dev/lab/internal/tds"
)

// SET STATISTICS TIME reports in the order and number of the real server: 3613 first, twice for an
// auto-parameterised statement, 3612 after each statement's DONE; an error is followed by 3612 and 3621.
func TestOrderOfMessages(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	if r := must(t, s, "SET STATISTICS TIME ON"); !reflect.DeepEqual(r.lines, []string{"done"}) {
		t.Errorf("switching on sends %v", r.lines)
	}
	for text, want := range map[string]string{
		"SELECT 1":                              "info 3613, row, done 1, info 3612, done",
		"SELECT id FROM dbo.a WHERE id = 7":     "info 3613, info 3613, row, done 1, info 3612, done",
		"DECLARE @i int; SET @i = 1; SELECT @i": "info 3613, info 3612, info 3612, row, done 1, info 3612, done",
		"INSERT INTO dbo.a VALUES (1, 1, NULL)": "info 3613, info 3613, error 2627, info 3612, info 3621, done error",
		"SELECT 1 / 0; SELECT 2":                "info 3613, error 8134, info 3612, done error, row, done 1, info 3612, done",
		"EXEC sp_executesql N'SELECT 1'":        "info 3613, info 3613, row, done 1, info 3612, info 3612, done",
		"SELECT a.*, b.* FROM dbo.a CROSS JOIN (SELECT TOP (2) * FROM dbo.b) AS b": "info 3613, cross 3000 x 2, done 6000, info 3612, done",
	} {
		if got := strings.Join(s.ask(text).lines, ", "); got != want {
			t.Errorf("%s\n sends %s\n want  %s", text, got, want)
		}
	}
}

// sp_executesql within a batch has the parameters that it declares, and not the batch's variables.
func TestParametersOfExecuteSQL(t *testing.T) {
	s := open(t, nil)
	call := "EXEC sys.sp_executesql N'SELECT @p + 1, @d', N'@p int, @d decimal(18,2)', @p = 41, @d = 1.5"
	gives(t, s, call, "42,1.50")
	for text, want := range map[string]string{
		"DECLARE @b int = 1; EXEC sp_executesql N'SELECT @b', N'@p int', @p = 1": "137",
		"EXEC sp_executesql N'SELECT 1', N'@p int', @q = 1":                      "137",
		"EXEC sp_executesql N'SELECT 1', 5, @p = 1":                              "214",
	} {
		fails(t, s, text, want)
	}
}

// The texts of 3612 and 3613 are those of the server, spaces and line feeds included.
func TestTextsOfTimes(t *testing.T) {
	if got, want := compileTimes(1, 2).Text, "SQL Server parse and compile time: \n   CPU time = 1 ms, elapsed time = 2 ms."; got != want {
		t.Errorf("3613 is %q, want %q", got, want)
	}
	got := executionTimes(outcome{}.measured(time.Now())).Text
	if want := "\n SQL Server Execution Times:\n   CPU time = 0 ms,  elapsed time = 0 ms."; got != want {
		t.Errorf("3612 is %q, want %q", got, want)
	}
}

// @@ERROR and ROWCOUNT_BIG are those of the batch before, and a batch that reads them does not change them first.
func TestErrorAndRowCountOfTheBatchBefore(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	for text, want := range map[string]string{
		"SELECT id FROM dbo.a":               "0,3000",
		"INSERT INTO dbo.a VALUES (1, 1, 1)": "2627,0",
		"SELECT * FROM nowhere":              "208,0",
	} {
		s.ask(text)
		gives(t, s, "SELECT @@ERROR, ROWCOUNT_BIG()", want)
	}
}

// SET STATISTICS XML sends a plan after the result; the spool over the inner side depends on the hint.
func TestShowplan(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	must(t, s, "SET STATISTICS XML ON")
	const query = "SELECT COUNT_BIG(*) FROM (SELECT TOP (5) * FROM dbo.a ORDER BY id) AS a CROSS JOIN (SELECT TOP (4) * FROM dbo.b ORDER BY id) AS b OPTION (MAXDOP 1"
	hash := func(text string) string {
		_, after, _ := strings.Cut(text, `QueryPlanHash="`)
		return after[:18]
	}
	r := must(t, s, query+")")
	spooled := r.text()
	if !reflect.DeepEqual(r.lines, []string{"row", "done 1", "row", "done 1"}) || r.columns[0].Name != "Microsoft SQL Server 2005 XML Showplan" {
		t.Errorf("the plan comes as %v, %v", r.lines, r.columns)
	}
	for _, part := range []string{`PhysicalOp="Table Spool" LogicalOp="Lazy Spool"`, `PhysicalOp="Nested Loops"`, `LogicalOp="TopN Sort"`,
		`DegreeOfParallelism="1"`, `EstimatedExecutionMode="Row"`} {
		if !strings.Contains(spooled, part) {
			t.Errorf("the plan lacks %s: %s", part, spooled)
		}
	}
	plain := must(t, s, query+", NO_PERFORMANCE_SPOOL)").text()
	if strings.Contains(plain, "Spool") || hash(plain) == hash(spooled) {
		t.Errorf("the hint leaves the spool or the hash: %s", plain)
	}
}

// A MAXDOP hint is the number of workers, in the statement's plan and in the plan cache, up to the CPUs; the query
// hash stays the same.
func TestMaxDOPIsEffective(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	const query = "SELECT COUNT_BIG(*) FROM (SELECT TOP (5) * FROM dbo.a ORDER BY id) AS a CROSS JOIN (SELECT TOP (4) * FROM dbo.b ORDER BY id) AS b"
	between := func(text, begin, end string) string {
		_, after, _ := strings.Cut(text, begin)
		found, _, _ := strings.Cut(after, end)
		return found
	}
	hashes := map[string]bool{}
	for hint, want := range map[string]string{"": "1", " OPTION (MAXDOP 1)": "1", " OPTION (MAXDOP 4)": "4", " OPTION (MAXDOP 64)": "16"} {
		must(t, s, "SET STATISTICS XML ON")
		drawn := must(t, s, query+hint).text()
		must(t, s, "SET STATISTICS XML OFF")
		if got := between(drawn, ` DegreeOfParallelism="`, `"`); got != want || strings.Contains(drawn, "Gather Streams") != (want != "1") {
			t.Errorf("%q: degree %s, want %s: %s", hint, got, want, drawn)
		}
		hashes[between(drawn, ` QueryHash="`, `"`)] = true
		plan := between(drawn, `QueryPlanHash="`, `"`)
		got := must(t, s, "SELECT last_dop FROM sys.dm_exec_query_stats WHERE query_plan_hash = "+plan).text()
		if got != want {
			t.Errorf("%q: last_dop %s, want %s", hint, got, want)
		}
	}
	if len(hashes) != 1 {
		t.Errorf("one query has the hashes %v", hashes)
	}
}

// Reported times are those of the cost model: a run repeats under its seed, and SlowFactor multiplies.
func TestTimesFollowTheModel(t *testing.T) {
	time := func(slow float64) string {
		i := newInstance(t, nil)
		b := boot(3, 8, 2, 8)
		b.Faults.SlowFactor = slow
		if err := i.Start(b); err != nil {
			t.Fatal(err)
		}
		s := login(t, i, "")
		must(t, s, dataset)
		return executionTimes(i.crossJoin("client", 1000, 1000)).Text
	}
	first, again, slow := time(0), time(0), time(10)
	if first != again || slow == first || !strings.Contains(slow, "elapsed time = 19") && !strings.Contains(slow, "elapsed time = 20") {
		t.Errorf("times are %q, %q and, ten times slower, %q", first, again, slow)
	}
}

// Waiting for the client grows with the client form only.
func TestNetworkWaitGrowsWithTheClientForm(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	const waits = "SELECT SUM(wait_time_ms) FROM sys.dm_exec_session_wait_stats WHERE session_id = @@SPID AND wait_type = 'ASYNC_NETWORK_IO'"
	must(t, s, "SELECT COUNT_BIG(*) FROM dbo.a CROSS JOIN dbo.b")
	before := must(t, s, waits).text()
	must(t, s, "SELECT a.*, b.* FROM dbo.a CROSS JOIN dbo.b")
	if after := must(t, s, waits).text(); before != "NULL" || after == "NULL" || after == "0" {
		t.Errorf("wait before the client form %s, after it %s", before, after)
	}
}

// A request that ended early stops its statement at once and sends nothing after it.
func TestCancelledRequest(t *testing.T) {
	s := open(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := &record{failure: errors.New("gone")}
	s.run(ctx, "SELECT COUNT(*) FROM sys.all_objects AS a CROSS JOIN sys.all_objects AS b CROSS JOIN sys.all_objects AS c", nil, r)
	for _, line := range r.lines {
		if strings.HasPrefix(line, "error") {
			t.Errorf("a cancelled request sends %v", r.lines)
		}
	}
}

// A cancelled SELECT ... INTO creates no table, however far it had got, and no error number.
func TestCancelledIntoLeavesNothing(t *testing.T) {
	s := open(t, func(c *Config) { c.TimeScale = 1 })
	must(t, s, dataset)
	s.ask("SELECT 1 / 0")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	r := &record{}
	s.run(ctx, "SELECT a.id, a.v, b.w INTO #left FROM dbo.a AS a CROSS JOIN dbo.b AS b", nil, r)
	if ctx.Err() == nil || strings.Contains(strings.Join(r.lines, ","), "done 9000000") {
		t.Fatalf("the statement was not cancelled: %v", r.lines)
	}
	gives(t, s, "SELECT @@ERROR, OBJECT_ID(N'tempdb..#left')", "0,NULL")
}

// TOP over the order of a range index reads no more rows than it returns; a hash index has no order.
func TestTopReadsAlongTheKey(t *testing.T) {
	s := open(t, nil)
	must(t, s, dataset)
	must(t, s, "INSERT INTO dbo.a VALUES (-5, 1, NULL); SET STATISTICS XML ON")
	const query = "SELECT COUNT_BIG(*), MIN(id) FROM (SELECT TOP (5) * FROM dbo.%s ORDER BY id) AS x"
	ordered := must(t, s, strings.Replace(query, "%s", "a", 1)).text()
	for _, part := range []string{`PhysicalOp="Top"`, `PhysicalOp="Index Scan" LogicalOp="Index Scan"`, `Index="[PK__a`} {
		if !strings.Contains(ordered, part) {
			t.Errorf("the plan lacks %s: %s", part, ordered)
		}
	}
	if strings.Contains(ordered, "Sort") {
		t.Errorf("the plan sorts: %s", ordered)
	}
	if hashed := must(t, s, strings.Replace(query, "%s", "b", 1)).text(); !strings.Contains(hashed, `LogicalOp="TopN Sort"`) {
		t.Errorf("the hash index is read in order: %s", hashed)
	}
	must(t, s, "SET STATISTICS XML OFF")
	gives(t, s, "SELECT TOP (3) id FROM dbo.a ORDER BY id", "-5|1|2")
}

// A failure inside the executor ends its own connection: it is logged, and others continue.
func TestFailureInsideTheExecutor(t *testing.T) {
	functions["test_failure"] = function{result: func([]scalar) tds.Type { panic("broken while compiling") }}
	defer delete(functions, "test_failure")
	s := open(t, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the executor hides its own failure")
			}
			s.Close()
		}()
		s.ask("SELECT test_failure()")
	}()
	other := login(t, s.inst, "")
	gives(t, other, "SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE session_id = @@SPID", "1")
}

// @@SPID is the number in the connection's packets.
func TestSessionNumberIsTheConnections(t *testing.T) {
	i := open(t, nil).inst
	s, refused := i.Open(tds.Login{User: "sa", Password: "right", SPID: 4711})
	if refused != nil {
		t.Fatal(refused)
	}
	gives(t, s.(*Session), "SELECT @@SPID", "4711")
}

// Logins need the right password and a database that can be opened.
func TestLogins(t *testing.T) {
	i := newInstance(t, nil)
	if err := i.Start(boot(1, 1, 16, 1)); err != nil {
		t.Fatal(err)
	}
	must(t, login(t, i, ""), "CREATE DATABASE study")
	number := func(user, password, database string) int32 {
		_, refused := i.Open(tds.Login{User: user, Password: password, Database: database})
		if refused == nil {
			return 0
		}
		return refused.Number
	}
	for _, c := range []struct {
		user, password, database string
		want                     int32
	}{{"sa", "right", "study", 0}, {"SA", "right", "STUDY", 0}, {"sa", "wrong", "", 18456}, {"eve", "right", "", 18456}, {"sa", "right", "other", 4060}} {
		if got := number(c.user, c.password, c.database); got != c.want {
			t.Errorf("login %s to %q gives %d, want %d", c.user, c.database, got, c.want)
		}
	}
	restart(t, i, func(b *bootFaults) { b.DatabaseRecovering = true })
	if got := number("sa", "right", "study"); got != 4060 {
		t.Errorf("login to a recovering database gives %d, want 4060", got)
	}
	s := login(t, i, "master")
	if r := s.ask("USE study"); len(r.errors) != 1 || r.errors[0].Number != 922 {
		t.Errorf("USE of a recovering database gives %+v, want 922", r.errors)
	}
	if r := must(t, s, "SELECT state_desc FROM sys.databases WHERE name = N'study'"); r.text() != "RECOVERING" {
		t.Errorf("the state is %s", r.text())
	}
	restart(t, i, func(b *bootFaults) { b.DatabaseRecovering, b.RecoversAfter = true, time.Nanosecond })
	if got := number("sa", "right", "study"); got != 0 {
		t.Errorf("login to a recovered database gives %d", got)
	}
	restart(t, i, func(b *bootFaults) { b.RefuseLogins = 18456 })
	if got := number("sa", "right", ""); got != 18456 {
		t.Errorf("login with the fault gives %d, want 18456", got)
	}
	before := i.Logins()["sa"]
	restart(t, i, func(b *bootFaults) { b.RefuseLogins = 18486 })
	if got := number("sa", "right", ""); got != 18486 {
		t.Errorf("login with the fault gives %d, want 18486", got)
	}
	if now := i.Logins()["sa"]; now.Failed != before.Failed+1 || now.Succeeded != before.Succeeded || before.Succeeded == 0 {
		t.Errorf("counted %+v, before %+v", now, before)
	}
}

// Durable rows are kept over a restart; rows of SCHEMA_ONLY tables and temporary tables are not; the address is the same.
func TestRestart(t *testing.T) {
	i := newInstance(t, nil)
	address := i.Addr()
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the port is open before the first start")
	}
	if err := i.Start(boot(1, 1, 16, 1)); err != nil {
		t.Fatal(err)
	}
	must(t, login(t, i, ""), dataset)
	restart(t, i, func(*bootFaults) {})
	if conn, err := net.Dial("tcp", address); err != nil {
		t.Errorf("after the restart: %v", err)
	} else if err := conn.Close(); err != nil {
		t.Error(err)
	}
	r := must(t, login(t, i, "study"), "SELECT (SELECT COUNT(*) FROM dbo.a), (SELECT COUNT(*) FROM dbo.b), OBJECT_ID('dbo.b')")
	if !strings.HasPrefix(r.text(), "3000,0,") || strings.HasSuffix(r.text(), "NULL") {
		t.Errorf("after the restart the tables hold %s", r.text())
	}
	restart(t, i, func(b *bootFaults) { b.NeverListens = true })
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the port is open in a boot that never listens")
	}
}

// A session's temporary tables are its own.
func TestTemporaryTablesBelongToTheirSession(t *testing.T) {
	s := open(t, nil)
	must(t, s, "SELECT 1 AS n INTO #mine")
	other := login(t, s.inst, "")
	if r := other.ask("SELECT * FROM #mine"); len(r.errors) != 1 || r.errors[0].Number != 208 {
		t.Errorf("another session sees %+v %s", r.errors, r.text())
	}
	if r := must(t, s, "SELECT OBJECT_ID(N'tempdb..#mine')"); r.text() == "NULL" {
		t.Error("OBJECT_ID does not find the session's own table")
	}
}
