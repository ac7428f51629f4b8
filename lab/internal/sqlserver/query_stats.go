package sqlserver

import (
	"encoding/hex"
	"slices"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tsql"
)

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

func execQueryStats(v *viewContext) []viewRow {
	var out []viewRow
	for _, q := range v.inst().stats {
		out = append(out, viewRow{"last_execution_time": q.last, "execution_count": q.count,
			"total_worker_time": q.totalTiming.CPUMicros, "last_worker_time": q.lastTiming.CPUMicros,
			"total_elapsed_time": q.totalTiming.ElapsedMicros, "last_elapsed_time": q.lastTiming.ElapsedMicros,
			"query_hash": fromHex(q.query), "query_plan_hash": fromHex(q.plan), "last_rows": q.rows, "last_dop": q.degree, "last_grant_kb": 0})
	}
	return out
}

func fromHex(text string) []byte {
	out, err := hex.DecodeString(text)
	if err != nil { // hash64 writes nothing else
		panic(err)
	}
	return out
}
