package sqlserver

import (
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
