package sqlserver

import (
	"slices"
	"time"

	"vnuma.dev/lab/internal/tds"
)

// store has the rows of a table column by column. Once readers can see it, it never changes:
// with returns a longer one, and any other change of rows creates another.
type store struct {
	types []tds.Type
	cells []cells
	rows  int
	known answers
}

func newStore(columns []column) *store {
	s := &store{}
	for _, c := range columns {
		s.types = append(s.types, c.typ)
		s.cells = append(s.cells, newCells(c.typ))
	}
	return s
}

// add appends one row to a store that has no readers yet.
func (s *store) add(row []any) {
	for i, c := range s.cells {
		if !c.add(row[i]) {
			c.add(convert(row[i], s.types[i]))
		}
	}
	s.rows++
}

// with is this store with the rows of another of the same columns appended.
func (s *store) with(more *store) *store {
	if s.rows == 0 {
		return more
	}
	out := &store{types: s.types, rows: s.rows + more.rows, cells: make([]cells, len(s.cells))}
	for i, c := range s.cells {
		out.cells[i] = c.extended(more.cells[i])
	}
	return out
}

// read puts the values of one row into a slice.
func (s *store) read(row int, into []any) {
	for i, c := range s.cells {
		into[i] = c.value(row)
	}
}

// compare orders two rows by some of their columns, ascending.
func (s *store) compare(a, b int, places []int) int {
	for _, p := range places {
		if c := compareValues(s.cells[p].value(a), s.cells[p].value(b)); c != 0 {
			return c
		}
	}
	return 0
}

// inOrder is a store with the same rows in the order of some columns, if those up to `from` are; the first row whose values
// an earlier one has as well is a duplicate, -1 for none.
func (s *store) inOrder(places []int, from int) (sorted *store, duplicate int) {
	row := max(from, 1)
	for row < s.rows && s.compare(row-1, row, places) < 0 {
		row++
	}
	if row >= s.rows {
		return s, -1
	}
	order := make([]int32, s.rows)
	for n := range order {
		order[n] = int32(n)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return s.compare(int(a), int(b), places) })
	sorted = &store{types: s.types, rows: s.rows}
	for _, c := range s.cells {
		sorted.cells = append(sorted.cells, c.picked(order))
	}
	for n := 1; n < len(order); n++ {
		if sorted.compare(n-1, n, places) == 0 {
			return sorted, n
		}
	}
	return sorted, -1
}

// stored collects the rows of a plan in a store of its columns.
func stored(p plan, run *run) *store {
	out := newStore(p.columns())
	for row := range p.each {
		run.check(out.rows)
		out.add(row)
	}
	return out
}

// cells are the values of one column of a stored table, without an interface for each. Cells that a reader
// may have only grow, and only by extended, which does not change the reader's part.
type cells interface {
	add(v any) bool             // nil, or a value of the column's Go type; false for any other
	extended(by cells) cells    // with the values of a column of the same type appended
	picked(order []int32) cells // those at these positions
	value(row int) any
}

// newCells are empty cells for values of a type.
func newCells(t tds.Type) cells {
	switch t.Kind {
	case tds.KindBit:
		return &values[bool]{}
	case tds.KindMoney:
		return &values[tds.Money]{}
	case tds.KindDateTime, tds.KindDateTime2, tds.KindDate:
		return &values[time.Time]{}
	case tds.KindFloat:
		return &values[float64]{}
	case tds.KindNVarChar, tds.KindNChar, tds.KindXML:
		return &values[string]{}
	case tds.KindDecimal:
		return &values[tds.Decimal]{}
	case tds.KindUniqueIdentifier:
		return &values[[16]byte]{}
	case tds.KindVarBinary:
		return &values[[]byte]{}
	}
	return &values[int64]{}
}

// values are cells of one Go type.
type values[T any] struct {
	list  []T
	nulls []bool // ends with the last NULL, so a column without NULL has no marks
}

func (c *values[T]) add(v any) bool {
	value, ok := v.(T)
	if v == nil {
		c.nulls = append(append(c.nulls, make([]bool, len(c.list)-len(c.nulls))...), true)
	} else if !ok {
		return false
	}
	c.list = append(c.list, value)
	return true
}

func (c *values[T]) extended(by cells) cells {
	more, nulls := by.(*values[T]), c.nulls
	if len(more.nulls) > 0 {
		nulls = append(append(nulls, make([]bool, len(c.list)-len(nulls))...), more.nulls...)
	}
	return &values[T]{list: append(c.list, more.list...), nulls: nulls}
}

func (c *values[T]) picked(order []int32) cells {
	out := &values[T]{}
	for _, row := range order {
		out.add(c.value(int(row)))
	}
	return out
}

func (c *values[T]) value(row int) any {
	if row < len(c.nulls) && c.nulls[row] {
		return nil
	}
	return c.list[row]
}
