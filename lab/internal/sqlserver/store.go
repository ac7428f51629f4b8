package sqlserver

import (
	"errors"
	"slices"
	"sync"
	"time"

	"vnuma.dev/lab/internal/tds"
)

// store has the rows of a table column by column. Once readers can see it, it never changes:
// with returns a longer one, and any other change of rows creates another.
type store struct {
	types []tds.Type
	cells []cells
	rows  int

	joins  sync.Mutex // guards what readers compute once
	chains *chains
	sums   map[string]int64 // of checksums
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

// cells are the values of one column of a stored table, without an interface for each. Cells that a reader
// may have only grow, and only by extended, which does not change the reader's part.
type cells interface {
	add(v any) error               // nil, or a value of the column's type
	copyFrom(other cells, row int) // adds a value of a column of the same type
	extended(by cells) cells       // with the values of a column of the same type appended
	clipped() cells                // the same values; extending them allocates new memory
	value(row int) any
}

// errOtherType means that a value does not have the Go type or the range of its column.
var errOtherType = errors.New("a value of another type than its column")

// newCells are empty cells for values of a type.
func newCells(t tds.Type) cells {
	switch t.Kind {
	case tds.KindInt8, tds.KindInt16, tds.KindInt32:
		least, most := rangeOf(t.Kind)
		return &values[int32]{codec: codec[int32]{
			encode: func(v any) (int32, bool) {
				n, ok := v.(int64)
				return int32(n), ok && least <= n && n <= most
			},
			decode: func(n int32) any { return int64(n) },
		}}
	case tds.KindBit:
		return asTheyAre[bool]()
	case tds.KindMoney:
		return asTheyAre[tds.Money]()
	case tds.KindDateTime, tds.KindDateTime2, tds.KindDate:
		return asTheyAre[time.Time]()
	case tds.KindFloat:
		return asTheyAre[float64]()
	case tds.KindNVarChar, tds.KindNChar, tds.KindXML:
		return asTheyAre[string]()
	case tds.KindDecimal:
		exact := asTheyAre[tds.Decimal]()
		exact.codec.encode = func(v any) (tds.Decimal, bool) {
			d, ok := v.(tds.Decimal)
			return d, ok && d.Scale == t.Scale
		}
		return exact
	case tds.KindUniqueIdentifier:
		return asTheyAre[[16]byte]()
	case tds.KindVarBinary:
		return &values[string]{codec: codec[string]{
			encode: func(v any) (string, bool) {
				b, ok := v.([]byte)
				return string(b), ok
			},
			decode: func(s string) any { return []byte(s) },
		}}
	}
	return asTheyAre[int64]()
}

// codec converts values to their stored form and back.
type codec[T any] struct {
	encode func(any) (T, bool)
	decode func(T) any
}

// asTheyAre are cells for values that are stored as they are.
func asTheyAre[T comparable]() *values[T] {
	return &values[T]{codec: codec[T]{
		encode: func(v any) (T, bool) {
			same, ok := v.(T)
			return same, ok
		},
		decode: func(v T) any { return v },
	}}
}

// values are cells in their stored form. A text equal to the previous one shares its bytes.
type values[T comparable] struct {
	codec codec[T]
	list  []T
	nulls []bool // ends with the last NULL, so a column without NULL has no marks
}

func (c *values[T]) isNull(row int) bool { return row < len(c.nulls) && c.nulls[row] }

func (c *values[T]) add(v any) error {
	var stored T
	if v == nil {
		c.nulls = append(append(c.nulls, make([]bool, len(c.list)-len(c.nulls))...), true)
	} else {
		var ok bool
		if stored, ok = c.codec.encode(v); !ok {
			return errOtherType
		}
		if n := len(c.list); n > 0 && c.list[n-1] == stored {
			stored = c.list[n-1]
		}
	}
	c.list = append(c.list, stored)
	return nil
}

func (c *values[T]) copyFrom(other cells, row int) {
	from := other.(*values[T])
	if from.isNull(row) {
		_ = c.add(nil)
		return
	}
	c.list = append(c.list, from.list[row])
}

func (c *values[T]) extended(by cells) cells {
	more, nulls := by.(*values[T]), c.nulls
	if len(more.nulls) > 0 {
		nulls = append(append(nulls, make([]bool, len(c.list)-len(nulls))...), more.nulls...)
	}
	return &values[T]{codec: c.codec, list: append(c.list, more.list...), nulls: nulls}
}

func (c *values[T]) clipped() cells {
	return &values[T]{codec: c.codec, list: slices.Clip(c.list), nulls: slices.Clip(c.nulls)}
}

func (c *values[T]) value(row int) any {
	if c.isNull(row) {
		return nil
	}
	return c.codec.decode(c.list[row])
}
