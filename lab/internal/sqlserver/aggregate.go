package sqlserver

import (
	"math/big"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// accumulator aggregates the values of one group.
type accumulator interface {
	add(v any) error // never called with NULL, except by COUNT(*) and by MIN and MAX
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
		"sum": sumOf,
		"min": extremeOf(-1), "max": extremeOf(1),
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
	sum      *big.Int // of decimals, at the argument's scale
	scale    int
	float    float64
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

// addWhole adds an integer several times.
func (t *total) addWhole(n, times int64) error {
	product, err := integerArithmetic("*", n, times, typeBigInt)
	if err != nil {
		return err
	}
	t.count += times
	t.n, err = integerArithmetic("+", t.n, product, typeBigInt)
	return err
}

func (t *total) result() (any, error) {
	if t.count == 0 {
		return nil, nil
	}
	switch t.wideType.Kind {
	case tds.KindFloat:
		return t.float, nil
	case tds.KindMoney:
		return tds.Money(t.n), nil
	case tds.KindDecimal:
		return fitDecimal(newDecimal(t.sum, t.scale), t.typ)
	}
	return convert(t.n, t.typ)
}

func sumOf(arg tds.Type) (tds.Type, func() accumulator, error) {
	typ := arg
	switch {
	case arg.Kind == tds.KindInt64, arg.Kind == tds.KindMoney, arg.Kind == tds.KindFloat:
	case arg.Kind == tds.KindBit || !isNumeric(arg.Kind):
		return typ, nil, tsql.Errorf(8117, 0, "Operand data type %s is invalid for sum operator.", typeName(arg))
	case isInteger(arg.Kind):
		typ = typeInt
	case arg.Kind == tds.KindDecimal:
		typ = decimalType(38, arg.Scale)
	}
	return typ, func() accumulator {
		return &total{typ: typ, wideType: arg, sum: new(big.Int), scale: arg.Scale}
	}, nil
}

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
