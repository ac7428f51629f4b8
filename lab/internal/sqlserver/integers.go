package sqlserver

import (
	"math"

	"vnuma.dev/lab/internal/tds"
)

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
	}
	return overflow(t)
}

// integerArithmetic works on 64 bits and checks the range of the type.
func integerArithmetic(op string, a, b int64, t tds.Type) (int64, error) {
	if b == 0 && (op == "/" || op == "%") {
		return 0, divideByZero()
	}
	n, exact := int64(0), true
	switch op {
	case "+":
		n = a + b
		exact = (n > a) == (b > 0)
	case "-":
		n = a - b
		exact = (n < a) == (b > 0)
	case "*":
		n = a * b
		exact = a == 0 || n/a == b && !(a == -1 && b == math.MinInt64)
	case "/":
		n, exact = a/b, a != math.MinInt64 || b != -1
	default:
		n = a % b
	}
	if least, most := rangeOf(t.Kind); !exact || n < least || n > most {
		return 0, overflow(t)
	}
	return n, nil
}

// folded computes a conversion of a constant once; a failure is reported when it is evaluated.
func folded(s scalar, operand *scalar) scalar {
	if operand.constant {
		if v, err := s.eval(nil); err == nil {
			return constant(s.typ, v)
		}
	}
	return s
}
