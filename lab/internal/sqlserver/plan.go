package sqlserver

import (
	"errors"
	"sort"
)

// plan is a compiled source of rows.
type plan interface {
	columns() []column
	// each yields one row after the other; a row may be overwritten after yield returns.
	// An error from yield ends the run.
	each(yield func(row []any) error) error
}

// errStop ends a plan early without being an error.
var errStop = errors.New("enough rows")

// stoppable turns errStop into success: the consumer of a plan needs no more.
func stoppable(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// collect returns all rows of a plan.
func collect(p plan) ([][]any, error) {
	switch p := p.(type) {
	case *rowsPlan:
		if p.times == nil {
			return p.rows, nil
		}
	case *renamedPlan:
		return collect(p.plan)
	}
	var out [][]any
	err := p.each(func(row []any) error {
		out = append(out, append([]any(nil), row...))
		return nil
	})
	return out, err
}

// rowsPlan yields existing rows: those of a system view, or of an earlier step.
type rowsPlan struct {
	cols  []column
	rows  [][]any
	times []int64 // how often each row occurs; nil: once
	run   *run
}

func (p *rowsPlan) columns() []column { return p.cols }

func (p *rowsPlan) each(yield func([]any) error) error { return singly(p, yield) }

func (p *rowsPlan) eachTimes(yield func([]any, int64) error) error {
	for i, row := range p.rows {
		if i&1023 == 1023 {
			if err := p.run.ended(); err != nil {
				return err
			}
		}
		times := int64(1)
		if p.times != nil {
			times = p.times[i]
		}
		if err := yield(row, times); err != nil {
			return err
		}
	}
	return nil
}

// valuesPlan computes rows from lists of expressions.
type valuesPlan struct {
	cols []column
	rows [][]scalar
	run  *run
}

func (p *valuesPlan) columns() []column { return p.cols }

func (p *valuesPlan) each(yield func([]any) error) error {
	for _, exprs := range p.rows {
		row, err := evaluate(exprs, nil, make([]any, len(exprs)))
		if err != nil {
			return err
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// evaluate computes expressions into a row.
func evaluate(exprs []scalar, row, into []any) ([]any, error) {
	for i := range exprs {
		v, err := exprs[i].eval(row)
		if err != nil {
			return nil, err
		}
		into[i] = v
	}
	return into, nil
}

// filterPlan keeps the rows for which a condition is true.
type filterPlan struct {
	input plan
	cond  scalar
	run   *run
}

func (p *filterPlan) columns() []column { return p.input.columns() }

func (p *filterPlan) each(yield func([]any) error) error {
	return p.input.each(func(row []any) error {
		v, err := p.cond.eval(row)
		if err != nil || v != true {
			return err
		}
		return yield(row)
	})
}

// projectPlan computes the columns of a select list.
type projectPlan struct {
	input plan
	exprs []scalar
	cols  []column
	run   *run
}

func (p *projectPlan) columns() []column { return p.cols }

func (p *projectPlan) each(yield func([]any) error) error {
	buffer := make([]any, len(p.exprs))
	return p.input.each(func(row []any) error {
		out, err := evaluate(p.exprs, row, buffer)
		if err != nil {
			return err
		}
		return yield(out)
	})
}

// cutPlan keeps the first columns of its input: it drops hidden sort keys.
type cutPlan struct {
	input plan
	width int
}

func (p *cutPlan) columns() []column { return p.input.columns()[:p.width] }

func (p *cutPlan) each(yield func([]any) error) error {
	return p.input.each(func(row []any) error { return yield(row[:p.width]) })
}

// sortKey is one key of an order: a column of the input.
type sortKey struct {
	column int
	desc   bool
}

// sortPlan orders its input.
type sortPlan struct {
	input plan
	keys  []sortKey
	run   *run
}

func (p *sortPlan) columns() []column { return p.input.columns() }

func (p *sortPlan) each(yield func([]any) error) error {
	rows, err := collect(p.input)
	if err != nil {
		return err
	}
	rows = sorted(rows, p.keys)
	return (&rowsPlan{rows: rows, run: p.run}).each(yield)
}

// sorted is a stable order of rows; rows that are already in order are not copied.
func sorted(rows [][]any, keys []sortKey) [][]any {
	less := func(a, b []any) bool { return compareRows(a, b, keys) < 0 }
	if sort.SliceIsSorted(rows, func(i, j int) bool { return less(rows[i], rows[j]) }) {
		return rows
	}
	rows = append([][]any(nil), rows...)
	sort.SliceStable(rows, func(i, j int) bool { return less(rows[i], rows[j]) })
	return rows
}

func compareRows(a, b []any, keys []sortKey) int {
	for _, k := range keys {
		c := compareValues(a[k.column], b[k.column])
		if c != 0 {
			if k.desc {
				return -c
			}
			return c
		}
	}
	return 0
}

// distinctPlan omits rows that occurred before.
type distinctPlan struct{ input plan }

func (p *distinctPlan) columns() []column { return p.input.columns() }

func (p *distinctPlan) each(yield func([]any) error) error {
	seen := map[string]bool{}
	all := places(len(p.input.columns()))
	return p.input.each(func(row []any) error {
		key := rowKey(row, all)
		if seen[key] {
			return nil
		}
		seen[key] = true
		return yield(row)
	})
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
	left, right plan
	cols        []column
}

func (p *unionPlan) columns() []column { return p.cols }

func (p *unionPlan) each(yield func([]any) error) error {
	if err := p.left.each(yield); err != nil {
		return err
	}
	return p.right.each(yield)
}
