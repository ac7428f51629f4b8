package sqlserver

import (
	"fmt"
	"math/bits"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// accumulator aggregates the values of one group.
type accumulator interface {
	add(v any, times int64) error // a value that occurs so often; NULL only for COUNT(*)
	result() any
}

// aggregate is a compiled aggregate function.
type aggregate struct {
	name     string
	arg      *scalar // nil for COUNT(*)
	call     *tsql.Call
	at       *compiler // resolves the names in the call
	typ      tds.Type
	nullable bool
	fresh    func() accumulator
}

// aggregates are the known functions: each gives the result type and a maker of accumulators.
var aggregates = map[string]func(arg tds.Type) (tds.Type, func() accumulator, error){
	"count":     func(tds.Type) (tds.Type, func() accumulator, error) { return typeInt, newCounter, nil },
	"count_big": func(tds.Type) (tds.Type, func() accumulator, error) { return typeBigInt, newCounter, nil },
	"sum":       sumOf, "min": extremeOf(-1), "max": extremeOf(1),
}

type counter struct{ n int64 }

func newCounter() accumulator { return &counter{} }

func (c *counter) add(_ any, times int64) error { c.n += times; return nil }
func (c *counter) result() any                  { return c.n }

// total is a sum of whole numbers.
type total struct {
	typ   tds.Type
	n     int64
	added bool
}

func (t *total) add(v any, times int64) error {
	product, err := integerArithmetic("*", v.(int64), times, typeBigInt)
	if err != nil {
		return err
	}
	t.added = true
	t.n, err = integerArithmetic("+", t.n, product, t.typ)
	return err
}

func (t *total) result() any {
	if !t.added {
		return nil
	}
	return t.n
}

func sumOf(arg tds.Type) (tds.Type, func() accumulator, error) {
	if arg.Kind == tds.KindBit || !isInteger(arg.Kind) {
		return arg, nil, tsql.Unmodelled(0, "SUM of %s", typeName(arg))
	}
	typ := typeInt
	if arg.Kind == tds.KindInt64 {
		typ = typeBigInt
	}
	return typ, func() accumulator { return &total{typ: typ} }, nil
}

type extreme struct {
	sign int
	best any
}

func (e *extreme) add(v any, _ int64) error {
	if e.best == nil || compareValues(v, e.best)*e.sign > 0 {
		e.best = v
	}
	return nil
}

func (e *extreme) result() any { return e.best }

func extremeOf(sign int) func(tds.Type) (tds.Type, func() accumulator, error) {
	return func(arg tds.Type) (tds.Type, func() accumulator, error) {
		return arg, func() accumulator { return &extreme{sign: sign} }, nil
	}
}

// aggregate compiles a call of an aggregate function.
func (c *compiler) aggregate(call *tsql.Call) (*aggregate, error) {
	name := fold(call.Name.Object())
	a := &aggregate{name: name, call: call, at: c, nullable: !strings.HasPrefix(name, "count")}
	if call.Star != (len(call.Args) == 0) || call.Star && a.nullable || !call.Star && len(call.Args) != 1 {
		return nil, tsql.Errorf(174, call.Name.Line, "The %s function requires 1 argument(s).", call.Name.Object())
	}
	argType := typeInt
	if !call.Star {
		arg, err := c.expr(call.Args[0])
		if err != nil {
			return nil, err
		}
		a.arg, argType = &arg, arg.typ
	}
	var err error
	a.typ, a.fresh, err = aggregates[name](argType)
	return a, err
}

// feed passes one row to the accumulator, as often as it occurs.
func (a *aggregate) feed(acc accumulator, row []any, times int64) error {
	if a.arg == nil {
		return acc.add(nil, times)
	}
	v, err := a.arg.eval(row)
	if err != nil || v == nil {
		return err
	}
	return acc.add(v, times)
}

// aggregatePlan groups its input; without GROUP BY there is one group, even of nothing.
type aggregatePlan struct {
	input      plan
	keys       []scalar
	aggregates []*aggregate
	cols       []column
	grouped    bool
	run        *run
}

type group struct {
	keys []any
	accs []accumulator
}

func (p *aggregatePlan) columns() []column { return p.cols }

func (p *aggregatePlan) newGroup(keys []any) *group {
	g := &group{keys: keys}
	for _, a := range p.aggregates {
		g.accs = append(g.accs, a.fresh())
	}
	return g
}

func (p *aggregatePlan) each(yield func([]any) error) error {
	row, ok, err := p.overProduct()
	if !ok && err == nil {
		row, ok, err = p.overScan()
	}
	if !ok && err == nil {
		row, ok = p.overCounted()
	}
	switch {
	case err != nil:
		return err
	case ok:
		return yield(row)
	}
	groups, err := p.gather()
	if err != nil {
		return err
	}
	for _, g := range groups {
		row := append([]any(nil), g.keys...)
		for _, acc := range g.accs {
			row = append(row, acc.result())
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// gather reads the input; groups keep the order in which they first occurred.
func (p *aggregatePlan) gather() ([]*group, error) {
	var order []*group
	if !p.grouped {
		order = []*group{p.newGroup(nil)}
	}
	groups := map[string]*group{}
	all := places(len(p.keys))
	n := 0
	err := eachTimes(p.input, func(row []any, times int64) error {
		if n++; n&4095 == 0 {
			if err := p.run.ended(); err != nil {
				return err
			}
		}
		g := (*group)(nil)
		if !p.grouped {
			g = order[0]
		} else {
			keys, err := evaluate(p.keys, row, make([]any, len(p.keys)))
			if err != nil {
				return err
			}
			id := rowKey(keys, all)
			if g = groups[id]; g == nil {
				g = p.newGroup(keys)
				groups[id] = g
				order = append(order, g)
			}
		}
		for i, a := range p.aggregates {
			if err := a.feed(g.accs[i], row, times); err != nil {
				return err
			}
		}
		return nil
	})
	return order, err
}

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

// summed computes aggregates from a number of rows and their checksums; ok is false if one of them needs the rows
// themselves.
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

// overProduct computes aggregates over a cross product without building its rows.
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

// overScan is the same over a whole table.
func (p *aggregatePlan) overScan() (row []any, ok bool, err error) {
	scan := scanOf(p.input)
	if scan == nil || p.grouped {
		return nil, false, nil
	}
	return p.summed(func() (int64, error) { return int64(scan.rows.rows), nil }, scan.rows.checksum)
}

// checksum is the sum of the rows' checksums. Stores never change: each sum is computed once.
func (s *store) checksum(c *summedChecksum) (sum int64) {
	s.joins.Lock()
	defer s.joins.Unlock()
	key := fmt.Sprint(*c)
	if known, ok := s.sums[key]; ok {
		return known
	}
	for row := range s.rows {
		var one uint32
		for _, place := range c.places {
			one = foldChecksum(one, checksumOf(s.cells[place].value(row), c.folded))
		}
		sum += int64(int32(one))
	}
	if s.sums == nil {
		s.sums = map[string]int64{}
	}
	s.sums[key] = sum
	return sum
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
