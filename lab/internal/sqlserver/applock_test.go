package sqlserver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"vnuma.dev/lab/internal/guest"
)

const shared = "DECLARE @r int, @a datetime2; EXEC @r = sys.sp_getapplock @Resource = N'go', @LockMode = N'Shared', @LockOwner = N'Session', " +
	"@LockTimeout = 20000; SET @a = SYSUTCDATETIME(); "

// waitFor repeats a query until the answer is the wanted one.
func waitFor(t *testing.T, s *Session, question, want string) {
	t.Helper()
	for start := time.Now(); must(t, s, question).text() != want; {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("%s never gave %s", question, want)
		}
	}
}

// Sessions that wait for a lock are shown as waiting, and continue together, at the same virtual time.
func TestABarrierOfAnApplicationLock(t *testing.T) {
	i := newInstance(t, func(c *Config) { c.Version = "12.0.6024.0"; c.Cost.BootSD, c.Cost.IterationSD = 0, 0 })
	if err := i.Start(boot(1, 2, 8, 2)); err != nil {
		t.Fatal(err)
	}
	control := login(t, i, "")
	must(t, control, loopSetup)
	must(t, control, "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = 9 TO 15")
	if got := must(t, control, "DECLARE @r int; EXEC @r = sp_getapplock @Resource = 'go', @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 0; SELECT @r").text(); got != "0" {
		t.Fatalf("taking a free lock returns %s", got)
	}
	results := make([]string, 10)
	var running sync.WaitGroup
	for n := range results {
		s := login(t, i, "d")
		must(t, s, "USE d")
		running.Add(1)
		go func() {
			defer running.Done()
			r := &record{}
			s.run(context.Background(), shared+"EXEC dbo.fill @@SPID, 500000; SELECT @r, @a, SYSUTCDATETIME()", nil, r)
			began, ended := r.rows[0][1].(time.Time), r.rows[0][2].(time.Time)
			results[n] = fmt.Sprintf("%d,%d", r.rows[0][0], ended.Sub(began).Milliseconds())
		}()
	}
	waitFor(t, control, "SELECT COUNT(*) FROM sys.dm_exec_requests WHERE wait_type = 'LCK_M_S' AND status = 'suspended'", "10")
	ticks := "SELECT ms_ticks FROM sys.dm_os_sys_info"
	before := must(t, control, ticks).rows[0][0].(int64)
	must(t, control, "EXEC sp_releaseapplock @Resource = 'go', @LockOwner = 'Session'")
	running.Wait()
	for n, got := range results {
		if got != "1,8500" { // 17 us each: the published 85 s of ten times as many
			t.Errorf("session %d: %s, want 1,8500", n, got)
		}
	}
	if passed := must(t, control, ticks).rows[0][0].(int64) - before; passed < 8500 || passed > 8500+60_000 {
		t.Errorf("the server's ticks went on by %d ms", passed)
	}
	gives(t, control, "SELECT COUNT_BIG(*) FROM dbo.big", "10000000")
}

// A lock that is not granted in time returns -1, one whose owner has ended is free, and an unknown one cannot be released.
func TestApplicationLocksThatAreNotGranted(t *testing.T) {
	i := newInstance(t, nil)
	if err := i.Start(guest.Boot(boot(1, 2, 8, 2))); err != nil {
		t.Fatal(err)
	}
	holder, other := login(t, i, ""), login(t, i, "")
	take := func(s *Session) string {
		return must(t, s, "DECLARE @r int; EXEC @r = sp_getapplock @Resource = 'x', @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 10; SELECT @r").text()
	}
	if first, second := take(holder), take(other); first != "0" || second != "-1" {
		t.Errorf("the holder gets %s, the other %s", first, second)
	}
	holder.Close()
	if got := take(other); got != "0" {
		t.Errorf("after the holder left it returns %s", got)
	}
	if r := other.ask("EXEC sp_releaseapplock @Resource = 'y', @LockOwner = 'Session'"); r.number() != "1223" {
		t.Errorf("releasing what is not held: %s", strings.Join(r.lines, ", "))
	}
	gives(t, other, "DECLARE @r int; EXEC @r = sp_getapplock @Resource = 'x', @LockMode = 'Sharde', @LockOwner = 'Session'; SELECT @r", "-999")
}
