package sqlserver

import (
	"vnuma.dev/lab/internal/tsql"
)

// A loop of millions of inserts is not run pass by pass. One that only counts and inserts,
//
//	WHILE @i < @n BEGIN INSERT INTO t (...) VALUES (...); SET @i += 1; END
//
// with values that grow by the same step in every pass, is understood from its statements: its rows are kept as what they follow from,
// its variables get their last values, and its time is that of the cost model. Every other loop runs as written.

// fewestPasses is when a loop is long enough not to be run pass by pass.
const fewestPasses = 1000

// counting is a loop that only counts and inserts.
type counting struct {
	passes  int64
	steps   map[string]int64 // what each variable grows by a pass
	inserts []*tsql.Insert
	before  []map[string]int64 // of each insert: what the variables have grown by in the pass before it
}

// countLoop does the work of a counting loop at once; ok is false for any other, of which nothing was done.
func (b *batch) countLoop(st *tsql.While) (ok bool, err error) {
	loop := b.understand(st)
	told := !b.s.options.noCount && (b.procedure == nil || !b.procedure.def.Native) // the client is told of every pass
	if loop == nil || told || b.s.options.statisticsTime || b.s.tx.depth > 0 {
		return false, nil
	}
	var made []*loopRows
	var tables []*table
	for n := range loop.inserts {
		t, s := b.rowsOf(loop, n)
		if s == nil {
			return false, nil
		}
		made, tables = append(made, s), append(tables, t)
	}
	return b.addRows(loop, tables, made)
}

// addRows puts all rows of a loop in place, or none.
func (b *batch) addRows(loop *counting, tables []*table, made []*loopRows) (bool, error) {
	inst := b.s.inst
	inst.mu.Lock()
	for n, t := range tables {
		if t.product != nil || !t.mayAdd(made[n]) {
			for k := range n {
				tables[k].looped = tables[k].looped[:len(tables[k].looped)-1]
			}
			inst.mu.Unlock()
			return false, nil
		}
		t.looped = append(t.looped, made[n])
	}
	inserts := loop.passes * int64(len(loop.inserts))
	commits := inserts
	native := b.procedure != nil && b.procedure.def.Native
	switch {
	case b.s.db.option("DELAYED_DURABILITY", "DISABLED") == "FORCED" || native && b.procedure.def.Atomic.DelayedDurability &&
		b.s.db.option("DELAYED_DURABILITY", "DISABLED") == "ALLOWED":
		commits = 0
	case native:
		commits = 1 // the atomic block is one transaction
	}
	if tables[0].memoryOptimized {
		inst.place()
	}
	before := b.s.worked
	b.s.costOf(inserts, native, commits)
	worked := b.s.worked - before
	inst.mu.Unlock()
	for name, step := range loop.steps {
		if err := b.assign(name, b.vars[name].value.(int64)+step*loop.passes); err != nil {
			return true, err
		}
	}
	b.s.rowCount = int64(len(made[len(made)-1].first))
	inst.pace(worked, b.ctx.Done())
	return true, nil
}

