package sqlserver

import (
	"math/big"
	"sort"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// accumulator gathers the values of one group.
type accumulator interface {
	add(v any) error // never called with NULL, except by COUNT(*) and MIN/MAX users' own choice
	result() (any, error)
}

// aggregate is a compiled aggregate function.
type aggregate struct {
	name     string
	arg      *scalar // nil for COUNT(*)
	call     *tsql.Call
	at       *compiler // resolves the names in the call
	typ      tds.Type
	nullable bool
	distinct bool
	fresh    func() accumulator
}

// aggregates are the known functions: each gives the result type and a maker of accumulators.
var aggregates map[string]func(arg tds.Type) (tds.Type, func() accumulator, error)

func init() {
	counting := func(t tds.Type) func(tds.Type) (tds.Type, func() accumulator, error) {
		return func(tds.Type) (tds.Type, func() accumulator, error) {
			return t, func() accumulator { return &counter{} }, nil
		}
	}
	aggregates = map[string]func(tds.Type) (tds.Type, func() accumulator, error){
		"count": counting(typeInt), "count_big": counting(typeBigInt),
		"sum": sumOf, "avg": averageOf,
		"min": extremeOf(-1), "max": extremeOf(1),
		"checksum_agg": checksumAggregate, "string_agg": stringAggregate,
	}
}

type counter struct{ n int64 }

func (c *counter) add(any) error        { c.n++; return nil }
func (c *counter) result() (any, error) { return c.n, nil }

// total sums in the widest form and converts at the end.
type total struct {
	typ      tds.Type
	n        int64
	count    int64
	sum      *big.Int // of decimals, at the scale of the argument
	scale    int
	float    float64
	average  bool
	wideType tds.Type
}

func (t *total) add(v any) error {
	t.count++
	switch v := v.(type) {
	case int64:
		n, err := integerArithmetic("+", t.n, v, typeBigInt)
		t.n = n
		return err
	case tds.Money:
		t.n += int64(v)
	case tds.Decimal:
		t.sum.Add(t.sum, v.Unscaled)
		t.scale = v.Scale
	case float64:
		t.float += v
	}
	return nil
}

func (t *total) result() (any, error) {
	if t.count == 0 {
		return nil, nil
	}
	divisor := int64(1)
	if t.average {
		divisor = t.count
	}
	switch t.wideType.Kind {
	case tds.KindFloat:
		return t.float / float64(divisor), nil
	case tds.KindMoney:
		return tds.Money(t.n / divisor), nil
	case tds.KindDecimal:
		sum := newDecimal(t.sum, t.scale)
		if t.average {
			return decimalArithmetic("/", sum, tds.NewDecimal(divisor, 0), t.typ)
		}
		return fitDecimal(sum, t.typ)
	}
	return convert(t.n/divisor, t.typ, 0)
}

func totalOf(arg tds.Type, average bool) (tds.Type, func() accumulator, error) {
	typ := arg
	switch {
	case arg.Kind == tds.KindInt64, arg.Kind == tds.KindMoney, arg.Kind == tds.KindFloat:
	case arg.Kind == tds.KindBit || !isNumeric(arg.Kind):
		return typ, nil, tsql.Errorf(8117, 0, "Operand data type %s is invalid for sum operator.", typeName(arg))
	case isInteger(arg.Kind):
		typ = typeInt
	case arg.Kind == tds.KindDecimal:
		typ = decimalType(38, arg.Scale)
		if average {
			typ.Scale = max(arg.Scale, 6)
		}
	}
	return typ, func() accumulator {
		return &total{typ: typ, average: average, wideType: arg, sum: new(big.Int), scale: arg.Scale}
	}, nil
}

func sumOf(arg tds.Type) (tds.Type, func() accumulator, error)     { return totalOf(arg, false) }
func averageOf(arg tds.Type) (tds.Type, func() accumulator, error) { return totalOf(arg, true) }

type extreme struct {
	sign int
	best any
}

func (e *extreme) add(v any) error {
	if e.best == nil || compareValues(v, e.best)*e.sign > 0 {
		e.best = v
	}
	return nil
}

func (e *extreme) result() (any, error) { return e.best, nil }

func extremeOf(sign int) func(tds.Type) (tds.Type, func() accumulator, error) {
	return func(arg tds.Type) (tds.Type, func() accumulator, error) {
		return arg, func() accumulator { return &extreme{sign: sign} }, nil
	}
}

type checksums struct {
	sum   int64
	count int64
}

func (c *checksums) add(v any) error {
	n, err := wholeNumber(v, typeInt)
	c.sum ^= n
	c.count++
	return err
}

func (c *checksums) result() (any, error) {
	if c.count == 0 {
		return nil, nil
	}
	return int64(int32(c.sum)), nil
}

func checksumAggregate(arg tds.Type) (tds.Type, func() accumulator, error) {
	if !isInteger(arg.Kind) {
		return arg, nil, tsql.Errorf(8117, 0, "Operand data type %s is invalid for checksum_agg operator.", typeName(arg))
	}
	return typeInt, func() accumulator { return &checksums{} }, nil
}

// joinedText is STRING_AGG: values arrive as rows of text followed by order keys.
type joinedText struct {
	rows [][]any
	keys []sortKey
	sep  string
}

func (j *joinedText) add(v any) error {
	j.rows = append(j.rows, v.([]any))
	return nil
}

func (j *joinedText) result() (any, error) {
	if j.rows == nil {
		return nil, nil
	}
	sort.SliceStable(j.rows, func(a, b int) bool { return compareRows(j.rows[a], j.rows[b], j.keys) < 0 })
	parts := make([]string, len(j.rows))
	for i, row := range j.rows {
		parts[i] = row[0].(string)
	}
	return strings.Join(parts, j.sep), nil
}

func stringAggregate(tds.Type) (tds.Type, func() accumulator, error) {
	return textType(-1), func() accumulator { return &joinedText{} }, nil
}

// aggregate compiles a call of an aggregate function.
func (c *compiler) aggregate(call *tsql.Call) (*aggregate, error) {
	name := fold(call.Name.Object())
	a := &aggregate{name: name, call: call, at: c, distinct: call.Distinct, nullable: !strings.HasPrefix(name, "count")}
	wantArgs := 1
	if name == "string_agg" {
		wantArgs = 2
	}
	if call.Star != (len(call.Args) == 0) || call.Star && a.nullable || !call.Star && len(call.Args) != wantArgs {
		return nil, tsql.Errorf(174, call.Name.Line, "The %s function requires %d argument(s).", call.Name.Object(), wantArgs)
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
	if a.typ, a.fresh, err = aggregates[name](argType); err != nil {
		return nil, err
	}
	if name == "string_agg" {
		err = c.stringAgg(a, call)
	}
	return a, err
}

func (c *compiler) stringAgg(a *aggregate, call *tsql.Call) error {
	separator, ok := call.Args[1].(*tsql.TextLit)
	if !ok {
		return tsql.Errorf(8733, call.Name.Line, "Separator parameter for STRING_AGG must be a string literal or variable.")
	}
	parts := []scalar{converted(*a.arg, textType(-1))}
	var keys []sortKey
	for i, item := range call.Within {
		key, err := c.expr(item.X)
		if err != nil {
			return err
		}
		parts = append(parts, key)
		keys = append(keys, sortKey{column: i + 1, desc: item.Desc})
	}
	a.fresh = func() accumulator { return &joinedText{keys: keys, sep: separator.Value} }
	a.arg = &scalar{typ: a.typ, nullable: true, eval: func(f *frame) (any, error) {
		row, err := evaluate(parts, f, make([]any, len(parts)))
		if err != nil || row[0] == nil {
			return nil, err
		}
		return row, nil
	}}
	return nil
}

// feed gives one row to the accumulator.
func (a *aggregate) feed(acc accumulator, f *frame, seen map[string]bool) error {
	if a.arg == nil {
		return acc.add(nil)
	}
	v, err := a.arg.eval(f)
	if err != nil || v == nil {
		return err
	}
	if a.distinct {
		key := string(appendKey(nil, v))
		if seen[key] {
			return nil
		}
		seen[key] = true
	}
	return acc.add(v)
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
	seen []map[string]bool
}

func (p *aggregatePlan) columns() []column { return p.cols }

func (p *aggregatePlan) newGroup(keys []any) *group {
	g := &group{keys: keys}
	for _, a := range p.aggregates {
		g.accs = append(g.accs, a.fresh())
		g.seen = append(g.seen, map[string]bool{})
	}
	return g
}

func (p *aggregatePlan) each(f *frame, yield func([]any) error) error {
	if row, ok, err := p.overProduct(f); ok || err != nil {
		if err != nil {
			return err
		}
		return yield(row)
	}
	groups, err := p.gather(f)
	if err != nil {
		return err
	}
	for _, g := range groups {
		row := append([]any(nil), g.keys...)
		for _, acc := range g.accs {
			v, err := acc.result()
			if err != nil {
				return err
			}
			row = append(row, v)
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// gather reads the input; groups keep the order in which they appeared.
func (p *aggregatePlan) gather(f *frame) ([]*group, error) {
	var order []*group
	if !p.grouped {
		order = []*group{p.newGroup(nil)}
	}
	groups := map[string]*group{}
	fr := &frame{outer: f, run: p.run}
	all := places(len(p.keys))
	n := 0
	err := p.input.each(f, func(row []any) error {
		if n++; n&4095 == 0 {
			if err := p.run.ended(); err != nil {
				return err
			}
		}
		fr.row = row
		g := (*group)(nil)
		if !p.grouped {
			g = order[0]
		} else {
			keys, err := evaluate(p.keys, fr, make([]any, len(p.keys)))
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
			if err := a.feed(g.accs[i], fr, g.seen[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return order, err
}
