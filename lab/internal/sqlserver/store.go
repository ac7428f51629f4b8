package sqlserver

import (
	"errors"
	"sync"

	"vnuma.dev/lab/internal/tds"
)

// store has the rows of a table column by column. Once readers can see it, it never changes:
// with returns a longer one, and any other change of rows creates another.
type store struct {
	types []tds.Type
	cells []cells
	rows  int

	joins  sync.Mutex // guards chains
	chains *chains
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
func (s *store) add(row []any) error {
	for i, c := range s.cells {
		err := c.add(row[i])
		if errors.Is(err, errOtherType) {
			var v any
			if v, err = convert(row[i], s.types[i]); err == nil {
				err = c.add(v)
			}
		}
		if err != nil {
			return err
		}
	}
	s.rows++
	return nil
}

// copyFrom appends one row of a store of the same columns to a store that has no readers yet.
func (s *store) copyFrom(other *store, row int) {
	for i, c := range s.cells {
		c.copyFrom(other.cells[i], row)
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

// clipped is a store with the same rows whose extension does not touch the memory behind them.
func (s *store) clipped() *store {
	out := &store{types: s.types, rows: s.rows, cells: make([]cells, len(s.cells))}
	for i, c := range s.cells {
		out.cells[i] = c.clipped()
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

// stored collects the rows of a plan in a store of its columns.
func stored(p plan, run *run) (*store, error) {
	out := newStore(p.columns())
	err := p.each(func(row []any) error {
		if out.rows&1023 == 1023 {
			if err := run.ended(); err != nil {
				return err
			}
		}
		return out.add(row)
	})
	return out, err
}
