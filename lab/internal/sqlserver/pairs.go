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
	if !ok || a.name != "sum" || a.distinct || a.typ.Kind != tds.KindInt64 {
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

// summed computes aggregates from a number of rows and their checksums; ok is false if any of them
// needs the rows themselves.
func (p *aggregatePlan) summed(rows func() (int64, error), sum func(*summedChecksum) int64) (row []any, ok bool, err error) {
	asked := make([]*summedChecksum, len(p.aggregates))
	for i, a := range p.aggregates {
		if a.arg == nil {
			continue
		}
		if asked[i] = a.checksummed(); asked[i] == nil {
			return nil, false, nil
		}
	}
	n, err := rows()
	if err != nil {
		return nil, false, err
	}
	for _, c := range asked {
		switch {
		case c == nil:
			row = append(row, n)
		case n == 0:
			row = append(row, nil)
		default:
			row = append(row, sum(c))
		}
	}
	return row, true, p.run.ended()
}

// overProduct computes the aggregates over a cross product without building its rows; ok is false if
// the query does not have that form.
func (p *aggregatePlan) overProduct() (row []any, ok bool, err error) {
	cross := productOf(p.input)
	if cross == nil || p.grouped {
		return nil, false, nil
	}
	var left, right [][]any
	count := func() (int64, error) {
		left, right, err = cross.sides()
		return int64(len(left)) * int64(len(right)), err
	}
	return p.summed(count, func(c *summedChecksum) int64 {
		width := len(left[0])
		return sumOfXor(c.ofRows(left, 0, width), c.ofRows(right, width, width+len(right[0])))
	})
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

// overScan is the same over a whole table.
func (p *aggregatePlan) overScan() (row []any, ok bool, err error) {
	scan := scanOf(p.input)
	if scan == nil || p.grouped {
		return nil, false, nil
	}
	count := func() (int64, error) { return int64(scan.rows.rows), nil }
	return p.summed(count, func(c *summedChecksum) int64 {
		sums := make([]uint32, scan.rows.rows)
		for k, place := range c.places {
			scan.rows.cells[place].checksums(sums, c.shift(k), c.folded)
		}
		return sumOfXor(sums, []uint32{0})
	})
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
