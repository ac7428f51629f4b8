package sqlserver

import (
	"slices"
	"sort"

	"vnuma.dev/lab/internal/tsql"
)

// A statement that fails panics with a *tsql.Error, at any depth of its compilation or run; batch.statement catches it.

// plan is a compiled source of rows.
type plan interface {
	columns() []column
	inputs() []plan
	// each yields one row after the other, until it is told to stop; a row may be overwritten after yield returns.
	each(yield func(row []any) bool)
}

// source is the part of a plan that reads no other one.
type source struct{ cols []column }

func (p *source) columns() []column { return p.cols }
func (p *source) inputs() []plan    { return nil }

// step is the part of a plan that reads another one; without columns of its own it has the other's.
type step struct {
	input plan
	cols  []column
}

func (p *step) inputs() []plan { return []plan{p.input} }

func (p *step) columns() []column {
	if p.cols == nil {
		return p.input.columns()
	}
	return p.cols
}

// pair is the part of a plan that reads two others.
type pair struct{ left, right plan }

func (p *pair) inputs() []plan { return []plan{p.left, p.right} }

// bare is a plan without other names for its columns.
func bare(p plan) plan {
	for renamed, is := p.(*renamedPlan); is; renamed, is = p.(*renamedPlan) {
		p = renamed.plan
	}
	return p
}

// collect returns all rows of a plan.
func collect(p plan) [][]any {
	if rows, ok := bare(p).(*rowsPlan); ok && rows.times == nil {
		return rows.rows
	}
	var out [][]any
	for row := range p.each {
		out = append(out, slices.Clone(row))
	}
	return out
}

// rowsPlan yields existing rows: those of a system view, or of an earlier step.
type rowsPlan struct {
	source
	rows  [][]any
	times []int64 // how often each row occurs; nil: once
	run   *run
}

func (p *rowsPlan) each(yield func([]any) bool) { singly(p, yield) }

func (p *rowsPlan) eachTimes(yield func([]any, int64) bool) {
	for i, row := range p.rows {
		p.run.check(i)
		times := int64(1)
		if p.times != nil {
			times = p.times[i]
		}
		if !yield(row, times) {
			return
		}
	}
}

// valuesPlan computes rows from lists of expressions.
type valuesPlan struct {
	source
	rows [][]scalar
	run  *run
}

func (p *valuesPlan) each(yield func([]any) bool) {
	for _, exprs := range p.rows {
		if !yield(evaluate(exprs, nil, make([]any, len(exprs)))) {
			return
		}
	}
}

// evaluate computes expressions into a row.
func evaluate(exprs []scalar, row, into []any) []any {
	for i := range exprs {
		into[i] = exprs[i].eval(row)
	}
	return into
}

// filterPlan keeps the rows for which a condition is true.
type filterPlan struct {
	step
	cond scalar
}

func (p *filterPlan) each(yield func([]any) bool) {
	for row := range p.input.each {
		if p.cond.eval(row) == true && !yield(row) {
			return
		}
	}
}

// projectPlan computes the columns of a select list.
type projectPlan struct {
	step
	exprs []scalar
}

func (p *projectPlan) each(yield func([]any) bool) {
	buffer := make([]any, len(p.exprs))
	for row := range p.input.each {
		if !yield(evaluate(p.exprs, row, buffer)) {
			return
		}
	}
}

// cutPlan keeps the first columns of its input: it drops hidden sort keys.
type cutPlan struct {
	step
	width int
}

func (p *cutPlan) columns() []column { return p.input.columns()[:p.width] }

func (p *cutPlan) each(yield func([]any) bool) {
	p.input.each(func(row []any) bool { return yield(row[:p.width]) })
}

// sortKey is one key of an order: a column of the input.
type sortKey struct {
	column int
	desc   bool
}

// sortPlan orders its input.
type sortPlan struct {
	step
	keys []sortKey
	run  *run
}

func (p *sortPlan) each(yield func([]any) bool) {
	(&rowsPlan{rows: sorted(collect(p.input), p.keys), run: p.run}).each(yield)
}

// sorted is a stable order of rows; rows that are already in order are not copied.
func sorted(rows [][]any, keys []sortKey) [][]any {
	less := func(a, b []any) bool { return compareRows(a, b, keys) < 0 }
	if sort.SliceIsSorted(rows, func(i, j int) bool { return less(rows[i], rows[j]) }) {
		return rows
	}
	rows = slices.Clone(rows)
	sort.SliceStable(rows, func(i, j int) bool { return less(rows[i], rows[j]) })
	return rows
}

func compareRows(a, b []any, keys []sortKey) int {
	for _, k := range keys {
		if c := compareValues(a[k.column], b[k.column]); c != 0 {
			if k.desc {
				return -c
			}
			return c
		}
	}
	return 0
}

// distinctPlan omits rows that occurred before.
type distinctPlan struct{ step }

func (p *distinctPlan) each(yield func([]any) bool) {
	seen := map[string]bool{}
	all := places(len(p.input.columns()))
	for row := range p.input.each {
		if key := rowKey(row, all); !seen[key] {
			seen[key] = true
			if !yield(row) {
				return
			}
		}
	}
}

func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// unionPlan is UNION ALL of inputs of one shape.
type unionPlan struct {
	pair
	cols []column
}

func (p *unionPlan) columns() []column { return p.cols }

func (p *unionPlan) each(yield func([]any) bool) {
	for _, side := range p.inputs() {
		for row := range side.each {
			if !yield(row) {
				return
			}
		}
	}
}

// limitPlan is TOP.
type limitPlan struct {
	step
	take scalar
}

func (p *limitPlan) each(yield func([]any) bool) {
	take, ok := p.take.eval(nil).(int64)
	if !ok || take < 0 {
		panic(tsql.Errorf(127, 0, "A TOP N or FETCH rowcount value may not be negative."))
	}
	if take == 0 {
		return
	}
	for row := range p.input.each {
		if take--; !yield(row) || take == 0 {
			return
		}
	}
}
