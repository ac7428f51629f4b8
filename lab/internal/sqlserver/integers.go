package sqlserver

import (
	"math"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// Integer expressions are computed without a Go value for every step: that is most of what set-based
// statements spend their time on.

// wholeFunc is an evalFunc for integers other than bit.
type wholeFunc func([]any) (n int64, null bool, err error)

func isWhole(t tds.Type) bool { return isInteger(t.Kind) && t.Kind != tds.KindBit }

// wholeScalar is an integer expression.
func wholeScalar(t tds.Type, nullable bool, whole wholeFunc) scalar {
	return scalar{typ: t, nullable: nullable, whole: whole, eval: func(row []any) (any, error) {
		n, null, err := whole(row)
		if err != nil || null {
			return nil, err
		}
		return n, nil
	}}
}

func wholeColumn(place int) wholeFunc {
	return func(row []any) (int64, bool, error) {
		v := row[place]
		if n, ok := v.(int64); ok {
			return n, false, nil
		}
		if v == nil {
			return 0, true, nil
		}
		n, err := wholeNumber(v, typeBigInt)
		return n, false, err
	}
}

// rangeOf are the least and the greatest value of an integer type.
func rangeOf(k tds.Kind) (least, most int64) {
	switch k {
	case tds.KindInt8:
		return 0, math.MaxUint8
	case tds.KindInt16:
		return math.MinInt16, math.MaxInt16
	case tds.KindInt32:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// inRange checks that a type holds a number.
func inRange(n int64, t tds.Type) error {
	least, most := rangeOf(t.Kind)
	switch {
	case n >= least && n <= most:
		return nil
	case t.Kind == tds.KindInt8 || t.Kind == tds.KindInt16:
		return tsql.Errorf(220, 0, "Arithmetic overflow error for data type %s, value = %d.", typeName(t), n)
	}
	return overflow(t)
}

// convertedWhole converts an integer expression to another type of numbers; ok is false for other types.
func convertedWhole(s scalar, t tds.Type) (out scalar, ok bool) {
	whole := s.whole
	switch {
	case isWhole(t):
		return wholeScalar(t, s.nullable, func(row []any) (int64, bool, error) {
			n, null, err := whole(row)
			if err == nil && !null {
				err = inRange(n, t)
			}
			return n, null, err
		}), true
	case t.Kind == tds.KindMoney:
		return scalar{typ: t, nullable: s.nullable, eval: func(row []any) (any, error) {
			n, null, err := whole(row)
			if err != nil || null {
				return nil, err
			}
			if n > math.MinInt64/moneyScale && n < math.MaxInt64/moneyScale {
				return tds.Money(n * moneyScale), nil
			}
			return toMoney(n, t)
		}}, true
	}
	return scalar{}, false
}

// wholeArithmetic compiles an operator over two integer expressions of the type of the result.
func wholeArithmetic(op string, left, right scalar, t tds.Type) scalar {
	a, b, apply := left.whole, right.whole, wholeOperator(op, t)
	return wholeScalar(t, left.nullable || right.nullable, func(row []any) (int64, bool, error) {
		x, null, err := a(row)
		if err != nil || null {
			return 0, null, err
		}
		y, null, err := b(row)
		if err != nil || null {
			return 0, null, err
		}
		n, err := apply(x, y)
		return n, false, err
	})
}

// wholeOperator works on 64 bits and checks the range of the type.
func wholeOperator(op string, t tds.Type) func(a, b int64) (int64, error) {
	least, most := rangeOf(t.Kind)
	within := func(n int64, exact bool) (int64, error) {
		if !exact || n < least || n > most {
			return 0, overflow(t)
		}
		return n, nil
	}
	switch op {
	case "+":
		return func(a, b int64) (int64, error) { n := a + b; return within(n, (n > a) == (b > 0)) }
	case "-":
		return func(a, b int64) (int64, error) { n := a - b; return within(n, (n < a) == (b > 0)) }
	case "*":
		return func(a, b int64) (int64, error) {
			n := a * b
			return within(n, a == 0 || n/a == b && !(a == -1 && b == math.MinInt64))
		}
	case "/", "%":
		return func(a, b int64) (int64, error) {
			if b == 0 {
				return 0, divideByZero()
			}
			if op == "%" {
				return within(a%b, true)
			}
			return within(a/b, a != math.MinInt64 || b != -1)
		}
	case "&":
		return func(a, b int64) (int64, error) { return within(a&b, true) }
	case "|":
		return func(a, b int64) (int64, error) { return within(a|b, true) }
	}
	return func(a, b int64) (int64, error) { return within(a^b, true) }
}

// wholeComparison compares two integer expressions.
func wholeComparison(left, right scalar, holds func(int) bool) scalar {
	a, b := left.whole, right.whole
	return test(func(row []any) (any, error) {
		x, null, err := a(row)
		if err != nil || null {
			return nil, err
		}
		y, null, err := b(row)
		if err != nil || null {
			return nil, err
		}
		switch {
		case x < y:
			return holds(-1), nil
		case x > y:
			return holds(1), nil
		}
		return holds(0), nil
	})
}

// folded computes a conversion of a constant once; one that fails fails when it is reached.
func folded(s scalar, operand *scalar) scalar {
	if operand.constant {
		if v, err := s.eval(nil); err == nil {
			return constant(s.typ, v)
		}
	}
	return s
}
