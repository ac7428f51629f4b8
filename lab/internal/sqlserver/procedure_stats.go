package sqlserver

func init() {
	addView("sys.dm_exec_procedure_stats", "", `database_id int, object_id int, type char(2)?, type_desc nvarchar(60)?,
		last_execution_time datetime?, execution_count bigint, total_worker_time bigint, last_worker_time bigint,
		total_elapsed_time bigint, last_elapsed_time bigint`, procedureStats)
}

// procedureStats has a row for each procedure that ran since the boot while its plan is cached.
func procedureStats(v *viewContext) []viewRow {
	var out []viewRow
	for _, db := range v.inst().databases {
		for _, p := range db.sortedProcedures() {
			if p.ran.count == 0 {
				continue
			}
			out = append(out, viewRow{"database_id": db.id, "object_id": p.id, "type": "P ", "type_desc": "SQL_STORED_PROCEDURE",
				"last_execution_time": p.ran.last, "execution_count": p.ran.count,
				"total_worker_time": int64(p.ran.worker), "last_worker_time": int64(p.ran.lastWorker),
				"total_elapsed_time": int64(p.ran.elapsed), "last_elapsed_time": int64(p.ran.lastElapsed)})
		}
	}
	return out
}

// forgetProcedureStats clears the plan cache: a boot starts with an empty one.
func (i *Instance) forgetProcedureStats() {
	for _, db := range i.databases {
		for _, p := range db.procedures {
			p.ran = procedureStat{}
		}
	}
}
