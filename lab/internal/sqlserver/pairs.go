package sqlserver

import (
	"math/bits"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// An aggregate over a cross join of 3000 x 3000 rows reads 9 million pairs. The two that vnuma uses are computed from the
// two sides without building a row: the number of pairs, and the sum of a checksum over columns.

// summedChecksum is SUM(CAST(CHECKSUM(columns) AS bigint)), or the same of BINARY_CHECKSUM.
type summedChecksum struct {
	places []int
	folded bool // CHECKSUM, which ignores case
}

// checksummed parses an aggregate's call; nil if it is anything else.
func (a *aggregate) checksummed() *summedChecksum {
	cast, ok := a.call.Args[0].(*tsql.Cast)
	if !ok || a.name != "sum" || a.typ.Kind != tds.KindInt64 {
		return nil
	}
	call, ok := cast.X.(*tsql.Call)
	if !ok || call.Star {
		return nil
	}
	name := fold(call.Name.Object())
	if name != "checksum" && name != "binary_checksum" {
		return nil
	}
	out := &summedChecksum{folded: name == "checksum"}
	for _, arg := range call.Args {
		ref, ok := arg.(*tsql.ColumnRef)
		if !ok {
			return nil
		}
		place, err := a.at.scope.find(ref)
		if err != nil || place < 0 {
			return nil
		}
		out.places = append(out.places, place)
	}
	return out
}

// shift is by how much the checksum of the column at a position of the list is rotated.
func (c *summedChecksum) shift(at int) int { return 4 * (len(c.places) - 1 - at) }

// overProduct computes aggregates over a cross product without building its rows; ok is false if the query does not have
// that form, or needs the rows themselves.
func (p *aggregatePlan) overProduct() (row []any, ok bool, err error) {
	cross := productOf(p.input)
	if cross == nil || p.grouped {
		return nil, false, nil
	}
	asked := make([]*summedChecksum, len(p.aggregates))
	for i, a := range p.aggregates {
		if a.arg == nil {
			continue
		}
		if asked[i] = a.checksummed(); asked[i] == nil {
			return nil, false, nil
		}
	}
	left, right, err := cross.sides()
	if err != nil {
		return nil, false, err
	}
	n := int64(len(left)) * int64(len(right))
	for _, c := range asked {
		switch {
		case c == nil:
			row = append(row, n)
		case n == 0:
			row = append(row, nil)
		default:
			width := len(left[0])
			row = append(row, sumOfXor(c.ofRows(left, 0, width), c.ofRows(right, width, width+len(right[0]))))
		}
	}
	return row, true, p.run.ended()
}

// ofRows is each row's part of the checksum of a pair: that of its own columns, from one position
// up to another, exclusive.
func (c *summedChecksum) ofRows(rows [][]any, from, to int) []uint32 {
	sums := make([]uint32, len(rows))
	for i, row := range rows {
		for k, place := range c.places {
			if from <= place && place < to {
				sums[i] ^= bits.RotateLeft32(checksumOf(row[place-from], c.folded), c.shift(k))
			}
		}
	}
	return sums
}

// sumOfXor is the sum of l ^ r as int32 over all pairs.
func sumOfXor(left, right []uint32) (sum int64) {
	for _, l := range left {
		for _, r := range right {
			sum += int64(int32(l ^ r))
		}
	}
	return sum
}

// productOf is the cross product that a plan is, possibly under other names.
func productOf(p plan) *crossPlan {
	switch p := p.(type) {
	case *crossPlan:
		return p
	case *renamedPlan:
		return productOf(p.plan)
	}
	return nil
}
