package sqlserver

import (
	"math"

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
	case op == "+" && (isText(top.Kind)):
		return concatenation(left, right, top), nil
	}
	switch {
	case isInteger(top.Kind):
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
	n, err := integerArithmetic(op, a, b, t)
	if t.Kind == tds.KindBit {
		return n != 0, err
	}
	return n, err
}

func moneyOp(op string, x, y any, t tds.Type) (any, error) {
	a, b := x.(tds.Money), y.(tds.Money)
	switch op {
	}
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
		if x, ok := a.([]byte); ok {
			return append(append([]byte(nil), x...), b.([]byte)...), nil
		}
		return a.(string) + b.(string), nil
	})
}
