package sqlserver

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// aggregate is a compiled aggregate function.
type aggregate struct {
	name string
	arg  *scalar // nil for COUNT(*)
	call *tsql.Call
	at   *compiler // resolves the names in the call
	typ  tds.Type
	none any // the result over nothing
}

// add is an aggregate's result with a value that occurs so often; NULL only for COUNT(*).
func (a *aggregate) add(sum, v any, times int64) any {
	switch {
	case a.none != nil:
		return sum.(int64) + times
	case a.name == "sum":
		product := integerArithmetic("*", v.(int64), times, typeBigInt)
		if sum == nil {
			sum = int64(0)
		}
		return integerArithmetic("+", sum.(int64), product, a.typ)
	case sum == nil || (compareValues(v, sum) < 0) == (a.name == "min"):
		return v
	}
	return sum
}

// aggregates are the known functions: each gives the result's type.
var aggregates = map[string]func(arg tds.Type) tds.Type{
	"count":     func(tds.Type) tds.Type { return typeInt },
	"count_big": func(tds.Type) tds.Type { return typeBigInt },
	"min":       func(arg tds.Type) tds.Type { return arg },
	"max":       func(arg tds.Type) tds.Type { return arg },
	"sum": func(arg tds.Type) tds.Type {
		switch {
		case arg.Kind == tds.KindBit || !isInteger(arg.Kind):
			panic(tsql.Unmodelled(0, "SUM of %s", typeName(arg)))
		case arg.Kind == tds.KindInt64:
			return typeBigInt
		}
		return typeInt
	},
}

// aggregate compiles a call of an aggregate function.
func (c *compiler) aggregate(call *tsql.Call) *aggregate {
	name := fold(call.Name.Object())
	a := &aggregate{name: name, call: call, at: c}
	if strings.HasPrefix(name, "count") {
		a.none = int64(0)
	}
	if call.Star != (len(call.Args) == 0) || call.Star && a.none == nil || !call.Star && len(call.Args) != 1 {
		panic(tsql.Errorf(174, call.Name.Line, "The %s function requires 1 argument(s).", call.Name.Object()))
	}
	argType := typeInt
	if !call.Star {
		arg := c.expr(call.Args[0])
		a.arg, argType = &arg, arg.typ
	}
	a.typ = aggregates[name](argType)
	return a
}

// aggregatePlan groups its input; without GROUP BY there is one group, even of nothing.
type aggregatePlan struct {
	step
	keys       []scalar
	aggregates []*aggregate
	grouped    bool
	run        *run
}

func (p *aggregatePlan) each(yield func([]any) bool) {
	row, ok := p.overProduct()
	if !ok {
		row, ok = p.overCounted()
	}
	if ok {
		yield(row)
		return
	}
	for _, row := range p.gather() {
		if !yield(row) {
			return
		}
	}
}

// gather reads the input. The rows, of keys and results, keep the order in which their groups first occurred.
func (p *aggregatePlan) gather() (rows [][]any) {
	groups := map[string][]any{}
	keys, all, n := make([]any, len(p.keys)), places(len(p.keys)), 0
	group := func(id string) []any {
		row := slices.Clone(keys)
		for _, a := range p.aggregates {
			row = append(row, a.none)
		}
		groups[id], rows = row, append(rows, row)
		return row
	}
	if !p.grouped {
		group("")
	}
	for row, times := range eachTimes(p.input) {
		p.run.check(n)
		n++
		id := rowKey(evaluate(p.keys, row, keys), all)
		sums, known := groups[id]
		if !known {
			sums = group(id)
		}
		for i, a := range p.aggregates {
			v := any(nil)
			if a.arg != nil {
				if v = a.arg.eval(row); v == nil {
					continue
				}
			}
			at := &sums[len(keys)+i]
			*at = a.add(*at, v, times)
		}
	}
	return rows
}

// An aggregate over a cross join of 3000 x 3000 rows reads 9 million pairs. The two that vnuma uses are computed from the
// two sides without building a row: the number of pairs, and the sum of a checksum over columns.

// checksummed is CHECKSUM of columns, which ignores case, or BINARY_CHECKSUM.
type checksummed struct {
	places     []int
	ignoreCase bool
}

// overProduct computes aggregates over a cross product without building its rows; ok is false if one of them needs them.
func (p *aggregatePlan) overProduct() (row []any, ok bool) {
	cross := productOf(p.input)
	other := func(a *aggregate) bool { return a.arg != nil && (a.name != "sum" || a.arg.checksum == nil) }
	if cross == nil || p.grouped || slices.ContainsFunc(p.aggregates, other) {
		return nil, false
	}
	left, right := cross.sides()
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
	return row, true
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
	cross, _ := bare(p).(*crossPlan)
	return cross
}

// answers are what statements that aggregate stored tables have given, by their text and the stores that they read: stores
// never change.
type answers struct{ sync.Map }

type answer struct {
	rows   func() [][]any
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

func (p *answerPlan) each(yield func([]any) bool) {
	for {
		rows, err := p.rows()
		switch err {
		case nil:
			(&rowsPlan{rows: rows, run: p.run}).each(yield)
			return
		case errEnded: // this client has ended, or another one that computed it
			p.run.ended()
		default:
			panic(err)
		}
	}
}

func (p *answerPlan) rows() (rows [][]any, err *tsql.Error) {
	stores := p.run.use.stores
	known, _ := stores[0].known.LoadOrStore(p.key, answer{sync.OnceValue(func() [][]any { return collect(p.plan) }), stores})
	err = errEnded // if it panics
	defer func() {
		if err != nil {
			stores[0].known.Delete(p.key)
		}
	}()
	err = tsql.Catch(func() { rows = known.(answer).rows() })
	return rows, err
}
