package sqlserver

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// moneyScale is the number of parts of one unit of money.
const moneyScale = 10000

func failConversion(v any, t tds.Type) error {
	if s, ok := v.(string); ok {
		switch {
		case isTime(t.Kind):
			return tsql.Errorf(241, 0, "Conversion failed when converting date and/or time from character string.")
		case t.Kind == tds.KindUniqueIdentifier:
			return tsql.Errorf(8169, 0, "Conversion failed when converting from a character string to uniqueidentifier.")
		case t.Kind == tds.KindDecimal, t.Kind == tds.KindFloat:
			return tsql.Errorf(8114, 0, "Error converting data type nvarchar to %s.", typeName(t))
		}
		return tsql.Errorf(245, 0, "Conversion failed when converting the nvarchar value '%s' to data type %s.", s, typeName(t))
	}
	return tsql.Errorf(529, 0, "Explicit conversion from data type %s to %s is not allowed.", valueTypeName(v), typeName(t))
}

// valueTypeName names the type of a value for messages.
func valueTypeName(v any) string {
	switch v.(type) {
	case int64:
		return "int"
	case bool:
		return "bit"
	case float64:
		return "float"
	case time.Time:
		return "datetime"
	case []byte:
		return "varbinary"
	case [16]byte:
		return "uniqueidentifier"
	case tds.Decimal:
		return "numeric"
	case tds.Money:
		return "money"
	}
	return "nvarchar"
}

// convert converts a value to a type, or fails as SQL Server would.
func convert(v any, t tds.Type) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch t.Kind {
	case tds.KindInt8, tds.KindInt16, tds.KindInt32, tds.KindInt64:
		return toInteger(v, t)
	case tds.KindBit:
		return toBit(v, t)
	case tds.KindMoney:
		return toMoney(v, t)
	case tds.KindDecimal:
		d, err := toDecimal(v, t)
		if err != nil {
			return nil, err
		}
		return fitDecimal(d, t)
	case tds.KindFloat:
		return toFloat(v, t)
	case tds.KindNVarChar, tds.KindNChar, tds.KindXML:
		return toSizedText(v, t)
	case tds.KindDateTime, tds.KindDateTime2, tds.KindDate:
		return toTime(v, t)
	case tds.KindVarBinary:
		return toBinary(v, t)
	case tds.KindUniqueIdentifier:
		return toGUID(v, t)
	}
	return v, nil
}

func toInteger(v any, t tds.Type) (any, error) {
	n, err := wholeNumber(v, t)
	if err != nil {
		return nil, err
	}
	if err := inRange(n, t); err != nil {
		return nil, err
	}
	return n, nil
}

func wholeNumber(v any, t tds.Type) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case bool:
		return boolInt(v), nil
	case tds.Decimal:
		n := new(big.Int).Quo(v.Unscaled, pow10(v.Scale))
		if !n.IsInt64() {
			return 0, overflow(t)
		}
		return n.Int64(), nil
	case string:
		trimmed := strings.TrimSpace(v)
		n, err := strconv.ParseInt(trimmed, 10, 64)
		if err != nil {
			return 0, failConversion(v, t)
		}
		return n, nil
	}
	return 0, failConversion(v, t)
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func toBit(v any, t tds.Type) (any, error) {
	n, err := wholeNumber(v, t)
	return n != 0, err
}

func toDecimal(v any, t tds.Type) (tds.Decimal, error) {
	switch v := v.(type) {
	case tds.Decimal:
		return v, nil
	case int64:
		return newDecimal(big.NewInt(v), 0), nil
	case tds.Money:
		return newDecimal(big.NewInt(int64(v)), 4), nil
	}
	return tds.Decimal{}, failConversion(v, t)
}

func toMoney(v any, t tds.Type) (any, error) {
	if m, ok := v.(tds.Money); ok {
		return m, nil
	}
	if n, ok := v.(int64); ok && n > math.MinInt64/moneyScale && n < math.MaxInt64/moneyScale {
		return tds.Money(n * moneyScale), nil
	}
	d, err := toDecimal(v, t)
	if err != nil {
		return nil, err
	}
	n := rescale(d, 4).Unscaled
	if !n.IsInt64() {
		return nil, overflow(t)
	}
	return tds.Money(n.Int64()), nil
}

func toFloat(v any, t tds.Type) (any, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	}
	return nil, failConversion(v, t)
}

func toBinary(v any, t tds.Type) (any, error) {
	var b []byte
	switch v := v.(type) {
	case []byte:
		b = v
	case int64:
		b = integerBytes(v, t.Size)
	case string:
		b = tds.AppendUTF16(nil, v)
	default:
		return nil, failConversion(v, t)
	}
	if t.Size >= 0 && len(b) > t.Size {
		b = b[:t.Size]
	}
	return b, nil
}

// integerBytes is an integer as big-endian binary of at most size bytes (8 when unbounded).
func integerBytes(n int64, size int) []byte {
	if size < 0 {
		size = 8
	}
	b := make([]byte, size)
	for i := size - 1; i >= 0 && n != 0; i-- {
		b[i] = byte(n)
		n >>= 8
	}
	return b
}

func toGUID(v any, t tds.Type) (any, error) {
	switch v := v.(type) {
	case [16]byte:
		return v, nil
	case []byte:
		var g [16]byte
		copy(g[:], v)
		swapGUID(&g)
		return g, nil
	}
	return nil, failConversion(v, t)
}

// swapGUID converts the first three groups between the order of the text, in which a value is stored, and that of binary.
func swapGUID(g *[16]byte) {
	g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
	g[4], g[5] = g[5], g[4]
	g[6], g[7] = g[7], g[6]
}
