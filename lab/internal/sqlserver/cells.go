package sqlserver

import (
	"errors"
	"slices"
	"time"

	"vnuma.dev/lab/internal/tds"
)

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
