package sqlserver

import (
	"fmt"
	"math"
	"time"
)

func init() {
	addView("sys.dm_os_sys_info", "", `cpu_ticks bigint, ms_ticks bigint, cpu_count int, hyperthread_ratio int,
		physical_memory_kb bigint, committed_kb bigint, committed_target_kb bigint, max_workers_count int, scheduler_count int,
		sqlserver_start_time_ms_ticks bigint, sqlserver_start_time datetime, affinity_type int, affinity_type_desc nvarchar(60),
		process_kernel_time_ms bigint, process_user_time_ms bigint, virtual_machine_type_desc nvarchar(60),
		softnuma_configuration int@13.0.0, softnuma_configuration_desc nvarchar(60)@13.0.0, sql_memory_model int@13.0.4001,
		sql_memory_model_desc nvarchar(60)@13.0.4001, socket_count int@13.0.5026, cores_per_socket int@13.0.5026,
		numa_node_count int@13.0.5026`, sysInfo)
	addView("sys.dm_os_nodes", "", `node_id smallint, node_state_desc nvarchar(256), memory_node_id smallint, cpu_affinity_mask bigint,
		online_scheduler_count smallint, processor_group smallint, cpu_count int@13.0.5026`, osNodes)
	addView("sys.dm_os_memory_nodes", "", `memory_node_id smallint, pages_kb bigint, cpu_affinity_mask bigint, processor_group smallint,
		foreign_committed_kb bigint, target_kb bigint@13.0.0`, memoryNodes)
	addView("sys.dm_os_schedulers", "", `parent_node_id int, scheduler_id int, cpu_id int, status nvarchar(60), is_online bit,
		total_cpu_usage_ms bigint@13.0.5026`, schedulers)
	addView("sys.dm_os_memory_clerks", "", "type nvarchar(60), name nvarchar(256), memory_node_id smallint, pages_kb bigint", memoryClerks)
	addView("sys.dm_os_ring_buffers", "", "ring_buffer_type nvarchar(60), timestamp bigint, record nvarchar(max)?", ringBuffers)
	addView("sys.dm_os_performance_counters", "", `object_name nchar(128), counter_name nchar(128), instance_name nchar(128)?,
		cntr_value bigint`, performanceCounters)
	addView("sys.dm_os_wait_stats", "", waits, waitStats)
	addView("sys.dm_os_host_info", "14.0.0", "host_platform nvarchar(256)",
		func(v *viewContext) {
			v.add(viewRow{"host_platform": map[bool]string{true: "Linux", false: "Windows"}[v.inst().config.onLinux()]})
		})
}

// guestUpMS is how long the guest was up before SQL Server started.
const guestUpMS = 20_000

// up is how long SQL Server has been running, by the guest's clock.
func (i *Instance) up() time.Duration { return i.clock.now().Sub(i.started) }

func (i *Instance) msTicks() int64 { return i.up().Milliseconds() + guestUpMS }

// targetKB is the memory that SQL Server may use: most of the guest's.
func (i *Instance) targetKB() int64 { return i.boot.MemoryMB * 1024 * 9 / 10 }

func sysInfo(v *viewContext) {
	i := v.inst()
	b := i.boot
	softNUMA, softNUMADesc := 0, "OFF"
	if i.topology.soft {
		softNUMA, softNUMADesc = 1, "ON"
	}
	affinity, affinityDesc := 2, "AUTO"
	if i.affinity != "" && i.affinity != "CPU=AUTO" {
		affinity, affinityDesc = 1, "MANUAL"
	}
	up, calls := i.up().Milliseconds(), i.load
	v.add(viewRow{
		"cpu_ticks": i.msTicks() * 2_300_000, "ms_ticks": i.msTicks(), "cpu_count": b.VCPUs, "hyperthread_ratio": b.CoresPerSocket,
		"physical_memory_kb": b.MemoryMB * 1024, "committed_kb": i.targetKB() / 20, "committed_target_kb": i.targetKB(),
		"max_workers_count": 512 + max(b.VCPUs-4, 0)*16, "scheduler_count": len(i.usableSchedulers()),
		"sqlserver_start_time_ms_ticks": guestUpMS, "sqlserver_start_time": i.started, "affinity_type": affinity,
		"affinity_type_desc": affinityDesc, "process_kernel_time_ms": 200 + up/500 + int64(calls.interrupt/1000),
		"process_user_time_ms": 900 + up/200 + int64(calls.worker/1000), "virtual_machine_type_desc": "HYPERVISOR",
		"softnuma_configuration": softNUMA, "softnuma_configuration_desc": softNUMADesc, "sql_memory_model": 1,
		"sql_memory_model_desc": "CONVENTIONAL", "socket_count": b.Sockets, "cores_per_socket": b.CoresPerSocket,
		"numa_node_count": len(i.topology.nodes),
	})
}

