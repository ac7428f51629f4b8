package sqlserver

import (
	"vnuma.dev/lab/internal/tsql"
)

// repeated is the content of a table made by SELECT ... INTO whose rows recur: each different row, and how
// often it is there. So millions of generated rows need no memory.
type repeated struct {
	rows  *store
	times []int64
}

func (r *repeated) count() (n int64) {
	for _, times := range r.times {
		n += times
	}
	return n
}

// expanded is the same with every row written out.
func (r *repeated) expanded() *store {
	out := &store{types: r.rows.types}
	for i := range r.rows.cells {
		out.cells = append(out.cells, newCells(r.rows.types[i]))
	}
	for row, times := range r.times {
		for range times {
			out.copyFrom(r.rows, row)
		}
	}
	return out
}

// repeatedPlan reads a table of recurring rows.
type repeatedPlan struct {
	cols  []column
	table *table
	of    *repeated
	run   *run
}

func (p *repeatedPlan) columns() []column { return p.cols }

func (p *repeatedPlan) each(yield func([]any) error) error {
	return p.eachTimes(func(row []any, times int64) error {
		for n := range times {
			if n&1023 == 1023 {
				if err := p.run.ended(); err != nil {
					return err
				}
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *repeatedPlan) eachTimes(yield func([]any, int64) error) error {
	buffer := make([]any, len(p.cols))
	for row, times := range p.of.times {
		p.of.rows.read(row, buffer)
		if err := yield(buffer, times); err != nil {
			return err
		}
	}
	return p.run.ended()
}

// timesPlan is a plan that can hand over a row once with the number of times that it is there.
type timesPlan interface {
	eachTimes(yield func(row []any, times int64) error) error
}

// eachTimes reads a plan for a consumer to whom it does not matter that equal rows come one after the other.
func eachTimes(p plan, yield func([]any, int64) error) error {
	if p, ok := p.(timesPlan); ok {
		return p.eachTimes(yield)
	}
	return p.each(func(row []any) error { return yield(row, 1) })
}

func (p *renamedPlan) eachTimes(yield func([]any, int64) error) error {
	return eachTimes(p.plan, yield)
}

func (p *filterPlan) eachTimes(yield func([]any, int64) error) error {
	return eachTimes(p.input, func(row []any, times int64) error {
		v, err := p.cond.eval(row)
		if err != nil || v != true {
			return err
		}
		return yield(row, times)
	})
}

// recurring finds that the rows of a projection recur, because it takes the columns of a derived table only
// as remainders of constants: `v.n % 40`. Nil when it does not.
func recurring(q *tsql.Query, p plan, r *run) (*repeated, error) {
	project, ok := p.(*projectPlan)
	if !ok {
		return nil, nil
	}
	numbers, divisor := remainders(q, project)
	if numbers == nil {
		return nil, nil
	}
	out := &repeated{rows: newStore(project.cols)}
	places := make([]int, 2*divisor) // 1 + the place of each remainder's row, those of negative numbers first
	one, row := make([]any, 1), make([]any, len(project.exprs))
	err := numbers(func(n int64) error {
		at := &places[n%divisor+divisor]
		if *at > 0 {
			out.times[*at-1]++
			return nil
		}
		one[0] = n
		made, err := evaluate(project.exprs, one, row)
		if err != nil {
			return err
		}
		out.times = append(out.times, 1)
		*at = len(out.times)
		return out.rows.add(made)
	})
	return out, err
}

// mostDifferent is how many different rows a table of recurring rows may have.
const mostDifferent = 1 << 16

// remainders gives the numbers of the derived table's one column, and a number modulo which equal ones make
// equal rows.
func remainders(q *tsql.Query, project *projectPlan) (numbers func(func(int64) error) error, divisor int64) {
	items, column, inner := overNumbers(q, project)
	if inner == nil {
		return nil, 0
	}
	divisor = 1
	for _, item := range items {
		d, alone := digitIn(item.X, column)
		if !alone || d != nil && d.by > 1 {
			return nil, 0
		}
		if d != nil {
			divisor = leastCommonMultiple(divisor, d.radix)
		}
		if divisor > mostDifferent {
			return nil, 0
		}
	}
	return inner.wholes, divisor
}

// overNumbers gives the select list over a derived table of one column of integers, the name of that column,
// and its plan; nil for any other projection.
func overNumbers(q *tsql.Query, project *projectPlan) (items []tsql.Item, column string, inner *projectPlan) {
	s, ok := q.Body.(*tsql.Select)
	if !ok || len(s.From) != 1 || s.Where != nil || s.GroupBy != nil || s.Distinct || s.Top != nil {
		return nil, "", nil
	}
	if _, ok := s.From[0].(*tsql.Derived); !ok {
		return nil, "", nil
	}
	named, ok := project.input.(*renamedPlan)
	if !ok || len(named.cols) != 1 {
		return nil, "", nil
	}
	if inner, ok = named.plan.(*projectPlan); !ok || inner.exprs[0].whole == nil {
		return nil, "", nil
	}
	return s.Items, fold(named.cols[0].name), inner
}

// wholes hands over the integer of a projection of one column; rows with NULL are none of its business.
func (p *projectPlan) wholes(yield func(int64) error) error {
	return p.input.each(func(row []any) error {
		n, null, err := p.exprs[0].whole(row)
		if err != nil {
			return err
		}
		if null {
			return tsql.Unmodelled(0, "NULL among generated numbers")
		}
		return yield(n)
	})
}

// remainderOf is the constant by which a column is divided, 0 for any other expression.
func remainderOf(x *tsql.Arith) int64 {
	if _, column := x.L.(*tsql.ColumnRef); !column || x.Op != "%" {
		return 0
	}
	return wholeLiteral(x.R)
}

// wholeLiteral is the value of an integer literal, 0 for any other expression.
func wholeLiteral(x tsql.Expr) int64 {
	literal, ok := x.(*tsql.NumberLit)
	if !ok {
		return 0
	}
	s, err := numberLiteral(literal.Text)
	if err != nil || s.whole == nil {
		return 0
	}
	n, _, err := s.whole(nil)
	if err != nil {
		return 0
	}
	return n
}

func leastCommonMultiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
