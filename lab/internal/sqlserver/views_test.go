package sqlserver

import (
	"fmt"
	"strings"
	"testing"
)

// arms are the paper's topologies: sockets, cores per socket, and the vNUMA nodes that ESXi 6.0 gives them.
var arms = []struct{ sockets, cores, nodes, cpuNodes int }{
	{1, 16, 1, 2}, {2, 8, 2, 2}, {4, 4, 4, 4}, {8, 2, 8, 8}, {16, 1, 1, 2},
}

// The five arms show their sockets, nodes and soft-NUMA nodes; every CPU is in exactly one node.
func TestTopologyOfTheArms(t *testing.T) {
	i := newInstance(t, nil)
	for _, arm := range arms {
		i.Stop()
		if err := i.Start(boot(1, arm.sockets, arm.cores, arm.nodes)); err != nil {
			t.Fatal(err)
		}
		s := login(t, i, "")
		soft := "OFF"
		if arm.cpuNodes != arm.nodes {
			soft = "ON"
		}
		want := fmt.Sprintf("16,16,%d,%d,%d,%s", arm.sockets, arm.cores, arm.cpuNodes, soft) // numa_node_count includes soft nodes
		if r := must(t, s, `SELECT cpu_count, scheduler_count, socket_count, cores_per_socket, numa_node_count, softnuma_configuration_desc
			FROM sys.dm_os_sys_info`); r.text() != want {
			t.Errorf("%+v: dm_os_sys_info %s, want %s", arm, r.text(), want)
		}
		want = fmt.Sprintf("%d,%d,16", arm.cpuNodes, arm.nodes-1)
		if r := must(t, s, `SELECT COUNT(*), MAX(memory_node_id), SUM(online_scheduler_count) FROM sys.dm_os_nodes
			WHERE node_state_desc NOT LIKE '%DAC%'`); r.text() != want {
			t.Errorf("%+v: dm_os_nodes %s, want %s", arm, r.text(), want)
		}
		if r := must(t, s, "SELECT COUNT(*), MAX(cpu_id) FROM sys.dm_os_schedulers WHERE status = 'VISIBLE ONLINE'"); r.text() != "16,15" {
			t.Errorf("%+v: schedulers %s", arm, r.text())
		}
		log := must(t, s, "EXEC sys.sp_readerrorlog 0, 1, N'logical processors'").text()
		if !strings.Contains(log, fmt.Sprintf("detected %d sockets with %d cores per socket", arm.sockets, arm.cores)) {
			t.Errorf("%+v: error log %s", arm, log)
		}
	}
}

// Soft-NUMA can be switched off, effective from the next start.
func TestSoftNUMASwitch(t *testing.T) {
	s := open(t, nil)
	must(t, s, "ALTER SERVER CONFIGURATION SET SOFTNUMA OFF")
	restart(t, s.inst, func(*bootFaults) {})
	r := must(t, login(t, s.inst, ""), "SELECT softnuma_configuration_desc, (SELECT COUNT(*) FROM sys.dm_os_nodes) FROM sys.dm_os_sys_info")
	if r.text() != "OFF,2" { // one node and the DAC's
		t.Errorf("with soft-NUMA off: %s, want OFF,2", r.text())
	}
}

// Soft nodes have five to nine cores, as documented.
func TestSoftNodesHaveFiveToNineCores(t *testing.T) {
	i := newInstance(t, nil)
	for cores := 9; cores <= 64; cores++ {
		for _, node := range i.layout(boot(1, 1, cores, 1)).nodes {
			if n := len(node.cpus); n < 5 || n > 9 {
				t.Errorf("%d cores give a soft node of %d", cores, n)
			}
		}
	}
}

// An edition's limit leaves schedulers offline: sockets count, so cores per socket decides what runs.
func TestLicenceLimits(t *testing.T) {
	for _, c := range []struct {
		edition       string
		sockets, want int
	}{{"Developer", 16, 16}, {"Standard", 1, 16}, {"Standard", 4, 16}, {"Standard", 8, 8}, {"Standard", 16, 4}, {"Express", 1, 4},
		{"Express", 4, 4}, {"Express", 8, 2}, {"Express", 16, 1}} {
		i := newInstance(t, func(cfg *Config) { cfg.Edition = c.edition })
		if err := i.Start(boot(1, c.sockets, 16/c.sockets, 1)); err != nil {
			t.Fatal(err)
		}
		r := must(t, login(t, i, ""), "SELECT SUM(CASE status WHEN 'VISIBLE ONLINE' THEN 1 ELSE 0 END), SUM(CASE status WHEN 'VISIBLE OFFLINE' THEN 1 ELSE 0 END) FROM sys.dm_os_schedulers")
		if want := fmt.Sprintf("%d,%d", c.want, 16-c.want); r.text() != want {
			t.Errorf("%s, %d sockets: schedulers %s, want %s", c.edition, c.sockets, r.text(), want)
		}
	}
}

// Columns exist from their version on; before it they are unknown, also in the catalogue.
func TestColumnsByVersion(t *testing.T) {
	for version, want := range map[string]string{
		"12.0.6024.0": "no no no", "13.0.1601.5": "no yes no", "13.0.4001.0": "no yes yes", "13.0.5026.0": "yes yes yes", "16.0.4135.4": "yes yes yes",
	} {
		s := open(t, func(c *Config) { c.Version = version })
		var got []string
		for _, column := range []string{"socket_count", "softnuma_configuration", "sql_memory_model"} {
			r := s.ask("SELECT " + column + " FROM sys.dm_os_sys_info")
			listed := must(t, s, "SELECT COL_LENGTH('sys.dm_os_sys_info', '"+column+"')").text() != "NULL"
			switch {
			case len(r.errors) == 0 && listed:
				got = append(got, "yes")
			case len(r.errors) == 1 && r.errors[0].Number == 207 && !listed:
				got = append(got, "no")
			default:
				got = append(got, "inconsistent")
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", version, got, want)
		}
	}
}

// All memory-optimised pages are on the memory nodes, and where they are depends on the boot.
func TestPlacementOfMemoryOptimisedPages(t *testing.T) {
	i := newInstance(t, nil)
	homes := map[string]bool{}
	for number := 1; number <= 12; number++ {
		i.Stop()
		if err := i.Start(boot(number, 4, 4, 4)); err != nil {
			t.Fatal(err)
		}
		s := login(t, i, "")
		if number == 1 {
			must(t, s, dataset)
		}
		r := must(t, s, "SELECT TOP (1) memory_node_id FROM sys.dm_os_memory_clerks WHERE type = N'MEMORYCLERK_XTP' ORDER BY pages_kb DESC")
		homes[r.text()] = true
	}
	if len(homes) < 2 {
		t.Errorf("over twelve boots the pages were always on node %v", homes)
	}
}

// Every view can be read whole, in the oldest and the newest version.
func TestEveryViewCanBeRead(t *testing.T) {
	for _, version := range []string{"11.0.7507.2", "17.0.1000.7"} {
		s := open(t, func(c *Config) { c.Version, c.AdventureWorks = version, true })
		must(t, s, dataset)
		for name, v := range views {
			if r := s.ask("SELECT * FROM " + name); (len(r.errors) == 0) != s.inst.version.has(v.since) {
				t.Errorf("%s in %s: %+v", name, version, r.errors)
			}
		}
	}
}
