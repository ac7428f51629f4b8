package sqlserver

import (
	"math"
	"math/rand/v2"
	"testing"

	"vnuma.dev/lab/internal/tds"
)

// Money in 64 bits rounds as the decimals do that it stands for.
func TestSmallMoney(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	short := 0
	for range 20000 {
		a, b := random.Int64()>>random.IntN(63)-random.Int64N(20000), random.Int64()>>random.IntN(63)-random.Int64N(20000)
		for _, op := range []string{"*", "/"} {
			got, ok := smallMoney(op, a, b)
			if !ok || b == 0 {
				continue
			}
			short++
			exact, err := decimalArithmetic(op, tds.NewDecimal(a, 4), tds.NewDecimal(b, 4), decimalType(38, 8))
			if err != nil {
				t.Fatal(err)
			}
			if want, err := toMoney(exact, typeMoney); err != nil || got != want {
				t.Fatalf("%d %s %d is %d, want %v, %v", a, op, b, got, want, err)
			}
		}
	}
	if short < 10000 {
		t.Errorf("only %d of the operations took the short way", short)
	}
}

// Integer operators overflow exactly where their type ends.
func TestIntegersOverflowAtTheirType(t *testing.T) {
	for _, c := range []struct {
		op   string
		typ  tds.Type
		a, b int64
		fits bool
	}{
		{"+", typeInt, math.MaxInt32, 0, true}, {"+", typeInt, math.MaxInt32, 1, false}, {"-", typeTinyInt, 0, 1, false},
		{"+", typeBigInt, math.MaxInt64, 1, false}, {"+", typeBigInt, math.MinInt64, -1, false}, {"-", typeBigInt, math.MinInt64, 1, false},
		{"*", typeBigInt, math.MinInt64, -1, false}, {"*", typeBigInt, -1, math.MinInt64, false}, {"*", typeBigInt, 1 << 31, 1 << 31, true},
		{"*", typeBigInt, 1 << 32, 1 << 31, false}, {"/", typeBigInt, math.MinInt64, -1, false}, {"%", typeBigInt, math.MinInt64, -1, true},
		{"/", typeInt, 1, 0, false}, {"^", typeSmallInt, -1, 1, true},
	} {
		if n, err := wholeOperator(c.op, c.typ)(c.a, c.b); (err == nil) != c.fits {
			t.Errorf("%s %d %s %d gives %d, %v", typeName(c.typ), c.a, c.op, c.b, n, err)
		}
	}
}
