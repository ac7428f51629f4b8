package sqlserver

import (
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

func spinlockStats(v *viewContext) []viewRow {
	row := func(name string, spins int64) viewRow {
		collisions := spins / spinsPerCollision
		return viewRow{"name": name, "collisions": collisions, "spins": spins, "backoffs": collisions / collisionsPerSleep}
	}
	l := v.inst().logCache
	out := []viewRow{row("LOGCACHE_ACCESS", int64(l.spins))}
	for _, other := range otherSpinlocks {
		out = append(out, row(other.name, other.standing+int64(other.perInsert*float64(l.inserts))))
	}
	return out
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
		if i.config.LogWritersSpread {
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

// A loop of millions of inserts is not run pass by pass. For one that only counts and inserts,
//
//	WHILE @i < @n BEGIN INSERT INTO t (...) VALUES (...); SET @i += 1; END
//
// the first passes run as written. If they succeed, so do the others: only the number of their rows is stored, the cost
// model computes their time, and the variables get their last values. Every other loop runs as written.

const (
	fewestPasses = 1000 // number of passes from which on a loop is not run pass by pass
	runPasses    = 2    // of such a loop
)

// counting is a loop that only counts and inserts.
type counting struct {
	passes  int64
	steps   map[string]int64 // each variable's increment per pass
	inserts []*tsql.Insert
}

// countLoop does the work of a counting loop at once. If it returns false, run the loop as written, from the variables'
// present values.
func (b *batch) countLoop(st *tsql.While) (done bool, err error) {
	loop := b.understand(st)
	told := !b.s.options.noCount && (b.procedure == nil || !b.procedure.def.Native) // the client gets a message for every pass
	if loop == nil || told || b.s.options.statisticsTime {
		return false, nil
	}
	failed := b.s.failed
	for range runPasses {
		if b.statement(st.Body); b.aborted {
			return true, nil
		}
	}
	if b.s.failed > failed {
		return false, nil
	}
	adds, err := b.rowsOfAPass(loop)
	if err != nil {
		return false, err
	}
	left := loop.passes - runPasses
	for name, step := range loop.steps {
		if err := b.assign(name, b.vars[name].value.(int64)+step*left); err != nil {
			return false, err
		}
	}
	b.addRows(loop, adds)
	return true, nil
}

// rowsOfAPass is how many rows a pass adds to each table.
func (b *batch) rowsOfAPass(loop *counting) (map[*table]int64, error) {
	adds := map[*table]int64{}
	r := b.newRun()
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	for _, in := range loop.inserts {
		t, err := r.stored(in.Target)
		if err != nil {
			return nil, err
		}
		adds[t] += int64(len(in.Source.Body.(*tsql.Values).Rows))
	}
	return adds, nil
}

// addRows adds the number of rows of the passes that are not run, in the model's time.
func (b *batch) addRows(loop *counting, adds map[*table]int64) {
	inst := b.s.inst
	inst.mu.Lock()
	for t, rows := range adds {
		t.counted += (loop.passes - runPasses) * rows
		if t.memoryOptimized {
			inst.place()
		}
	}
	inserts := loop.passes * int64(len(loop.inserts))
	commits := inserts
	native := b.procedure != nil && b.procedure.def.Native
	switch {
	case b.s.db.option("DELAYED_DURABILITY", "DISABLED") == "FORCED":
		commits = 0
	case native:
		commits = 1 // the atomic block is one transaction
	}
	before := b.s.worked
	b.s.costOf(inserts, native, commits)
	worked := b.s.worked - before
	inst.mu.Unlock()
	inst.pace(worked, b.ctx.Done())
}

// understand parses a loop's statements; nil if it does more than count and insert values.
func (b *batch) understand(st *tsql.While) *counting {
	body := []tsql.Statement{st.Body}
	if block, ok := st.Body.(*tsql.Block); ok {
		body = block.Body
	}
	loop := &counting{steps: map[string]int64{}}
	for _, s := range body {
		switch s := s.(type) {
		case *tsql.Insert:
			if _, ok := s.Source.Body.(*tsql.Values); !ok {
				return nil
			}
			loop.inserts = append(loop.inserts, s)
		case *tsql.SetVariable:
			step, ok := b.stepOf(s)
			if _, twice := loop.steps[s.Name]; !ok || twice {
				return nil
			}
			loop.steps[s.Name] = step
		default:
			return nil
		}
	}
	if len(loop.inserts) == 0 || !b.count(loop, st.Cond) || loop.passes < fewestPasses {
		return nil
	}
	return loop
}

// stepOf is what SET @v = @v + constant adds.
func (b *batch) stepOf(s *tsql.SetVariable) (int64, bool) {
	sum, ok := s.X.(*tsql.Arith)
	if !ok || sum.Op != "+" {
		return 0, false
	}
	v, ok := sum.L.(*tsql.VarRef)
	if _, literal := sum.R.(*tsql.NumberLit); !ok || !literal || v.Name != s.Name || b.vars[s.Name] == nil {
		return 0, false
	}
	_, whole := b.vars[s.Name].value.(int64)
	step, err := b.value(sum.R)
	n, number := step.(int64)
	return n, whole && number && err == nil
}

// count finds the number of passes of WHILE @i < bound, a number or a variable that the loop does not change.
func (b *batch) count(loop *counting, cond tsql.Expr) bool {
	c, ok := cond.(*tsql.Compare)
	if !ok || c.Op != "<" {
		return false
	}
	counter, ok := c.L.(*tsql.VarRef)
	if !ok || loop.steps[counter.Name] <= 0 {
		return false
	}
	switch bound := c.R.(type) {
	case *tsql.NumberLit:
	case *tsql.VarRef:
		if loop.steps[bound.Name] != 0 {
			return false
		}
	default:
		return false
	}
	v, err := b.value(c.R)
	bound, ok := v.(int64)
	if !ok || err != nil {
		return false
	}
	from, step := b.vars[counter.Name].value.(int64), loop.steps[counter.Name]
	loop.passes = (bound - from + step - 1) / step
	return true
}

// countedPlan reads a table with rows that are stored only as a number.
type countedPlan struct {
	cols []column
	rows int64
}

func (p *countedPlan) columns() []column { return p.cols }

func (p *countedPlan) each(func([]any) error) error { return errCounted }

var errCounted = tsql.Unmodelled(0, "values or changes of rows of which it stores the number (a loop of inserts, a cross join INTO a table, recurring rows)")

// overCounted is COUNT(*) over such a table; ok is false if the query needs anything else.
func (p *aggregatePlan) overCounted() (row []any, ok bool) {
	input := p.input
	for renamed, is := input.(*renamedPlan); is; renamed, is = input.(*renamedPlan) {
		input = renamed.plan
	}
	all, is := input.(*countedPlan)
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
