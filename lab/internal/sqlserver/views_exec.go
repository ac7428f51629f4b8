package sqlserver

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tsql"
)

func init() {
	addView("sys.dm_exec_sessions", "", `session_id smallint, login_time datetime, host_name nvarchar(128)?,
		program_name nvarchar(128)?, login_name nvarchar(128), status nvarchar(30), cpu_time int, total_elapsed_time int,
		last_request_start_time datetime, reads bigint, writes bigint, is_user_process bit, row_count bigint,
		language nvarchar(128)?, database_id smallint`, execSessions)
	addView("sys.dm_exec_connections", "", `session_id int?, net_transport nvarchar(40), encrypt_option nvarchar(40),
		auth_scheme nvarchar(40), node_affinity smallint, client_net_address nvarchar(48)?, local_net_address nvarchar(48)?,
		local_tcp_port int?`, execConnections)
	addView("sys.dm_exec_requests", "", `session_id smallint, start_time datetime, status nvarchar(30), command nvarchar(32),
		database_id smallint, wait_type nvarchar(60)?, cpu_time int, total_elapsed_time int, scheduler_id int?, row_count bigint,
		dop int@13.0.4001`, execRequests)
	addView("sys.dm_exec_session_wait_stats", "13.0.0", "session_id smallint, "+waits, sessionWaits)
	addView("sys.dm_hadr_database_replica_states", "11.0.0", `database_id int, group_id uniqueidentifier, is_local bit?`, replicaStates)
}

// each session in the order of its id. The caller holds Instance.mu.
func (i *Instance) sortedSessions() []*Session {
	return slices.SortedFunc(maps.Values(i.sessions), func(a, b *Session) int { return a.id - b.id })
}

func status(s *Session) string {
	if s.running {
		return "running"
	}
	return "sleeping"
}

// systemSessions are the background sessions of a small server.
const systemSessions = 20

func execSessions(v *viewContext) {
	i := v.inst()
	base := func(id int) viewRow {
		return viewRow{"session_id": id, "login_time": i.started, "login_name": "sa", "status": "sleeping", "cpu_time": 0,
			"total_elapsed_time": 0, "last_request_start_time": i.started, "reads": 0, "writes": 0, "is_user_process": false, "row_count": 0,
			"language": "us_english", "database_id": 1}
	}
	for id := 1; id <= systemSessions; id++ {
		v.add(base(id))
	}
	for _, s := range i.sortedSessions() {
		row := base(s.id)
		row["login_time"], row["host_name"], row["program_name"] = s.opened, s.login.Host, s.login.App
		row["login_name"], row["status"] = s.login.User, status(s)
		row["last_request_start_time"], row["is_user_process"], row["database_id"] = s.lastRequest, true, s.db.id
		if s.lastRequest.IsZero() {
			row["last_request_start_time"] = s.opened
		}
		if s == v.run.s { // what it changes without the lock, only the session itself may read
			row["row_count"] = s.rowCount
		}
		v.add(row)
	}
	for n, program := range i.config.Use.Sessions {
		row := base(otherSession(n))
		row["is_user_process"], row["program_name"], row["login_name"] = true, program, "somebody"
		v.add(row)
	}
}

func execConnections(v *viewContext) {
	i := v.inst()
	for _, s := range i.sortedSessions() {
		v.add(viewRow{"session_id": s.id, "net_transport": "TCP", "auth_scheme": s.authScheme(),
			"encrypt_option": strings.ToUpper(strconv.FormatBool(s.login.Encrypted)), "node_affinity": i.topology.nodes[s.node].memoryNode,
			"client_net_address": "127.0.0.1", "local_net_address": s.login.LocalAddress, "local_tcp_port": s.port})
	}
}

func execRequests(v *viewContext) {
	i := v.inst()
	row := func(id int, command, state string, scheduler int) viewRow {
		return viewRow{"session_id": id, "start_time": i.started, "status": state, "command": command, "database_id": 1, "cpu_time": 0,
			"total_elapsed_time": 0, "scheduler_id": scheduler, "row_count": 0, "dop": 1}
	}
	for n, w := range i.logWriters() {
		v.add(row(3+n, "LOG WRITER", "background", w.scheduler))
	}
	usable := i.usableSchedulers()
	for _, s := range i.sortedSessions() {
		if s.running {
			r := row(s.id, "SELECT", "running", usable[s.id%len(usable)])
			r["start_time"], r["database_id"] = s.lastRequest, s.db.id
			if s.waitType != "" {
				r["status"], r["wait_type"] = "suspended", s.waitType
			}
			v.add(r)
		}
	}
	for n, name := range i.config.Use.Backups {
		r := row(otherSession(len(i.config.Use.Sessions)+n), "BACKUP DATABASE", "suspended", 0)
		r["database_id"] = i.lookup(name).id
		v.add(r)
	}
}

