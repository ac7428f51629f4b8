package sqlserver

import (
	"testing"

	"vnuma.dev/lab/internal/cost"
)

// Process affinity takes the other schedulers offline at once, places new memory-optimised rows on its node,
// restricts work to it, is kept over restarts, and is removed by CPU = AUTO.
func TestProcessAffinityHoldsWorkAndPagesInPlace(t *testing.T) {
	i := newInstance(t, nil)
	if err := i.Start(boot(1, 2, 8, 2)); err != nil {
		t.Fatal(err)
	}
	s := login(t, i, "")
	online := "SELECT COUNT(*) FROM sys.dm_os_schedulers WHERE status = N'VISIBLE ONLINE'"
	mine := "SELECT s.parent_node_id FROM sys.dm_exec_requests AS r JOIN sys.dm_os_schedulers AS s ON s.scheduler_id = r.scheduler_id " +
		"WHERE r.session_id = @@SPID"
	pages := "SELECT TOP (1) memory_node_id FROM sys.dm_os_memory_clerks WHERE type = N'MEMORYCLERK_XTP' ORDER BY pages_kb DESC"
	expect := func(query, want string) {
		t.Helper()
		gives(t, s, query, want)
	}
	must(t, s, "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY NUMANODE = 1")
	must(t, s, dataset)
	expect(online, "8")
	expect(mine, "1")
	expect(pages, "1")
	must(t, s, "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = 0 TO 3, 5")
	expect(online, "5")
	expect(mine, "0")
	expect(pages, "1")
	expect("SELECT affinity_type_desc FROM sys.dm_os_sys_info", "MANUAL")
	if share, ok := i.remoteShare(); !ok || share != 1 {
		t.Errorf("remote share %g, %v", share, ok)
	}
	i.Stop()
	if err := i.Start(boot(2, 2, 8, 2)); err != nil {
		t.Fatal(err)
	}
	s = login(t, i, "")
	expect(online, "5")
	must(t, s, "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = AUTO")
	expect(online, "16")
	expect("SELECT affinity_type_desc FROM sys.dm_os_sys_info", "AUTO")
	if r := s.ask("ALTER SERVER CONFIGURATION SET PROCESS AFFINITY NUMANODE = 2"); len(r.errors) != 1 || r.errors[0].Number != 5832 {
		t.Errorf("a node that is not there: %+v", r.errors)
	}
}

// vNUMA nodes on the same physical node are never remote to one another.
func TestNodesOnOneHostNodeAreLocal(t *testing.T) {
	i := newInstance(t, nil)
	b := boot(1, 2, 8, 2)
	b.HostNodes = []int{0, 0}
	if err := i.Start(b); err != nil {
		t.Fatal(err)
	}
	s := login(t, i, "")
	must(t, s, "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY NUMANODE = 1")
	must(t, s, dataset)
	must(t, s, "ALTER SERVER CONFIGURATION SET PROCESS AFFINITY NUMANODE = 0")
	if share, ok := i.remoteShare(); !ok || share != 0 {
		t.Errorf("remote share %g, %v", share, ok)
	}
}

// The cost of a remote placement by effect: the full penalty, on top of the topology's own, or nothing.
func TestRemotePlacementCosts(t *testing.T) {
	for effect, want := range map[cost.Effect]float64{cost.Remote: 1.4, cost.None: 1, cost.Nodes: 1.4} {
		m := cost.Default()
		m.Effect = effect
		run := cost.Run{Outer: 1000, Inner: 1000, Form: cost.Client, Guest: cost.Guest{Nodes: 1, Sockets: 1, CoresPerSocket: 16}, Placed: true}
		local := m.Expected(run)
		run.RemoteShare = 1
		if got := m.Expected(run) / local; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: %g, want %g", effect, got, want)
		}
	}
}
