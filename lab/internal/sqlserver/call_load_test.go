package sqlserver

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

const callProcedures = `CREATE DATABASE v
GO
USE v
GO
CREATE TABLE dbo.item (id int NOT NULL PRIMARY KEY, n int NOT NULL)
GO
INSERT INTO dbo.item VALUES (1, 10), (2, 20), (3, 30)
GO
CREATE PROCEDURE dbo.noop @n int AS
SET NOCOUNT ON;
DECLARE @r float = RAND() * @n;
SELECT CAST(@@SPID AS int) AS session_id
GO
CREATE PROCEDURE dbo.seek @id int AS
SET NOCOUNT ON;
SELECT n FROM dbo.item WHERE id = @id`

// rpc calls a user's procedure as a client does.
func (s *Session) rpc(t testing.TB, name string, value int64) *record {
	t.Helper()
	r := &record{}
	s.begin(name, "")
	defer s.end()
	b := newBatch(t.Context(), s, r)
	b.remote = true
	n := splitName(name)
	if err := tsql.Catch(func() { b.invoke(b.findUserProcedure(*n), []argument{{value: value}}) }); err != nil {
		t.Fatal(err)
	}
	return r
}

// snapshot is what a client reads to compute a rate: the guest's clock in seconds, executions, batch requests.
func snapshot(t testing.TB, s *Session) [3]float64 {
	t.Helper()
	row := must(t, s, `SELECT SYSUTCDATETIME(), (SELECT SUM(execution_count) FROM sys.dm_exec_procedure_stats
		WHERE database_id = DB_ID('v') AND object_id = OBJECT_ID('v.dbo.noop')), (SELECT cntr_value FROM sys.dm_os_performance_counters
		WHERE counter_name = 'Batch Requests/sec')`).rows[0]
	return [3]float64{float64(row[0].(time.Time).UnixMicro()) / 1e6, float64(row[1].(int64)), float64(row[2].(int64))}
}

// While callers are connected only the model advances the guest's clock, so the rate is the model's.
func TestCallsMoveTheGuestsClock(t *testing.T) {
	observer := open(t, func(c *Config) { c.Cost.BootSD, c.Cost.IterationSD = 0, 0 })
	must(t, observer, callProcedures)
	i := observer.inst
	var callers []*Session
	for n := range 4 {
		s, refused := i.Open(tds.Login{User: "sa", Password: "right", Database: "v", SPID: uint16(80 + n)})
		if refused != nil {
			t.Fatal(refused)
		}
		callers = append(callers, s.(*Session))
		callers[n].rpc(t, "dbo.noop", 7)
	}
	before := snapshot(t, observer)
	for range 500 {
		for _, s := range callers {
			if got := s.rpc(t, "dbo.noop", 7).text(); got != strconv.Itoa(s.id) {
				t.Fatalf("session %d got %s", s.id, got)
			}
		}
	}
	after := snapshot(t, observer)
	got := (after[1] - before[1]) / (after[0] - before[0])
	want := 1e6 / i.config.Cost.Call(cost.Load{Callers: 4, CPUs: 16, OtherNodes: 0.75}).Interval
	if after[1]-before[1] != 2000 || math.Abs(got/want-1) > 1e-3 {
		t.Errorf("%g executions at %.0f/s, want 2000 at %.0f/s", after[1]-before[1], got, want)
	}
	if requests := after[2] - before[2]; requests != 2001 { // and the snapshot itself
		t.Errorf("%g batch requests, want 2001", requests)
	}
	held := i.clock.now()
	if !i.clock.now().Equal(held) {
		t.Error("the clock goes on while callers are connected and idle")
	}
	for _, s := range callers {
		s.Close()
	}
	if i.clock.held {
		t.Error("the clock is held after the last caller has left")
	}
}

// A procedure that is run by EXEC, or that writes, does not affect the clock.
func TestOnlyShortRemoteCallsAreTimed(t *testing.T) {
	s := open(t, nil)
	must(t, s, callProcedures)
	must(t, s, "CREATE PROCEDURE dbo.write_one @n int AS INSERT INTO dbo.item VALUES (@n, 1)")
	must(t, s, "EXEC dbo.noop 1")
	s.rpc(t, "dbo.write_one", 9)
	if s.inst.clock.held {
		t.Error("the clock is held")
	}
	gives(t, s, "SELECT SUM(execution_count) FROM sys.dm_exec_procedure_stats", "2")
}

// One scheduler handles the network's interrupts; the others share the workers' time.
func TestOneSchedulerIsBusiest(t *testing.T) {
	s := open(t, nil)
	must(t, s, callProcedures)
	for range 2000 {
		s.rpc(t, "dbo.noop", 1)
	}
	got := must(t, s, "SELECT TOP (2) cpu_id, total_cpu_usage_ms FROM sys.dm_os_schedulers ORDER BY total_cpu_usage_ms DESC, cpu_id").text()
	if !strings.HasPrefix(got, "12,") || !strings.HasSuffix(got, "|0,0") {
		t.Errorf("the busiest are %s", got)
	}
}

// DBCC INPUTBUFFER distinguishes a remote procedure call from a batch.
func TestInputBuffer(t *testing.T) {
	s := open(t, nil)
	must(t, s, callProcedures)
	other := login(t, s.inst, "v")
	other.rpc(t, "dbo.noop", 1)
	ask := "DBCC INPUTBUFFER (" + strconv.Itoa(other.id) + ") WITH NO_INFOMSGS"
	gives(t, s, ask, "RPC Event,0,dbo.noop;1")
	must(t, other, "EXEC dbo.noop 1")
	gives(t, s, ask, "Language Event,0,EXEC dbo.noop 1")
	fails(t, s, "DBCC INPUTBUFFER (999)", "7955")
}

// RAND gives one number for a statement.
func TestRand(t *testing.T) {
	s := open(t, nil)
	gives(t, s, "SELECT CASE WHEN RAND() = RAND() THEN 1 ELSE 0 END, CASE WHEN RAND() >= 0 AND RAND() < 1 THEN 1 ELSE 0 END", "1,1")
}

// Many sessions connect, call and disconnect while another reads: every call is counted, and the clock never goes back.
func TestManyCallersAtOnce(t *testing.T) {
	observer := open(t, nil)
	must(t, observer, callProcedures)
	const callers, calls = 8, 50
	done := make(chan *record)
	for n := range callers {
		s, refused := observer.inst.Open(tds.Login{User: "sa", Password: "right", Database: "v", SPID: uint16(100 + n)})
		if refused != nil {
			t.Fatal(refused)
		}
		go func() {
			var last *record
			for range calls {
				last = s.(*Session).rpc(t, "dbo.noop", 3)
			}
			s.Close()
			done <- last
		}()
	}
	ended, before := 0, 0.0
	for ended < callers {
		select {
		case <-done:
			ended++
		default:
			text := must(t, observer, "SELECT ms_ticks, SUM(total_cpu_usage_ms) FROM sys.dm_os_sys_info CROSS JOIN sys.dm_os_schedulers GROUP BY ms_ticks").text()
			at, err := strconv.ParseFloat(strings.Split(text, ",")[0], 64)
			if err != nil || at < before {
				t.Fatalf("the clock shows %s after %g", text, before)
			}
			before = at
		}
	}
	gives(t, observer, "SELECT SUM(execution_count) FROM sys.dm_exec_procedure_stats", strconv.Itoa(callers*calls))
}
