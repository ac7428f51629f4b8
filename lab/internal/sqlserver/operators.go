package sqlserver

import (
	"math"
	"math/big"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// ofBoth applies a function to two values, with a result of type t, or NULL if either is NULL.
func ofBoth(left, right scalar, t tds.Type, apply func(a, b any) any) scalar {
	return scalar{typ: t, nullable: left.nullable || right.nullable, eval: func(row []any) any {
		a := left.eval(row)
		if a == nil {
			return nil
		}
		b := right.eval(row)
		if b == nil {
			return nil
		}
		return apply(a, b)
	}}
}

// arithmetic compiles an operator for the types of its operands.
func arithmetic(op string, left, right scalar) scalar {
	top := unify(left.typ, right.typ)
	switch {
	case op == "+" && isText(top.Kind):
		return concatenation(left, right, top)
	case isInteger(top.Kind) && top.Kind != tds.KindBit:
		return numeric(op, left, right, top, integerOp)
	case top.Kind == tds.KindMoney:
		return numeric(op, left, right, top, moneyOp)
	case top.Kind == tds.KindFloat:
		return numeric(op, left, right, top, floatOp)
	case top.Kind == tds.KindDecimal:
		return decimals(op, left, right)
	}
	panic(badOperands(op, left.typ, right.typ))
}

func badOperands(op string, a, b tds.Type) *tsql.Error {
	return tsql.Errorf(402, 0, "The data types %s and %s are incompatible in the %s operator.", typeName(a), typeName(b), op)
}

type operation func(op string, a, b any, t tds.Type) any

// numeric brings both operands to one type and applies the operation.
func numeric(op string, left, right scalar, t tds.Type, apply operation) scalar {
	left, right = converted(left, t), converted(right, t)
	return ofBoth(left, right, t, func(a, b any) any { return apply(op, a, b, t) })
}

func integerOp(op string, x, y any, t tds.Type) any {
	return integerArithmetic(op, x.(int64), y.(int64), t)
}

func moneyOp(op string, x, y any, t tds.Type) any {
	a, b, n := big.NewInt(int64(x.(tds.Money))), big.NewInt(int64(y.(tds.Money))), new(big.Int)
	switch {
	case op == "*":
		n.Mul(a, b)
	case op == "/" && b.Sign() == 0:
		panic(divideByZero())
	case op == "/":
		n.Quo(n.Mul(a, tds.Pow10(8)), b)
	case op == "+":
		n.Mul(n.Add(a, b), tds.Pow10(4))
	case op == "-":
		n.Mul(n.Sub(a, b), tds.Pow10(4))
	default:
		panic(badOperands(op, t, t))
	}
	return toMoney(newDecimal(n, 8), t)
}

func floatOp(op string, x, y any, t tds.Type) any {
	a, b := x.(float64), y.(float64)
	switch op {
	case "+":
		a += b
	case "*":
		a *= b
	default:
		panic(badOperands(op, t, t))
	}
	if math.IsInf(a, 0) || math.IsNaN(a) {
		panic(overflow(t))
	}
	return a
}

// decimals compiles a sum, a difference or a product of decimals; a whole number beyond int is one.
func decimals(op string, left, right scalar) scalar {
	a, b := asDecimalType(left.typ), asDecimalType(right.typ)
	scale := max(a.Scale, b.Scale)
	result := decimalType(min(38, max(a.Precision-a.Scale, b.Precision-b.Scale)+scale+1), scale)
	if op == "*" {
		result = decimalType(min(38, a.Precision+b.Precision+1), a.Scale+b.Scale)
	}
	return ofBoth(converted(left, a), converted(right, b), result, func(x, y any) any {
		m, n := x.(tds.Decimal).Unscaled, y.(tds.Decimal).Unscaled
		if op == "*" {
			return fitDecimal(newDecimal(new(big.Int).Mul(m, n), result.Scale), result)
		}
		m, n = x.(tds.Decimal).Rescale(scale).Unscaled, y.(tds.Decimal).Rescale(scale).Unscaled
		switch op {
		case "+":
			return fitDecimal(newDecimal(new(big.Int).Add(m, n), scale), result)
		case "-":
			return fitDecimal(newDecimal(new(big.Int).Sub(m, n), scale), result)
		}
		panic(tsql.Unmodelled(0, "operator %s of decimals", op))
	})
}

func concatenation(left, right scalar, t tds.Type) scalar {
	t.Size = -1
	if left.typ.Size > 0 && right.typ.Size > 0 {
		t.Size = min(left.typ.Size+right.typ.Size, 4000)
	}
	wide := t
	wide.Size = -1
	left, right = converted(left, wide), converted(right, wide)
	return ofBoth(left, right, t, func(a, b any) any {
		return a.(string) + b.(string)
	})
}

func newDecimal(unscaled *big.Int, scale int) tds.Decimal {
	return tds.Decimal{Unscaled: unscaled, Scale: scale}
}

// fitDecimal converts a decimal to the scale of its type and checks the precision.
func fitDecimal(d tds.Decimal, t tds.Type) any {
	d = d.Rescale(t.Scale)
	if d.Unscaled.CmpAbs(tds.Pow10(t.Precision)) >= 0 {
		panic(overflow(t))
	}
	return d
}

func overflow(t tds.Type) *tsql.Error {
	return tsql.Errorf(8115, 0, "Arithmetic overflow error converting expression to data type %s.", typeName(t))
}

func formatDecimal(d tds.Decimal) string {
	digits := new(big.Int).Abs(d.Unscaled).String()
	if len(digits) <= d.Scale {
		digits = strings.Repeat("0", d.Scale-len(digits)+1) + digits
	}
	if d.Scale > 0 {
		digits = digits[:len(digits)-d.Scale] + "." + digits[len(digits)-d.Scale:]
	}
	if d.Unscaled.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

func divideByZero() *tsql.Error {
	return tsql.Errorf(8134, 0, "Divide by zero error encountered.")
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

// inRange is a number that fits a type.
func inRange(n int64, t tds.Type) int64 {
	if least, most := rangeOf(t.Kind); n < least || n > most {
		panic(overflow(t))
	}
	return n
}

// integerArithmetic works on 64 bits and checks the range of the type.
func integerArithmetic(op string, a, b int64, t tds.Type) int64 {
	if b == 0 && (op == "/" || op == "%") {
		panic(divideByZero())
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
	if !exact {
		panic(overflow(t))
	}
	return inRange(n, t)
}

// folded computes a conversion of a constant once; a failure is reported when it is evaluated.
func folded(s scalar, operand *scalar) scalar {
	var v any
	if operand.constant && tsql.Catch(func() { v = s.eval(nil) }) == nil {
		return constant(s.typ, v)
	}
	return s
}
