package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tsql"
)

func init() {
	addView("sys.dm_os_spinlock_stats", "", "name nvarchar(256), collisions bigint, spins bigint, backoffs bigint", spinlockStats)
}

// logCache are the counters of log writes since the boot.
type logCache struct {
	spins   float64 // on LOGCACHE_ACCESS
	inserts int64
	commits int64
	flushMS float64
}

func (l *logCache) book(c cost.InsertCost, inserts, commits int64) {
	l.spins += c.Spins
	l.inserts += inserts
	l.commits += commits
	l.flushMS += c.Flush / 1000
}

// Spins in the other columns, and the inserts' spins on other spinlocks wherever the log writer is: assumptions.
const (
	spinsPerCollision  = 250
	collisionsPerSleep = 10
)

var otherSpinlocks = []struct {
	name      string
	standing  int64
	perInsert float64
}{{"LOCK_HASH", 4200, 0.02}, {"LOGFLUSHQ", 900, 0.05}, {"SOS_OBJECT_STORE", 12_000, 0.001}, {"XDESMGR", 300, 0.4}}

func spinlockStats(v *viewContext) {
	row := func(name string, spins int64) viewRow {
		collisions := spins / spinsPerCollision
		return viewRow{"name": name, "collisions": collisions, "spins": spins, "backoffs": collisions / collisionsPerSleep}
	}
	l := v.inst().logCache
	v.add(row("LOGCACHE_ACCESS", int64(l.spins)))
	for _, other := range otherSpinlocks {
		v.add(row(other.name, other.standing+int64(other.perInsert*float64(l.inserts))))
	}
}

// logWriters are the CPUs of the log writers: one up to 2014, since 2016 one per memory node, at most four. They run
// on hidden schedulers of node 0, unless the lab is set to spread them. The caller holds mu.
func (i *Instance) logWriters() []logWriter {
	count := 1
	if i.version.major >= 13 {
		count = min(max(i.topology.memoryNodes, 1), 4)
	}
	var out []logWriter
	for n := range count {
		node := 0
		if i.config.LogWriters == "spread" {
			node = n % max(i.topology.memoryNodes, 1)
		}
		cpus := i.boot.Nodes[node]
		out = append(out, logWriter{scheduler: hiddenScheduler + 1 + n, cpu: cpus[n%len(cpus)], memoryNode: node})
	}
	return out
}

// logWriter is one of the threads that write the log.
type logWriter struct{ scheduler, cpu, memoryNode int }

// farFromLogWriter is the share of the CPUs in use on another physical node than the log writer, averaged over all of
// them. The caller holds mu.
func (i *Instance) farFromLogWriter() float64 {
	far, pairs := 0, 0
	for _, w := range i.logWriters() {
		for n, cpus := range i.boot.Nodes {
			for _, cpu := range cpus {
				if !i.usable(cpu) {
					continue
				}
				pairs++
				if i.hostNode(n) != i.hostNode(w.memoryNode) {
					far++
				}
			}
		}
	}
	return float64(far) / float64(pairs)
}

// nodeOf is the SQL CPU node of a CPU. The caller holds mu.
func (i *Instance) nodeOf(cpu int) int {
	for n, node := range i.topology.nodes {
		for _, own := range node.cpus {
			if own == cpu {
				return n
			}
		}
	}
	return 0
}

// A loop of millions of inserts is not run pass by pass. Of one that only inserts values and adds to variables,
//
//	WHILE @i < @n BEGIN INSERT INTO t (...) VALUES (...); SET @i += 1; END
//
// the first passes run as written. If they succeed, so do the others, and each adds as much as the last of them: only
// the number of their rows is stored, the cost model computes their time, and the variables get their last values.

const (
	fewestPasses = 1000 // number of passes from which on a loop is not run pass by pass
	runPasses    = 2    // of such a loop
)

