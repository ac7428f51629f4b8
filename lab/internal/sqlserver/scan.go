package sqlserver

import (
	"sort"

	"vnuma.dev/lab/internal/tsql"
)

// scanPlan reads a table as it was when the statement was compiled.
type scanPlan struct {
	source
	table    *table // for its names and keys; rows are the snapshot
	rows     *store
	from, to int        // the rows that are read
	index    *uniqueKey // read in the order of this key
	run      *run
}

func (p *scanPlan) each(yield func([]any) bool) {
	buffer := make([]any, len(p.cols))
	for row := p.from; row < p.to; row++ {
		p.run.check(row)
		p.rows.read(row, buffer)
		if !yield(buffer) {
			return
		}
	}
}

// scanOf is the table that a plan reads, possibly under other names.
func scanOf(p plan) *scanPlan {
	scan, _ := bare(p).(*scanPlan)
	return scan
}

// readInOrder reports whether the scan below a SELECT yields its rows in the wanted order: TOP then reads no more rows
// than it needs. The caller holds Instance.mu.
func (b *block) readInOrder() bool {
	input := b.input
	if filter, ok := input.(*filterPlan); ok {
		input = filter.input
	}
	scan := scanOf(input)
	if scan == nil || b.sel.Distinct {
		return false
	}
	columns := make([]int, len(b.keys))
	for i, key := range b.keys {
		if columns[i] = b.exprs[key.column].ref - 1; columns[i] < 0 || key.desc {
			return false
		}
	}
	scan.index = scan.table.ordered(columns)
	return scan.index != nil
}

// seekKey lets a scan below `WHERE key = value` read only the rows of that key, for a variable or literal, and
// an integer key of one column that the table is ordered by. The filter above still decides. The caller holds Instance.mu.
func (b *block) seekKey() {
	equal, ok := b.sel.Where.(*tsql.Compare)
	scan := scanOf(b.input)
	if !ok || equal.Op != "=" || scan == nil {
		return
	}
	ref, ok := equal.L.(*tsql.ColumnRef)
	if !ok || !variableOrLiteral(equal.R) {
		return
	}
	place := b.at.scope.find(ref)
	if place < 0 || !isInteger(scan.cols[place].typ.Kind) || scan.table.ordered([]int{place}) == nil {
		return
	}
	value := b.at.expr(equal.R)
	if !isInteger(value.typ.Kind) {
		return
	}
	wanted := value.eval(nil)
	first := func(after int) int {
		return sort.Search(scan.to, func(row int) bool { return compareValues(scan.rows.cells[place].value(row), wanted) >= after })
	}
	scan.from, scan.to = first(0), first(1)
}

func variableOrLiteral(x tsql.Expr) bool {
	switch x.(type) {
	case *tsql.VarRef, *tsql.NumberLit:
		return true
	}
	return false
}