// dacNode is the node of the dedicated administrator connection.
const dacNode = 64

func (i *Instance) onlineCPUs(n cpuNode) int {
	count := 0
	for _, cpu := range n.cpus {
		count += int(boolInt(i.usable(cpu)))
	}
	return count
}

func osNodes(v *viewContext) {
	i := v.inst()
	row := func(id, memoryNode, online, cpus int, mask int64, state string) viewRow {
		return viewRow{"node_id": id, "node_state_desc": state, "memory_node_id": memoryNode, "cpu_affinity_mask": mask,
			"online_scheduler_count": online, "processor_group": 0, "cpu_count": cpus}
	}
	for n, node := range i.topology.nodes {
		v.add(row(n, node.memoryNode, i.onlineCPUs(node), len(node.cpus), node.mask(), "ONLINE"))
	}
	v.add(row(dacNode, dacNode, 1, 1, 0, "ONLINE DAC"))
}

func memoryNodes(v *viewContext) {
	i := v.inst()
	row := func(id int, pages, target int64) {
		v.add(viewRow{"memory_node_id": id, "pages_kb": pages, "cpu_affinity_mask": 0, "processor_group": 0,
			"foreign_committed_kb": 0, "target_kb": target})
	}
	count := int64(max(i.topology.memoryNodes, 1))
	for n := range i.topology.memoryNodes {
		xtp := int64(math.Round(float64(i.xtpKB()) * i.topology.xtpShare[n]))
		row(n, i.targetKB()/20/count+xtp+i.pool.on(n)*pageKB, i.targetKB()/count)
	}
	row(dacNode, 20, 0)
}

// hiddenScheduler is the id of the first scheduler that runs no user's work.
const hiddenScheduler = 1048576

func schedulers(v *viewContext) {
	i := v.inst()
	row := func(node, id, cpu int, status string, online bool) viewRow {
		return viewRow{"parent_node_id": node, "scheduler_id": id, "cpu_id": cpu, "status": status, "is_online": online, "total_cpu_usage_ms": 0}
	}
	id := 0
	for n, node := range i.topology.nodes {
		for _, cpu := range node.cpus {
			status := "VISIBLE ONLINE"
			if !i.usable(cpu) {
				status = "VISIBLE OFFLINE"
			}
			known := row(n, id, cpu, status, i.usable(cpu))
			known["total_cpu_usage_ms"] = i.schedulerCPU(cpu)
			v.add(known)
			id++
		}
	}
	v.add(row(dacNode, hiddenScheduler, 0, "VISIBLE ONLINE (DAC)", true))
	writers := i.logWriters()
	for h := range 11 {
		cpu := h % max(i.boot.VCPUs, 1)
		if h < len(writers) {
			cpu = writers[h].cpu
		}
		v.add(row(i.nodeOf(cpu), hiddenScheduler+1+h, cpu, "HIDDEN ONLINE", true))
	}
}

// xtpKB is the size of all memory-optimised tables.
func (i *Instance) xtpKB() int64 {
	var kb int64
	for _, db := range i.databases {
		kb += db.xtpKB()
	}
	return kb
}

// xtpKB is the size of a database's memory-optimised tables.
func (db *database) xtpKB() int64 {
	var bytes int64
	for _, t := range db.tables {
		if !t.memoryOptimized {
			continue
		}
		row := int64(32)
		for _, c := range t.columns {
			row += int64(max(storageBytes(c.typ), 16))
		}
		bytes += row * t.count()
	}
	if bytes == 0 {
		return 0
	}
	return bytes/1024 + 2048
}

func memoryClerks(v *viewContext) {
	i := v.inst()
	add := func(kind, name string, node int, kb int64) {
		v.add(viewRow{"type": kind, "name": name, "memory_node_id": node, "pages_kb": kb})
	}
	for n := range i.topology.memoryNodes {
		add("MEMORYCLERK_SQLBUFFERPOOL", "Default", n, 20480)
		add("MEMORYCLERK_SOSNODE", fmt.Sprintf("SOS_Node %d", n), n, 9216)
		if share := i.topology.xtpShare[n]; share > 0 {
			add("MEMORYCLERK_XTP", "Default", n, 1024)
			for _, db := range i.databases {
				if kb := db.xtpKB(); kb > 0 {
					add("MEMORYCLERK_XTP", fmt.Sprintf("DB_ID_%d", db.id), n, int64(math.Round(float64(kb)*share)))
				}
			}
		}
	}
}

// idle is the share of the guest's CPU that is idle in every record.
const idle = 98