// countable are the inserts of such a loop, nil for any other, and for one whose client gets a message for every pass.
func (b *batch) countable(st *tsql.While) (inserts []*tsql.Insert) {
	if b.s.options.statisticsTime || !b.s.options.noCount && (b.procedure == nil || !b.procedure.def.Native) {
		return nil
	}
	body := []tsql.Statement{st.Body}
	if block, ok := st.Body.(*tsql.Block); ok {
		body = block.Body
	}
	for _, s := range body {
		only := false
		switch s := s.(type) {
		case *tsql.Insert:
			inserts = append(inserts, s)
			_, only = s.Source.Body.(*tsql.Values)
		case *tsql.SetVariable:
			if sum, ok := s.X.(*tsql.Arith); ok && sum.Op == "+" {
				to, variable := sum.L.(*tsql.VarRef)
				_, constant := sum.R.(*tsql.NumberLit)
				only = variable && constant && to.Name == s.Name
			}
		}
		if !only {
			return nil
		}
	}
	return inserts
}

// wholeNumbers are the variables that hold one.
func (b *batch) wholeNumbers() map[string]int64 {
	out := map[string]int64{}
	for name, v := range b.vars {
		if n, ok := v.value.(int64); ok {
			out[name] = n
		}
	}
	return out
}

// skip does the work of the passes that are left of a loop, if there are many; before are the variables before the last pass.
func (b *batch) skip(cond tsql.Expr, inserts []*tsql.Insert, before map[string]int64) {
	less, ok := cond.(*tsql.Compare)
	if !ok || less.Op != "<" {
		return
	}
	counter, ok := less.L.(*tsql.VarRef)
	most, whole := b.value(less.R).(int64)
	now := b.wholeNumbers()
	if !ok || !whole || now[counter.Name] <= before[counter.Name] {
		return
	}
	step := now[counter.Name] - before[counter.Name]
	left := (most - now[counter.Name] + step - 1) / step
	if left+runPasses < fewestPasses || !fixed(less.R, now, before) {
		return
	}
	if tsql.Catch(func() {
		for name := range now {
			added := integerArithmetic("*", now[name]-before[name], left, typeBigInt)
			now[name] = integerArithmetic("+", now[name], added, b.vars[name].typ)
		}
	}) != nil {
		return // it fails on the way
	}
	for name, last := range now {
		b.vars[name].value = last
	}
	b.s.inst.pace(b.addRows(inserts, left), b.ctx.Done())
}

// fixed reports whether the last pass did not change the bound of a loop: a number, or a variable.
func fixed(bound tsql.Expr, now, before map[string]int64) bool {
	if v, ok := bound.(*tsql.VarRef); ok {
		return now[v.Name] == before[v.Name]
	}
	_, number := bound.(*tsql.NumberLit)
	return number
}

// addRows adds the number of rows of the passes that are not run; it returns the model's time.
func (b *batch) addRows(inserts []*tsql.Insert, passes int64) time.Duration {
	inst, r := b.s.inst, b.newRun()
	inst.mu.Lock()
	defer inst.mu.Unlock()
	for _, in := range inserts {
		t := r.stored(in.Target)
		t.counted += passes * int64(len(in.Source.Body.(*tsql.Values).Rows))
		if t.memoryOptimized {
			inst.place()
		}
	}
	n := (passes + runPasses) * int64(len(inserts))
	commits := n
	native := b.procedure != nil && b.procedure.def.Native
	switch {
	case b.s.db.option("DELAYED_DURABILITY", "DISABLED") == "FORCED":
		commits = 0
	case native:
		commits = 1 // the atomic block is one transaction
	}
	before := b.s.worked
	b.s.costOf(n, native, commits)
	return b.s.worked - before
}

// countedPlan reads a table with rows that are stored only as a number.
type countedPlan struct {
	source
	rows int64
}

func (p *countedPlan) each(func([]any) bool) { panic(errCounted) }

var errCounted = tsql.Unmodelled(0, "values or changes of rows of which it stores the number (a loop of inserts, a cross join INTO a table, recurring rows)")

// overCounted is COUNT(*) over such a table; ok is false if the query needs anything else.
func (p *aggregatePlan) overCounted() (row []any, ok bool) {
	all, is := bare(p.input).(*countedPlan)
	if !is || p.grouped {
		return nil, false
	}
	for _, a := range p.aggregates {
		if a.arg != nil {
			return nil, false
		}
		row = append(row, all.rows)
	}
	return row, true
}
