package sqlserver

import (
	"sort"
	"strconv"
	"strings"
)

func init() {
	addView("sys.dm_exec_sessions", "", `session_id smallint, login_time datetime, host_name nvarchar(128)?,
		program_name nvarchar(128)?, host_process_id int?, login_name nvarchar(128), original_login_name nvarchar(128),
		status nvarchar(30), cpu_time int, memory_usage int, total_elapsed_time int, last_request_start_time datetime,
		last_request_end_time datetime?, reads bigint, writes bigint, logical_reads bigint, is_user_process bit, row_count bigint,
		transaction_isolation_level smallint, lock_timeout int, prev_error int, language nvarchar(128)?, database_id smallint,
		open_transaction_count int`, execSessions)
	addView("sys.dm_exec_connections", "", `session_id int?, most_recent_session_id int?, connect_time datetime,
		net_transport nvarchar(40), protocol_type nvarchar(40)?, encrypt_option nvarchar(40), auth_scheme nvarchar(40),
		node_affinity smallint, num_reads int?, num_writes int?, net_packet_size int?, client_net_address nvarchar(48)?,
		client_tcp_port int?, local_net_address nvarchar(48)?, local_tcp_port int?`, execConnections)
	addView("sys.dm_exec_requests", "", `session_id smallint, request_id int, start_time datetime, status nvarchar(30),
		command nvarchar(32), database_id smallint, wait_type nvarchar(60)?, wait_time int, cpu_time int, total_elapsed_time int,
		scheduler_id int?, row_count bigint, open_transaction_count int, dop int@13.0.4001`, execRequests)
	addView("sys.dm_exec_session_wait_stats", "13.0.0", `session_id smallint, wait_type nvarchar(60), waiting_tasks_count bigint,
		wait_time_ms bigint, max_wait_time_ms bigint, signal_wait_time_ms bigint`, sessionWaits)
	addView("sys.dm_hadr_database_replica_states", "11.0.0", `database_id int, group_id uniqueidentifier, is_local bit?`, replicaStates)
	addView("sys.dm_hadr_availability_replica_states", "", `replica_id uniqueidentifier, role_desc nvarchar(60)?`, none)
	addView("sys.availability_groups", "", `group_id uniqueidentifier, name sysname?`, none)
	addView("sys.dm_tran_active_transactions", "", `transaction_id bigint, name nvarchar(32)`, none)
}

// each session in the order of its id. The caller holds Instance.mu.
func (i *Instance) sortedSessions() []*Session {
	out := make([]*Session, 0, len(i.sessions))
	for _, s := range i.sessions {
		out = append(out, s)
	}
	sort.Slice(out, func(a, b int) bool { return out[a].id < out[b].id })
	return out
}

// isolationLevels are the numbers of dm_exec_sessions.
var isolationLevels = map[string]int{"READ UNCOMMITTED": 1, "READ COMMITTED": 2, "REPEATABLE READ": 3, "SERIALIZABLE": 4, "SNAPSHOT": 5}

func status(s *Session) string {
	if s.running {
		return "running"
	}
	return "sleeping"
}

// systemSessions are the background sessions of a small server.
const systemSessions = 20

func execSessions(v *viewContext) []viewRow {
	i := v.inst()
	var out []viewRow
	base := func(id int) viewRow {
		return viewRow{"session_id": id, "login_time": i.started, "login_name": "sa", "original_login_name": "sa", "status": "sleeping",
			"cpu_time": 0, "memory_usage": 2, "total_elapsed_time": 0, "last_request_start_time": i.started, "reads": 0, "writes": 0,
			"logical_reads": 0, "is_user_process": false, "row_count": 0, "transaction_isolation_level": 2, "lock_timeout": -1,
			"prev_error": 0, "language": "us_english", "database_id": 1, "open_transaction_count": 0}
	}
	for id := 1; id <= systemSessions; id++ {
		out = append(out, base(id))
	}
	for _, s := range i.sortedSessions() {
		row := base(s.id)
		row["login_time"], row["host_name"], row["program_name"], row["host_process_id"] = s.opened, s.login.Host, s.login.App, 1000+s.id
		row["login_name"], row["original_login_name"], row["status"] = s.login.User, s.login.User, status(s)
		row["last_request_start_time"], row["is_user_process"], row["database_id"] = s.lastRequest, true, s.db.id
		if s.lastRequest.IsZero() {
			row["last_request_start_time"] = s.opened
		}
		if s == v.run.s { // only a session itself may read what it changes without the lock
			row["transaction_isolation_level"], row["row_count"] = isolationLevels[s.options.isolation], s.rowCount
			row["prev_error"], row["lock_timeout"], row["open_transaction_count"] = int64(s.lastError), s.options.lockTimeout, s.tx.depth
		}
		out = append(out, row)
	}
	for n, program := range i.config.Use.Sessions {
		row := base(otherSession(n))
		row["is_user_process"], row["program_name"], row["login_name"] = true, program, "somebody"
		out = append(out, row)
	}
	return out
}

func execConnections(v *viewContext) []viewRow {
	i := v.inst()
	var out []viewRow
	for _, s := range i.sortedSessions() {
		out = append(out, viewRow{"session_id": s.id, "most_recent_session_id": s.id, "connect_time": s.opened, "net_transport": "TCP",
			"protocol_type": "TSQL", "encrypt_option": strings.ToUpper(strconv.FormatBool(s.login.Encrypted)), "auth_scheme": "SQL", "node_affinity": i.topology.nodes[s.node].memoryNode,
			"num_reads": int64(s.requests), "num_writes": int64(s.requests), "net_packet_size": 4096, "client_net_address": "127.0.0.1",
			"local_net_address": s.login.LocalAddress, "local_tcp_port": s.port})
	}
	return out
}

func execRequests(v *viewContext) []viewRow {
	i := v.inst()
	row := func(id int, command, state string, scheduler int) viewRow {
		return viewRow{"session_id": id, "request_id": 0, "start_time": i.started, "status": state, "command": command, "database_id": 1,
			"wait_time": 0, "cpu_time": 0, "total_elapsed_time": 0, "scheduler_id": scheduler, "row_count": 0, "open_transaction_count": 0,
			"dop": 1}
	}
	var out []viewRow
	for n, w := range i.logWriters() {
		out = append(out, row(3+n, "LOG WRITER", "background", w.scheduler))
	}
	usable := i.usableSchedulers()
	for _, s := range i.sortedSessions() {
		if s.running {
			r := row(s.id, "SELECT", "running", usable[s.id%len(usable)])
			r["start_time"], r["database_id"] = s.lastRequest, s.db.id
			if s.waitType != "" {
				r["status"], r["wait_type"] = "suspended", s.waitType
			}
			out = append(out, r)
		}
	}
	for n, name := range i.config.Use.Backups {
		r := row(otherSession(len(i.config.Use.Sessions)+n), "BACKUP DATABASE", "suspended", 0)
		r["database_id"] = i.lookup(name).id
		out = append(out, r)
	}
	return out
}

func sessionWaits(v *viewContext) []viewRow {
	var out []viewRow
	for _, s := range v.inst().sortedSessions() {
		if s.networkWaits > 0 {
			row := waitRow("ASYNC_NETWORK_IO", s.networkWaits, s.networkWaitMS)
			row["session_id"] = s.id
			out = append(out, row)
		}
	}
	return out
}
