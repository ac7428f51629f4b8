package sqlserver

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

// Which passes of a counting loop need not be run: if every inserted value is constant or grows by the same amount in
// each pass, it lies between the values of the first and the last pass. If both of those can be computed, so can all
// passes in between. Their keys are unique if a column of the key grows by more from pass to pass than it varies within a
// pass, and no existing row lies in its range.

// keySpan is the range of one key column over rows that are stored only as a number.
type keySpan struct {
	column   int
	from, to int64
}

// prove computes the next pass and the last. If no pass in between can fail, it returns the range of all their keys and
// leaves the variables as the last pass does; otherwise ok is false and nothing has changed.
func (b *batch) prove(loop *counting) (spans map[*uniqueKey]keySpan, ok bool) {
	before := map[string]int64{}
	for name := range loop.steps {
		before[name] = b.vars[name].value.(int64)
	}
	left := loop.passes - runPasses
	if spans, ok = b.proven(loop, before, left); ok {
		return spans, true
	}
	for name, value := range before {
		b.vars[name].value = value
	}
	return nil, false
}

func (b *batch) proven(loop *counting, before map[string]int64, left int64) (map[*uniqueKey]keySpan, bool) {
	first, err := b.compute(loop)
	if err != nil {
		return nil, false
	}
	for name, step := range loop.steps {
		far, ok := product64(step, left-1)
		sum := before[name] + far
		if !ok || (sum > before[name]) != (far > 0) || b.assign(name, sum) != nil {
			return nil, false
		}
	}
	last, err := b.compute(loop)
	if err != nil {
		return nil, false
	}
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	spans := map[*uniqueKey]keySpan{}
	for t := range first {
		if t.repeated != nil {
			return nil, false
		}
		for _, u := range t.unique {
			span, ok := u.spanOf(t, first[t], last[t], left-1)
			if !ok || u.meets(t.rows, span) {
				return nil, false
			}
			spans[u] = span
		}
	}
	return spans, true
}

// compute returns what a pass would insert, by table, without storing it. The variables change as in that pass.
func (b *batch) compute(loop *counting) (map[*table]*store, error) {
	made := map[*table]*store{}
	for _, st := range loop.body {
		switch st := st.(type) {
		case *tsql.SetVariable:
			v, err := b.value(st.X)
			if err != nil {
				return nil, err
			}
			if err := b.assign(st.Name, v); err != nil {
				return nil, err
			}
		case *tsql.Insert:
			in, rows, err := b.rowsOf(st)
			if err != nil {
				return nil, err
			}
			if earlier := made[in.table]; earlier != nil {
				rows = earlier.with(rows)
			}
			made[in.table] = rows
		}
	}
	return made, nil
}

// growsEvenly is whether an expression is the same in each pass, a variable, or a sum of two whole numbers. Any other may
// fail, or be rounded, in some pass only.
func (b *batch) growsEvenly(x tsql.Expr) bool {
	switch x := x.(type) {
	case *tsql.NumberLit, *tsql.TextLit, *tsql.BinaryLit, *tsql.NullLit:
		return true
	case *tsql.Call:
		return len(x.Args) == 0 // GETDATE()
	case *tsql.VarRef:
		return !strings.HasPrefix(x.Name, "@@")
	case *tsql.Arith:
		return x.Op == "+" && b.isWhole(x.L) && b.isWhole(x.R)
	}
	return false
}

func (b *batch) allGrowEvenly(values *tsql.Values) bool {
	for _, row := range values.Rows {
		for _, x := range row {
			if !b.growsEvenly(x) {
				return false
			}
		}
	}
	return true
}

// isWhole is whether an addend is a whole number.
func (b *batch) isWhole(x tsql.Expr) bool {
	switch x := x.(type) {
	case *tsql.NumberLit:
		_, err := strconv.ParseInt(x.Text, 10, 64)
		return err == nil
	case *tsql.VarRef:
		v := b.vars[x.Name]
		if v == nil {
			return false
		}
		_, is := v.value.(int64)
		return is
	}
	return false
}

// spanOf finds a key column whose values differ in all rows of all passes, from those of the first pass and those of
// the last, so many steps later.
func (u *uniqueKey) spanOf(t *table, first, last *store, steps int64) (keySpan, bool) {
	for _, column := range u.places {
		var from, to []int64
		if !isInteger(t.columns[column].typ.Kind) || !whole(first, column, &from) || !whole(last, column, &to) {
			continue
		}
		growth, apart := to[0]-from[0], slices.Max(from)-slices.Min(from)
		for row := range from {
			if to[row]-from[row] != growth || slices.Contains(from[:row], from[row]) {
				apart = math.MaxInt64
			}
		}
		if max(growth, -growth)/steps > apart {
			ends := slices.Concat(from, to)
			return keySpan{column, slices.Min(ends), slices.Max(ends)}, true
		}
	}
	return keySpan{}, false
}

// meets reports whether one of these rows, or a row that is stored only as a number, may have a key in that span.
func (u *uniqueKey) meets(rows *store, span keySpan) bool {
	for _, other := range u.spans {
		if other.column != span.column || span.from <= other.to && other.from <= span.to {
			return true
		}
	}
	return inSpan(rows, span)
}

// inSpan reports whether one of the rows lies in a span.
func inSpan(rows *store, span keySpan) bool {
	for row := range rows.rows {
		if v, ok := rows.cells[span.column].value(row).(int64); ok && span.from <= v && v <= span.to {
			return true
		}
	}
	return false
}

// whole reads the values of a column; false if one is not a whole number.
func whole(rows *store, column int, into *[]int64) bool {
	for row := range rows.rows {
		v, ok := rows.cells[column].value(row).(int64)
		if !ok {
			return false
		}
		*into = append(*into, v)
	}
	return true
}

// product64 is a product, and whether it fits, with room for sums of a few.
func product64(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	out := a * b
	return out, out/b == a && out <= math.MaxInt64/4 && out >= math.MinInt64/4
}
