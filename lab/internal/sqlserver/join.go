package sqlserver

import (
	"slices"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// crossPlan is the product of two inputs; the inner one is computed once.
type crossPlan struct {
	pair
	run *run

	outerRows, innerRows int64 // of the last run
}

func (p *crossPlan) columns() []column { return joinColumns(p.left, p.right, false) }

// joinColumns are the columns of both sides; those of the right one may be NULL in an outer join.
func joinColumns(left, right plan, outer bool) []column {
	out := append(append([]column(nil), left.columns()...), right.columns()...)
	for i := len(left.columns()); outer && i < len(out); i++ {
		out[i].nullable = true
	}
	return out
}

func (p *crossPlan) each(yield func([]any) bool) {
	inner := collect(p.right)
	p.outerRows, p.innerRows = 0, int64(len(inner))
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	for row := range p.left.each {
		p.run.ended()
		p.outerRows++
		copy(buffer, row)
		for _, in := range inner {
			copy(buffer[width:], in)
			if !yield(buffer) {
				return
			}
		}
	}
}

// joinPlan is an INNER or LEFT join: by nested loops, or of equal columns by hash.
type joinPlan struct {
	pair
	outer bool // LEFT
	on    scalar
	equal equalities
	run   *run
}

func (p *joinPlan) columns() []column { return joinColumns(p.left, p.right, p.outer) }

// tableRef compiles one source of rows of a FROM clause.
func (c *compiler) tableRef(ref tsql.TableRef) plan {
	switch ref := ref.(type) {
	case *tsql.Table:
		return c.table(ref)
	case *tsql.Derived:
		return aliased(c.query(ref.Query), ref.Alias, ref.Columns, ref.Query.Line)
	}
	j := ref.(*tsql.Join)
	left, right := c.tableRef(j.Left), c.tableRef(j.Right)
	if j.Kind == "CROSS" {
		return &crossPlan{pair: pair{left, right}, run: c.run}
	}
	p := &joinPlan{pair: pair{left, right}, outer: j.Kind == "LEFT", run: c.run, equal: equalColumns(j.On, left, right)}
	p.on = c.with(&scope{columns: p.columns()}).expr(j.On)
	return p
}

// renamed is a plan with other column names.
type renamedPlan struct {
	plan
	cols []column
}

func (p *renamedPlan) columns() []column { return p.cols }
func (p *renamedPlan) inputs() []plan    { return []plan{p.plan} }

// aliased gives a plan an alias and perhaps column names.
func aliased(p plan, alias string, names []string, line int) plan {
	cols := append([]column(nil), p.columns()...)
	for i := range cols {
		cols[i].table = fold(alias)
		if names != nil {
			cols[i].name = names[i]
		}
		if cols[i].name == "" {
			panic(tsql.Errorf(8155, line, "No column name was specified for column %d of '%s'.", i+1, alias))
		}
	}
	return &renamedPlan{plan: p, cols: cols}
}

// equalities are the columns that a join compares, by position.
type equalities struct{ left, right []int }

// equalColumns are those that a condition compares, each with one of the other side; none if it is anything else.
func equalColumns(on tsql.Expr, left, right plan) (found equalities) {
	if and, ok := on.(*tsql.Logic); ok && and.Op == "AND" {
		one, two := equalColumns(and.L, left, right), equalColumns(and.R, left, right)
		if one.left != nil && two.left != nil {
			found = equalities{append(one.left, two.left...), append(one.right, two.right...)}
		}
		return found
	}
	equal, ok := on.(*tsql.Compare)
	if !ok || equal.Op != "=" {
		return found
	}
	for _, sides := range [][2]tsql.Expr{{equal.L, equal.R}, {equal.R, equal.L}} {
		l, r := placeIn(sides[0], left), placeIn(sides[1], right)
		if l >= 0 && r >= 0 && sameKey(left.columns()[l].typ.Kind, right.columns()[r].typ.Kind) {
			return equalities{[]int{l}, []int{r}}
		}
	}
	return found
}

func placeIn(x tsql.Expr, p plan) int {
	if ref, ok := x.(*tsql.ColumnRef); ok {
		return (&scope{columns: p.columns()}).find(ref)
	}
	return -1
}

// sameKey reports whether equal values of two kinds have the same rowKey.
func sameKey(a, b tds.Kind) bool { return isInteger(a) && isInteger(b) || isText(a) && isText(b) }

func (p *joinPlan) byHash() bool { return !p.outer && p.equal.left != nil }

func (p *joinPlan) each(yield func([]any) bool) { singly(p, yield) }

func (p *joinPlan) eachTimes(yield func([]any, int64) bool) {
	if p.byHash() {
		p.hashed(yield)
		return
	}
	inner := collect(p.right)
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	for row, times := range eachTimes(p.left) {
		p.run.ended()
		copy(buffer, row)
		matched := false
		for _, right := range inner {
			if copy(buffer[width:], right); p.on.eval(buffer) == true {
				matched = true
				if !yield(buffer, times) {
					return
				}
			}
		}
		if p.outer && !matched {
			clear(buffer[width:])
			if !yield(buffer, times) {
				return
			}
		}
	}
}

// hashed looks the rows of the right side up among those of the left one, which occur several times. A hash only finds
// candidates: the condition decides.
func (p *joinPlan) hashed(yield func([]any, int64) bool) {
	type counted struct {
		row   []any
		times int64
	}
	found := map[string][]counted{}
	for row, times := range eachTimes(p.left) {
		key := rowKey(row, p.equal.left)
		found[key] = append(found[key], counted{slices.Clone(row), times})
	}
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	for right := range p.right.each {
		copy(buffer[width:], right)
		for _, left := range found[rowKey(right, p.equal.right)] {
			if copy(buffer, left.row); p.on.eval(buffer) == true && !yield(buffer, left.times) {
				return
			}
		}
	}
}
