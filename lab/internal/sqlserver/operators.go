package sqlserver

import (
	"math"
	"math/big"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// operands compiles both sides of an operator.
func (c *compiler) operands(l, r tsql.Expr) (left, right scalar, err error) {
	if left, err = c.expr(l); err == nil {
		right, err = c.expr(r)
	}
	return left, right, err
}

// ofBoth applies a function to two values, with a result of type t, or NULL if either is NULL.
func ofBoth(left, right scalar, t tds.Type, apply func(a, b any) (any, error)) scalar {
	return scalar{typ: t, nullable: left.nullable || right.nullable, eval: func(row []any) (any, error) {
		a, err := left.eval(row)
		if err != nil || a == nil {
			return nil, err
		}
		b, err := right.eval(row)
		if err != nil || b == nil {
			return nil, err
		}
		return apply(a, b)
	}}
}

func (c *compiler) arithmetic(x *tsql.Arith) (scalar, error) {
	left, right, err := c.operands(x.L, x.R)
	if err != nil {
		return scalar{}, err
	}
	return arithmetic(x.Op, left, right)
}

// arithmetic compiles an operator for the types of its operands.
func arithmetic(op string, left, right scalar) (scalar, error) {
	top := unify(left.typ, right.typ)
	switch {
	case op == "+" && isText(top.Kind):
		return concatenation(left, right, top), nil
	case isInteger(top.Kind) && top.Kind != tds.KindBit:
		return numeric(op, left, right, top, integerOp), nil
	case top.Kind == tds.KindMoney:
		return numeric(op, left, right, top, moneyOp), nil
	case top.Kind == tds.KindFloat:
		return numeric(op, left, right, top, floatOp), nil
	case top.Kind == tds.KindDecimal:
		return decimals(op, left, right), nil
	}
	return scalar{}, badOperands(op, left.typ, right.typ)
}

func badOperands(op string, a, b tds.Type) error {
	return tsql.Errorf(402, 0, "The data types %s and %s are incompatible in the %s operator.", typeName(a), typeName(b), op)
}

type operation func(op string, a, b any, t tds.Type) (any, error)

// numeric brings both operands to one type and applies the operation.
func numeric(op string, left, right scalar, t tds.Type, apply operation) scalar {
	left, right = converted(left, t), converted(right, t)
	return ofBoth(left, right, t, func(a, b any) (any, error) { return apply(op, a, b, t) })
}

func integerOp(op string, x, y any, t tds.Type) (any, error) {
	a, errA := wholeNumber(x, t)
	b, errB := wholeNumber(y, t)
	if errA != nil || errB != nil {
		return nil, overflow(t)
	}
	return integerArithmetic(op, a, b, t)
}

func moneyOp(op string, x, y any, t tds.Type) (any, error) {
	a, b := x.(tds.Money), y.(tds.Money)
	if b == 0 && op != "*" {
		return nil, divideByZero()
	}
	result, err := decimalArithmetic(op, tds.NewDecimal(int64(a), 4), tds.NewDecimal(int64(b), 4), decimalType(38, 8))
	if err != nil {
		return nil, err
	}
	return toMoney(result, t)
}

func floatOp(op string, x, y any, t tds.Type) (any, error) {
	a, b := x.(float64), y.(float64)
	switch op {
	case "+":
		a += b
	case "*":
		a *= b
	default:
		return nil, badOperands(op, t, t)
	}
	if math.IsInf(a, 0) || math.IsNaN(a) {
		return nil, overflow(t)
	}
	return a, nil
}

func decimals(op string, left, right scalar) scalar {
	result := decimalResult(op, asDecimalType(left.typ), asDecimalType(right.typ))
	left, right = converted(left, asDecimalType(left.typ)), converted(right, asDecimalType(right.typ))
	return ofBoth(left, right, result, func(a, b any) (any, error) {
		return decimalArithmetic(op, a.(tds.Decimal), b.(tds.Decimal), result)
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
	return ofBoth(left, right, t, func(a, b any) (any, error) {
		return a.(string) + b.(string), nil
	})
}

// powers are 10^0 to 10^99, as needed for operations on two decimals. They are never changed.
var powers = func() (out [100]*big.Int) {
	for n := range out {
		out[n] = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
	}
	return out
}()

func pow10(n int) *big.Int {
	return powers[n]
}

func newDecimal(unscaled *big.Int, scale int) tds.Decimal {
	return tds.Decimal{Unscaled: unscaled, Scale: scale}
}

// rescale changes the scale; digits that do not fit are rounded half away from zero.
func rescale(d tds.Decimal, scale int) tds.Decimal {
	switch {
	case d.Scale == scale:
		return d
	case d.Scale < scale:
		return newDecimal(new(big.Int).Mul(d.Unscaled, pow10(scale-d.Scale)), scale)
	}
	return newDecimal(divideRounded(d.Unscaled, pow10(d.Scale-scale)), scale)
}

func divideRounded(x, by *big.Int) *big.Int {
	quotient, rest := new(big.Int).QuoRem(x, by, new(big.Int))
	if rest.Abs(rest).Lsh(rest, 1).CmpAbs(by) >= 0 {
		quotient.Add(quotient, big.NewInt(int64(x.Sign()*by.Sign())))
	}
	return quotient
}

// fitDecimal converts a decimal to the scale of its type and checks the precision.
func fitDecimal(d tds.Decimal, t tds.Type) (any, error) {
	d = rescale(d, t.Scale)
	if d.Unscaled.CmpAbs(pow10(t.Precision)) >= 0 {
		return nil, overflow(t)
	}
	return d, nil
}

func overflow(t tds.Type) error {
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

// decimalResult is the type of an operation on two decimals, by the documented rules.
func decimalResult(op string, a, b tds.Type) tds.Type {
	var p, s int
	switch op {
	case "*":
		p, s = a.Precision+b.Precision+1, a.Scale+b.Scale
	case "/":
		s = max(6, a.Scale+b.Precision+1)
		p = a.Precision - a.Scale + b.Scale + s
	case "%":
		s = max(a.Scale, b.Scale)
		p = min(a.Precision-a.Scale, b.Precision-b.Scale) + s
	default:
		s = max(a.Scale, b.Scale)
		p = max(a.Precision-a.Scale, b.Precision-b.Scale) + s + 1
	}
	if p > 38 {
		s = max(s-(p-38), min(s, 6))
		p = 38
	}
	return decimalType(p, s)
}

func decimalArithmetic(op string, a, b tds.Decimal, result tds.Type) (any, error) {
	scale := max(a.Scale, b.Scale)
	x, y := rescale(a, scale).Unscaled, rescale(b, scale).Unscaled
	switch op {
	case "+":
		return fitDecimal(newDecimal(new(big.Int).Add(x, y), scale), result)
	case "-":
		return fitDecimal(newDecimal(new(big.Int).Sub(x, y), scale), result)
	case "*":
		return fitDecimal(newDecimal(new(big.Int).Mul(a.Unscaled, b.Unscaled), a.Scale+b.Scale), result)
	}
	if y.Sign() == 0 {
		return nil, divideByZero()
	}
	if op == "%" {
		return fitDecimal(newDecimal(new(big.Int).Rem(x, y), scale), result)
	}
	scaled := new(big.Int).Mul(x, pow10(result.Scale))
	return fitDecimal(newDecimal(new(big.Int).Quo(scaled, y), result.Scale), result)
}

func divideByZero() error {
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

// inRange checks that a type holds a number.
func inRange(n int64, t tds.Type) error {
	if least, most := rangeOf(t.Kind); n < least || n > most {
		return overflow(t)
	}
	return nil
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
