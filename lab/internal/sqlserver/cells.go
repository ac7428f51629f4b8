package sqlserver

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"math/bits"
	"slices"

	"vnuma.dev/lab/internal/tds"
)

// cells are the values of one column of a stored table, without a Go value for each. Cells that a reader
// may have only grow, and only by extended, which does not change the reader's part.
type cells interface {
	add(v any) error               // nil, or a value of the column's type
	copyFrom(other cells, row int) // adds a value of a column of the same type
	extended(by cells) cells       // with the values of a column of the same type appended
	clipped() cells                // the same values; extending them allocates new memory
	value(row int) any
	compare(a, b int) int
	checksums(into []uint32, rotated int, ignoreCase bool) // combines checksumOf of every value into sums
}

// errOtherType means that a value does not have the Go type or the range of its column.
var errOtherType = errors.New("a value of another type than its column")

// newCells are empty cells for values of a type.
func newCells(t tds.Type) cells {
	switch t.Kind {
	case tds.KindInt8, tds.KindInt16, tds.KindInt32:
		return &numbers[int32]{codec: integerCodec(t.Kind)}
	case tds.KindBit:
		return &numbers[int32]{codec: bitCodec}
	case tds.KindMoney:
		return &numbers[int64]{codec: moneyCodec}
	case tds.KindDateTime, tds.KindDateTime2, tds.KindDate:
		return &numbers[int64]{codec: timeCodec}
	case tds.KindFloat:
		return &numbers[int64]{codec: floatCodec}
	case tds.KindNVarChar, tds.KindNChar, tds.KindXML:
		return &packed{codec: textCodec}
	case tds.KindDecimal:
		return &packed{codec: decimalCodec(t.Scale)}
	case tds.KindUniqueIdentifier:
		return &packed{codec: guidCodec}
	case tds.KindVarBinary:
		return &packed{codec: binaryCodec}
	}
	return &numbers[int64]{codec: integerCodec(t.Kind)}
}

// nulls marks the rows that are NULL. It ends with the last of them, so a column without NULL has no marks.
type nulls []bool

func (n nulls) at(row int) bool { return row < len(n) && n[row] }

// before is the marks of so many rows, followed by those of more rows.
func (n nulls) before(rows int, more ...bool) nulls {
	if len(more) == 0 {
		return n
	}
	return append(append(n, make(nulls, rows-len(n))...), more...)
}

// numbers are cells that are stored as a whole number.
type numbers[T int32 | int64] struct {
	codec *numberCodec
	list  []T
	nulls nulls
}

// numberCodec maps values to numbers in the same order, and back.
type numberCodec struct {
	encode   func(any) (int64, bool)
	decode   func(int64) any
	checksum func(int64) uint32
}

func (c *numbers[T]) add(v any) error {
	var n int64
	if v != nil {
		var ok bool
		if n, ok = c.codec.encode(v); !ok {
			return errOtherType
		}
	}
	if v == nil {
		c.nulls = c.nulls.before(len(c.list), true)
	}
	c.list = append(c.list, T(n))
	return nil
}

func (c *numbers[T]) copyFrom(other cells, row int) {
	from := other.(*numbers[T])
	if from.nulls.at(row) {
		c.nulls = c.nulls.before(len(c.list), true)
	}
	c.list = append(c.list, from.list[row])
}

func (c *numbers[T]) extended(by cells) cells {
	more := by.(*numbers[T])
	return &numbers[T]{codec: c.codec, list: append(c.list, more.list...), nulls: c.nulls.before(len(c.list), more.nulls...)}
}

func (c *numbers[T]) clipped() cells {
	return &numbers[T]{codec: c.codec, list: slices.Clip(c.list), nulls: slices.Clip(c.nulls)}
}

func (c *numbers[T]) value(row int) any {
	if c.nulls.at(row) {
		return nil
	}
	return c.codec.decode(int64(c.list[row]))
}

