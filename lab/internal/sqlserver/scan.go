package sqlserver

import (
	"sort"

	"vnuma.dev/lab/internal/tsql"
)

// scanPlan reads a table as it was when the statement was compiled.
type scanPlan struct {
	cols  []column
	table *table // for its names and keys; rows are the snapshot
	rows  *store
	index *uniqueKey // read in the order of this key
	order *keyOrder
	seek  *seek // reads only these rows
	run   *run
}

func (p *scanPlan) columns() []column { return p.cols }

func (p *scanPlan) each(yield func([]any) error) error {
	buffer := make([]any, len(p.cols))
	from, to, order := 0, p.rows.rows, p.order
	if p.seek != nil {
		var err error
		if from, to, err = p.seek.rows(p.rows, p.run); err != nil {
			return err
		}
		order = p.seek.order
	}
	for place := from; place < to; place++ {
		if place&1023 == 1023 {
			if err := p.run.ended(); err != nil {
				return err
			}
		}
		row := place
		if order != nil {
			row = order.at(place)
		}
		p.rows.read(row, buffer)
		if err := yield(buffer); err != nil {
			return err
		}
	}
	return nil
}

// scanOf is the table that a plan reads, possibly under other names.
func scanOf(p plan) *scanPlan {
	switch p := p.(type) {
	case *scanPlan:
		return p
	case *renamedPlan:
		return scanOf(p.plan)
	}
	return nil
}

// readInOrder makes the scan below a SELECT yield its rows in the wanted order, if a key has that order:
// TOP then reads no more rows than it needs. The caller holds Instance.mu.
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
	if scan.index = scan.table.ordered(columns); scan.index == nil {
		return false
	}
	scan.order = scan.index.inOrder(scan.rows)
	return true
}

// seek limits a scan to the rows whose key may be the value in WHERE. The filter above still decides.
type seek struct {
	order *keyOrder
	place int // column of the key
	value scalar
}

// seekKey lets a scan below `WHERE key = value` read only the rows of that key, for a variable or literal, and
// an integer key of one column that the table is ordered by. The caller holds Instance.mu.
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
	place, err := b.at.scope.find(ref)
	if err != nil || place < 0 || !isInteger(scan.cols[place].typ.Kind) {
		return
	}
	key := scan.table.ordered([]int{place})
	value, err := b.at.expr(equal.R)
	if key == nil || len(key.places) != 1 || err != nil || !isInteger(value.typ.Kind) {
		return
	}
	scan.seek = &seek{order: key.inOrder(scan.rows), place: place, value: value}
}

func variableOrLiteral(x tsql.Expr) bool {
	switch x.(type) {
	case *tsql.VarRef, *tsql.NumberLit:
		return true
	}
	return false
}

// rows are the positions in the key's order that have the value: from one up to the other, exclusive.
func (k *seek) rows(s *store, r *run) (from, to int, err error) {
	v, err := k.value.eval(nil)
	wanted, ok := v.(int64)
	if err != nil || !ok { // NULL equals nothing
		return 0, 0, err
	}
	at := func(place int) int64 {
		n, _ := s.cells[k.place].value(k.order.at(place)).(int64)
		return n
	}
	from = sort.Search(s.rows, func(place int) bool { return at(place) >= wanted })
	to = from
	for to < s.rows && at(to) == wanted {
		to++
	}
	return from, to, nil
}