// understand reads a loop's statements; nil when it does more than count and insert.
func (b *batch) understand(st *tsql.While) *counting {
	body := []tsql.Statement{st.Body}
	if block, ok := st.Body.(*tsql.Block); ok {
		body = block.Body
	}
	loop := &counting{steps: map[string]int64{}}
	for _, s := range body {
		switch s := s.(type) {
		case *tsql.Insert:
			grown := map[string]int64{}
			for name, step := range loop.steps {
				grown[name] = step
			}
			loop.inserts, loop.before = append(loop.inserts, s), append(loop.before, grown)
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
	if len(loop.inserts) == 0 || !b.count(loop, st.Cond) || loop.passes < fewestPasses || !b.affine(loop) {
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

// count finds the number of passes of WHILE @i < bound, where the loop itself leaves the bound alone.
func (b *batch) count(loop *counting, cond tsql.Expr) bool {
	c, ok := cond.(*tsql.Compare)
	if !ok || c.Op != "<" && c.Op != "<=" {
		return false
	}
	counter, ok := c.L.(*tsql.VarRef)
	if !ok || loop.steps[counter.Name] <= 0 {
		return false
	}
	switch bound := c.R.(type) {
	case *tsql.NumberLit:
	case *tsql.VarRef:
		if _, moves := loop.steps[bound.Name]; moves {
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
	if c.Op == "<=" {
		bound++
	}
	from, step := b.vars[counter.Name].value.(int64), loop.steps[counter.Name]
	loop.passes = max((bound-from+step-1)/step, 0)
	return true
}

// affine tells whether every value that the loop inserts grows by the same step in every pass.
func (b *batch) affine(loop *counting) bool {
	for _, in := range loop.inserts {
		values, ok := source(in).(*tsql.Values)
		if !ok {
			return false
		}
		for _, row := range values.Rows {
			for _, x := range row {
				if x != nil && !grows(x, loop.steps) {
					return false
				}
			}
		}
	}
	return true
}

// grows tells whether an expression is a sum of variables and constants, with products by constants.
func grows(x tsql.Expr, steps map[string]int64) bool {
	moves := func(x tsql.Expr) bool {
		found := false
		tsql.Walk(x, func(x tsql.Expr) bool {
			v, ok := x.(*tsql.VarRef)
			_, step := steps[nameOf(v)]
			found = found || ok && step
			return true
		})
		return found
	}
	switch x := x.(type) {
	case *tsql.NumberLit, *tsql.TextLit, *tsql.NullLit, *tsql.VarRef:
		return true
	case *tsql.Unary:
		return x.Op != "~" && grows(x.X, steps)
	case *tsql.Arith:
		switch x.Op {
		case "+", "-":
			return grows(x.L, steps) && grows(x.R, steps)
		case "*":
			return grows(x.L, steps) && grows(x.R, steps) && !(moves(x.L) && moves(x.R))
		}
	}
	return false
}

func nameOf(v *tsql.VarRef) string {
	if v == nil {
		return ""
	}
	return v.Name
}

// rowsOf computes an insert's rows in the first pass, the second and the last, as the server would, with all its
// conversions and checks; nil when they do not grow evenly or one of them fails.
func (b *batch) rowsOf(loop *counting, n int) (*table, *loopRows) {
	var t *table
	var passes [3][][]any
	for k, pass := range []int64{0, 1, loop.passes - 1} {
		in, rows := b.rowsOfPass(loop, n, pass)
		if rows == nil {
			return nil, nil
		}
		t, passes[k] = in.table, rows
	}
	s := &loopRows{first: passes[0], times: loop.passes}
	for r, row := range passes[0] {
		steps := make([]int64, len(row))
		for i, v := range row {
			from, whole := v.(int64)
			to, stays := passes[1][r][i].(int64)
			if !whole || !stays {
				continue
			}
			steps[i] = to - from
			if passes[2][r][i] != from+steps[i]*(loop.passes-1) {
				return nil, nil
			}
		}
		s.step = append(s.step, steps)
	}
	return t, s
}

// rowsOfPass are an insert's rows in one pass, with the variables as they are then.
func (b *batch) rowsOfPass(loop *counting, n int, pass int64) (*insertPlan, [][]any) {
	vars := map[string]*variable{}
	for name, v := range b.vars {
		vars[name] = v
		if step, moves := loop.steps[name]; moves {
			moved := *v
			moved.value = v.value.(int64) + step*pass + loop.before[n][name]
			vars[name] = &moved
		}
	}
	then := b.within(vars)
	then.procedure = b.procedure
	r := then.newRun()
	var in *insertPlan
	if err := then.compile(r, func(c *compiler) (err error) {
		in, err = c.insert(loop.inserts[n])
		return err
	}); err != nil || in.table.identityColumn() || in.table.db == nil {
		return nil, nil
	}
	made, err := in.build()
	if err != nil {
		return nil, nil
	}
	rows := make([][]any, made.rows)
	for k := range rows {
		rows[k] = make([]any, len(in.table.columns))
		made.read(k, rows[k])
	}
	return in, rows
}

func (t *table) identityColumn() bool {
	for _, c := range t.columns {
		if c.def.Identity {
			return true
		}
	}
	return false
}
