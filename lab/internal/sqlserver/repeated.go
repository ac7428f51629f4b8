package sqlserver

import (
	"iter"
	"strconv"

	"vnuma.dev/lab/internal/tsql"
)

// repeated is the content of a table made by SELECT ... INTO with recurring rows: each different row, and how
// often it occurs. So millions of generated rows need little memory.
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

// repeatedPlan reads a table of recurring rows.
type repeatedPlan struct {
	source
	table *table
	of    *repeated
	run   *run
}

func (p *repeatedPlan) each(yield func([]any) bool) { singly(p, yield) }

func (p *repeatedPlan) eachTimes(yield func([]any, int64) bool) {
	buffer := make([]any, len(p.cols))
	for row, times := range p.of.times {
		if p.of.rows.read(row, buffer); !yield(buffer, times) {
			return
		}
	}
}

// timesPlan is a plan that can yield a row once with the number of its occurrences.
type timesPlan interface {
	eachTimes(yield func(row []any, times int64) bool)
}

// singly yields each row as often as it occurs.
func singly(p timesPlan, yield func([]any) bool) {
	for row, times := range p.eachTimes {
		for range times {
			if !yield(row) {
				return
			}
		}
	}
}

// eachTimes reads a plan for a consumer that does not depend on the order of equal rows.
func eachTimes(p plan) iter.Seq2[[]any, int64] {
	if p, ok := p.(timesPlan); ok {
		return p.eachTimes
	}
	return func(yield func([]any, int64) bool) {
		p.each(func(row []any) bool { return yield(row, 1) })
	}
}

func (p *renamedPlan) eachTimes(yield func([]any, int64) bool) { eachTimes(p.plan)(yield) }

func (p *filterPlan) eachTimes(yield func([]any, int64) bool) {
	for row, times := range eachTimes(p.input) {
		if p.cond.eval(row) == true && !yield(row, times) {
			return
		}
	}
}

// recurring detects that the rows of a projection recur, because it takes the columns of a derived table only
// as remainders of constants: `v.n % 40`. Nil if they do not.
func recurring(q *tsql.Query, p plan, r *run) *repeated {
	project, ok := p.(*projectPlan)
	if !ok {
		return nil
	}
	numbers, divisor := remainders(q, project)
	if numbers == nil {
		return nil
	}
	out := &repeated{rows: newStore(project.cols)}
	places := make([]int, 2*divisor) // 1 + the position of each remainder's row, those of negative numbers first
	row := make([]any, len(project.exprs))
	for one := range numbers.each {
		n, ok := one[0].(int64)
		if !ok {
			panic(tsql.Unmodelled(0, "NULL among generated numbers"))
		}
		at := &places[n%divisor+divisor]
		if *at == 0 {
			out.rows.add(evaluate(project.exprs, one, row))
			out.times = append(out.times, 0)
			*at = len(out.times)
		}
		out.times[*at-1]++
	}
	return out
}

// mostDifferent is the largest number of different rows in a table of recurring rows.
const mostDifferent = 1 << 16

// remainders returns the plan of the derived table's one column, and a modulus for which congruent numbers in it
// give equal rows.
func remainders(q *tsql.Query, project *projectPlan) (numbers plan, divisor int64) {
	s, ok := q.Body.(*tsql.Select)
	if !ok || s.Where != nil || s.GroupBy != nil || s.Distinct || s.Top != nil {
		return nil, 0
	}
	named, ok := project.input.(*renamedPlan)
	if _, derived := s.From.(*tsql.Derived); !derived || !ok || len(named.cols) != 1 || !isInteger(named.cols[0].typ.Kind) {
		return nil, 0
	}
	divisor = 1
	for _, item := range s.Items {
		if divisor = remaindersIn(item.X, fold(named.cols[0].name), divisor); divisor == 0 || divisor > mostDifferent {
			return nil, 0
		}
	}
	return named.plan, divisor
}

// remaindersIn is a common multiple of a divisor and those by which an expression divides a column; 0 if it uses
// more of the column than `column % divisor`. Names other than the column's are date parts: the statement has already
// been compiled.
func remaindersIn(x tsql.Expr, column string, divisor int64) int64 {
	tsql.Walk(x, func(x tsql.Expr) bool {
		switch x := x.(type) {
		case *tsql.Arith:
			if by := remainderOf(x); by > 0 {
				divisor = leastCommonMultiple(divisor, by)
				return false
			}
		case *tsql.ColumnRef:
			if fold(x.Object()) == column {
				divisor = 0
			}
		case *tsql.Subquery, *tsql.VarRef:
			divisor = 0
		}
		return divisor > 0
	})
	return divisor
}

// remainderOf is the constant by which a column is divided, 0 for any other expression.
func remainderOf(x *tsql.Arith) int64 {
	_, column := x.L.(*tsql.ColumnRef)
	literal, ok := x.R.(*tsql.NumberLit)
	if !column || !ok || x.Op != "%" {
		return 0
	}
	n, err := strconv.ParseInt(literal.Text, 10, 32)
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
