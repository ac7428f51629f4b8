package sqlserver

import (
	"math/big"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

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