func ringBuffers(v *viewContext) {
	i := v.inst()
	minutes := int64(i.up() / time.Minute)
	for n := max(minutes-255, 0); n <= minutes; n++ {
		at := guestUpMS + n*60_000
		v.add(viewRow{"ring_buffer_type": "RING_BUFFER_SCHEDULER_MONITOR",
			"timestamp": at, "record": fmt.Sprintf(`<Record id="%d" type ="RING_BUFFER_SCHEDULER_MONITOR" time ="%d"><SchedulerMonitorEvent>`+
				`<SystemHealth><ProcessUtilization>0</ProcessUtilization><SystemIdle>%d</SystemIdle><UserModeTime>312500</UserModeTime>`+
				`<KernelModeTime>156250</KernelModeTime><PageFaults>120</PageFaults><WorkingSetDelta>0</WorkingSetDelta>`+
				`<MemoryUtilization>100</MemoryUtilization></SystemHealth></SchedulerMonitorEvent></Record>`, n, at, idle)})
	}
}

func performanceCounters(v *viewContext) {
	i := v.inst()
	add := func(object, counter, instance string, value int64) {
		v.add(viewRow{"object_name": "SQLServer:" + object, "counter_name": counter, "instance_name": instance, "cntr_value": value})
	}
	for n := range i.topology.memoryNodes {
		node := fmt.Sprintf("%03d", n)
		add("Buffer Node", "Database pages", node, 2560+i.pool.on(n))
		add("Buffer Node", "Page life expectancy", node, i.up().Milliseconds()/1000)
		add("Buffer Node", "Local node page lookups/sec", node, i.pool.lookups[n].local)
		add("Buffer Node", "Remote node page lookups/sec", node, i.pool.lookups[n].remote)
	}
	add("SQL Statistics", "Batch Requests/sec", "", i.load.requests+i.otherRequests())
	add("General Statistics", "User Connections", "", int64(len(i.sessions)))
	add("Memory Manager", "Target Server Memory (KB)", "", i.targetKB())
	add("Memory Manager", "Total Server Memory (KB)", "", i.targetKB()/20)
}

// waits are the columns on waits.
const waits = "wait_type nvarchar(60), waiting_tasks_count bigint, wait_time_ms bigint, signal_wait_time_ms bigint"

func waitRow(kind string, tasks, ms int64) viewRow {
	return viewRow{"wait_type": kind, "waiting_tasks_count": tasks, "wait_time_ms": ms, "signal_wait_time_ms": ms / 100}
}

func waitStats(v *viewContext) {
	var tasks, ms int64
	log := v.inst().logCache
	for _, s := range v.inst().sessions {
		tasks, ms = tasks+s.networkWaits, ms+s.networkWaitMS
	}
	v.add(waitRow("ASYNC_NETWORK_IO", tasks, ms))
	v.add(waitRow("WRITELOG", 10+log.commits, 4+int64(log.flushMS)))
	v.add(waitRow("SOS_SCHEDULER_YIELD", 100, 0))
}

func init() {
	addView("sys.dm_os_buffer_descriptors", "", "database_id int?, file_id int?, allocation_unit_id bigint?, numa_node int?", bufferDescriptors)
	addView("sys.allocation_units", "", "allocation_unit_id bigint, type tinyint, type_desc nvarchar(60)?, container_id bigint", allocationUnits)
	addView("sys.dm_tcp_listener_states", "11.0.0", `ip_address nvarchar(48), port int, type tinyint, type_desc nvarchar(20), state tinyint,
		state_desc nvarchar(16), start_time datetime`, listenerStates)
}

// allocationUnit is the number of a table's rows in the database's allocation units.
func allocationUnit(t *table) int64 { return int64(t.id)<<20 | 7<<40 }

// container is the hobt_id and partition_id of a table's rows.
func container(t *table) int64 {
	id := int64(0)
	for n := range t.indexes {
		if t.indexes[n].Clustered {
			id = 1
		}
	}
	return int64(t.id)<<20 | id
}

// bufferDescriptors has one row for each table and node, with the number of its occurrences: its pages are alike
// in everything that the lab simulates.
func bufferDescriptors(v *viewContext) {
	for _, db := range v.inst().databases {
		if db.populate != nil {
			continue
		}
		for _, t := range db.sortedTables() {
			for node, pages := range v.inst().pool.pages[t] {
				if pages > 0 {
					v.add(viewRow{"database_id": db.id, "file_id": 1, "allocation_unit_id": allocationUnit(t), "numa_node": node, timesKey: pages})
				}
			}
		}
	}
}

func allocationUnits(v *viewContext) {
	for _, t := range v.db.sortedTables() {
		v.add(viewRow{"allocation_unit_id": allocationUnit(t), "type": 1, "type_desc": "IN_ROW_DATA", "container_id": container(t)})
	}
}

func listenerStates(v *viewContext) {
	i := v.inst()
	for _, port := range i.ports {
		v.add(viewRow{"ip_address": "0.0.0.0", "port": port.number, "type": 0,
			"type_desc": "TSQL", "state": 0, "state_desc": "ONLINE", "start_time": i.started})
	}
}