func sessionWaits(v *viewContext) {
	for _, s := range v.inst().sortedSessions() {
		if s.networkWaits > 0 {
			row := waitRow("ASYNC_NETWORK_IO", s.networkWaits, s.networkWaitMS)
			row["session_id"] = s.id
			v.add(row)
		}
	}
}

func init() {
	addView("sys.dm_exec_query_stats", "", `last_execution_time datetime?, execution_count bigint, total_worker_time bigint,
		last_worker_time bigint, total_elapsed_time bigint, last_elapsed_time bigint, query_hash binary(8)?, query_plan_hash binary(8)?,
		last_rows bigint?, last_dop bigint@13.0.0, last_grant_kb bigint@13.0.0`, execQueryStats)
}

// queryStat is one statement's entry in the plan cache. The lab keeps them for what its cost model times: cross
// joins of stored tables, and large scans. Statements are distinguished by their plan and the rows that they read.
type queryStat struct {
	query, plan  string // hashes in hex
	outer, inner int64
	degree       int
	last         time.Time
	count, rows  int64
	lastTiming   cost.Timing
	totalTiming  cost.Timing
}

func queryStatOf(st *tsql.SelectStatement, p plan, r *run, t cost.Timing) queryStat {
	q := queryStat{last: r.now, count: 1, lastTiming: t, totalTiming: t}
	q.query, q.plan = hashesOf(rootOf(st, p, r))
	q.degree = degreeOf(st, p, r)
	cross, aggregated := storedProduct(p)
	if cross != nil {
		q.outer, q.inner = cross.outerRows, cross.innerRows
	} else {
		scan, _ := largeScanOf(p)
		q.outer, q.inner, aggregated = int64(scan.rows.rows), 1, true
	}
	if q.rows = 1; !aggregated {
		q.rows = q.outer * q.inner
	}
	return q
}

// remember adds one execution.
func (i *Instance) remember(q queryStat) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, old := range i.stats {
		if old.plan == q.plan && old.outer == q.outer && old.inner == q.inner {
			q.count = old.count + 1
			q.totalTiming.CPUMicros += old.totalTiming.CPUMicros
			q.totalTiming.ElapsedMicros += old.totalTiming.ElapsedMicros
			i.stats = slices.Delete(i.stats, n, n+1)
			break
		}
	}
	i.stats = append(i.stats, q)
}

func execQueryStats(v *viewContext) {
	for _, q := range v.inst().stats {
		v.add(viewRow{"last_execution_time": q.last, "execution_count": q.count,
			"total_worker_time": q.totalTiming.CPUMicros, "last_worker_time": q.lastTiming.CPUMicros,
			"total_elapsed_time": q.totalTiming.ElapsedMicros, "last_elapsed_time": q.lastTiming.ElapsedMicros,
			"query_hash": fromHex(q.query), "query_plan_hash": fromHex(q.plan), "last_rows": q.rows, "last_dop": q.degree, "last_grant_kb": 0})
	}
}

func fromHex(text string) []byte {
	out, err := hex.DecodeString(text)
	if err != nil { // hash64 writes nothing else
		panic(err)
	}
	return out
}

func init() {
	addView("sys.dm_exec_procedure_stats", "", `database_id int, object_id int, type char(2)?, type_desc nvarchar(60)?,
		last_execution_time datetime?, execution_count bigint, total_worker_time bigint, last_worker_time bigint,
		total_elapsed_time bigint, last_elapsed_time bigint`, procedureStats)
}

// procedureStats has a row for each procedure that ran since the boot while its plan is cached.
func procedureStats(v *viewContext) {
	for _, db := range v.inst().databases {
		for _, p := range db.sortedProcedures() {
			if p.ran.count == 0 {
				continue
			}
			v.add(viewRow{"database_id": db.id, "object_id": p.id, "type": "P ", "type_desc": "SQL_STORED_PROCEDURE",
				"last_execution_time": p.ran.last, "execution_count": p.ran.count,
				"total_worker_time": int64(p.ran.worker), "last_worker_time": int64(p.ran.lastWorker),
				"total_elapsed_time": int64(p.ran.elapsed), "last_elapsed_time": int64(p.ran.lastElapsed)})
		}
	}
}

// forgetProcedureStats clears the plan cache: a boot starts with an empty one.
func (i *Instance) forgetProcedureStats() {
	for _, db := range i.databases {
		for _, p := range db.procedures {
			p.ran = procedureStat{}
		}
	}
}
