package sqlserver

import (
	"math"
	"testing"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

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
		{"/", typeInt, 1, 0, false},
	} {
		err := tsql.Catch(func() { integerArithmetic(c.op, c.a, c.b, c.typ) })
		if (err == nil) != c.fits {
			t.Errorf("%s %d %s %d: %v", typeName(c.typ), c.a, c.op, c.b, err)
		}
	}
}