func (c *numbers[T]) compare(a, b int) int {
	if x, y := c.nulls.at(a), c.nulls.at(b); x || y {
		return cmp.Compare(boolInt(!x), boolInt(!y))
	}
	return cmp.Compare(c.list[a], c.list[b])
}

func (c *numbers[T]) checksums(into []uint32, rotated int, _ bool) {
	absent := bits.RotateLeft32(checksumOfNull, rotated)
	for i, n := range c.list {
		if c.nulls.at(i) {
			into[i] ^= absent
			continue
		}
		into[i] ^= bits.RotateLeft32(c.codec.checksum(int64(n)), rotated)
	}
}

// packed are cells of varying lengths. A value equal to the previous one shares its bytes.
type packed struct {
	codec *packedCodec
	bytes []byte
	spans []span
	nulls nulls
}

// span is the position of one value's bytes.
type span struct{ start, end uint32 }

// packedCodec converts values to bytes and back.
type packedCodec struct {
	encode   func(dst []byte, v any) ([]byte, bool)
	decode   func([]byte) any
	checksum func(b []byte, ignoreCase bool) uint32
}

// errTooLarge means that a column exceeds what the lab can store.
var errTooLarge = errors.New("a column of more than 4 GB")

func (c *packed) add(v any) error {
	start := len(c.bytes)
	if v != nil {
		longer, ok := c.codec.encode(c.bytes, v)
		switch {
		case !ok:
			return errOtherType
		case len(longer) > math.MaxUint32:
			return errTooLarge
		}
		c.bytes = longer
	}
	if v == nil {
		c.nulls = c.nulls.before(len(c.spans), true)
	}
	c.keep(start)
	return nil
}

// keep makes the bytes from start on the next value.
func (c *packed) keep(start int) {
	if n := len(c.spans); n > 0 {
		last := c.spans[n-1]
		if bytes.Equal(c.bytes[last.start:last.end], c.bytes[start:]) {
			c.bytes = c.bytes[:start]
			c.spans = append(c.spans, last)
			return
		}
	}
	c.spans = append(c.spans, span{uint32(start), uint32(len(c.bytes))})
}

func (c *packed) at(row int) []byte { return c.bytes[c.spans[row].start:c.spans[row].end] }

func (c *packed) copyFrom(other cells, row int) {
	from, start := other.(*packed), len(c.bytes)
	if from.nulls.at(row) {
		c.nulls = c.nulls.before(len(c.spans), true)
	}
	c.bytes = append(c.bytes, from.at(row)...)
	c.keep(start)
}

func (c *packed) extended(by cells) cells {
	more := by.(*packed)
	out := &packed{codec: c.codec, bytes: append(c.bytes, more.bytes...), spans: c.spans,
		nulls: c.nulls.before(len(c.spans), more.nulls...)}
	behind := uint32(len(c.bytes))
	for _, s := range more.spans {
		out.spans = append(out.spans, span{behind + s.start, behind + s.end})
	}
	return out
}

func (c *packed) clipped() cells {
	return &packed{codec: c.codec, bytes: slices.Clip(c.bytes), spans: slices.Clip(c.spans), nulls: slices.Clip(c.nulls)}
}

func (c *packed) value(row int) any {
	if c.nulls.at(row) {
		return nil
	}
	return c.codec.decode(c.at(row))
}

func (c *packed) compare(a, b int) int { return compareValues(c.value(a), c.value(b)) }

func (c *packed) checksums(into []uint32, rotated int, ignoreCase bool) {
	var last span
	var sum uint32
	for i, s := range c.spans {
		switch {
		case c.nulls.at(i):
			into[i] ^= bits.RotateLeft32(checksumOfNull, rotated)
			continue
		case i == 0 || s != last || c.nulls.at(i-1):
			sum = c.codec.checksum(c.at(i), ignoreCase)
		}
		last = s
		into[i] ^= bits.RotateLeft32(sum, rotated)
	}
}
