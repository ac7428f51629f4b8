package sqlserver

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

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

// checksummed is CHECKSUM of columns, which ignores case, or BINARY_CHECKSUM.
type checksummed struct {
	places     []int
	ignoreCase bool
}

// overProduct computes aggregates over a cross product without building its rows; ok is false if one of them needs them.
func (p *aggregatePlan) overProduct() (row []any, ok bool, err error) {
	cross := productOf(p.input)
	other := func(a *aggregate) bool { return a.arg != nil && (a.name != "sum" || a.arg.checksum == nil) }
	if cross == nil || p.grouped || slices.ContainsFunc(p.aggregates, other) {
		return nil, false, nil
	}
	left, right, err := cross.sides()
	if err != nil {
		return nil, false, err
	}
	width := len(cross.left.columns())
	pairs := int64(len(left)) * int64(len(right))
	for _, a := range p.aggregates {
		switch {
		case a.arg == nil:
			row = append(row, pairs)
		case pairs == 0:
			row = append(row, nil)
		default:
			row = append(row, sumOfXor(a.arg.checksum.ofRows(left, 0, width), a.arg.checksum.ofRows(right, width, len(cross.columns()))))
		}
	}
	return row, true, p.run.ended()
}

// ofRows is each row's part of the checksum of a pair: that of its own columns, from one position
// up to another, exclusive.
func (c *checksummed) ofRows(rows [][]any, from, to int) []uint32 {
	sums := make([]uint32, len(rows))
	for i, row := range rows {
		for k, place := range c.places {
			if from <= place && place < to {
				sums[i] ^= bits.RotateLeft32(checksumOf(row[place-from], c.ignoreCase), 4*(len(c.places)-1-k))
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

// answers are what statements that aggregate stored tables have given, by their text and the stores that they read: stores
// never change.
type answers struct{ sync.Map }

type answer struct {
	rows   func() ([][]any, error)
	stores []*store // whose addresses are in the key
}

// answerPlan gives what the first statement like it has computed.
type answerPlan struct {
	plan
	key string
	run *run
}

// answered is the same plan if it is not an aggregate that depends on stored rows alone.
func answered(q *tsql.Query, p plan, r *run) plan {
	if cross, _ := storedProduct(p); cross != nil || len(r.use.stores) == 0 || r.use.volatile || !readsWhole(p) {
		return p
	}
	return &answerPlan{plan: p, key: fmt.Sprint(r.use.stores, tsql.Format(q)), run: r}
}

func (p *answerPlan) each(yield func([]any) error) error {
	for {
		rows, err := p.rows()
		ended := p.run.ended()
		switch {
		case err == nil:
			return (&rowsPlan{rows: rows, run: p.run}).each(yield)
		case ended != nil || !errors.Is(err, errEnded): // otherwise another client, that computed it, has ended
			return cmp.Or(ended, err)
		}
	}
}

func (p *answerPlan) rows() (rows [][]any, err error) {
	stores := p.run.use.stores
	known, _ := stores[0].known.LoadOrStore(p.key, answer{sync.OnceValues(func() ([][]any, error) { return collect(p.plan) }), stores})
	err = errEnded // if it panics
	defer func() {
		if err != nil {
			stores[0].known.Delete(p.key)
		}
	}()
	return known.(answer).rows()
}
