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

var sumWhole = wholeOperator("+", typeBigInt)

func (t *total) add(v any) error {
	t.count++
	switch v := v.(type) {
	case int64:
		n, err := sumWhole(t.n, v)
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

var timesWhole = wholeOperator("*", typeBigInt)

// addWhole adds an integer several times.
func (t *total) addWhole(n, times int64) error {
	product, err := timesWhole(n, times)
	if err != nil {
		return err
	}
	t.count += times
	t.n, err = sumWhole(t.n, product)
	return err
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
