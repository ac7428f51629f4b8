package sqlserver

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// moneyScale is the number of parts of one unit of money.
const moneyScale = 10000

func failConversion(v any, t tds.Type) *tsql.Error {
	if s, ok := v.(string); ok {
		return tsql.Errorf(245, 0, "Conversion failed when converting the nvarchar value '%s' to data type %s.", s, typeName(t))
	}
	return tsql.Errorf(529, 0, "Explicit conversion of %v to %s is not allowed.", v, typeName(t))
}

// convert converts a value to a type, or fails as SQL Server would.
func convert(v any, t tds.Type) any {
	if v == nil {
		return nil
	}
	switch t.Kind {
	case tds.KindInt8, tds.KindInt16, tds.KindInt32, tds.KindInt64:
		if n, ok := v.(int64); ok && n == inRange(n, t) {
			return v
		}
		return inRange(wholeNumber(v, t), t)
	case tds.KindBit:
		return wholeNumber(v, t) != 0
	case tds.KindMoney:
		return toMoney(v, t)
	case tds.KindDecimal:
		return fitDecimal(toDecimal(v, t), t)
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
	return v
}

func wholeNumber(v any, t tds.Type) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case bool:
		return boolInt(v)
	case tds.Decimal:
		n := new(big.Int).Quo(v.Unscaled, tds.Pow10(v.Scale))
		if !n.IsInt64() {
			panic(overflow(t))
		}
		return n.Int64()
	case string:
		if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return n
		}
	}
	panic(failConversion(v, t))
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func toDecimal(v any, t tds.Type) tds.Decimal {
	switch v := v.(type) {
	case tds.Decimal:
		return v
	case int64:
		return newDecimal(big.NewInt(v), 0)
	case tds.Money:
		return newDecimal(big.NewInt(int64(v)), 4)
	}
	panic(failConversion(v, t))
}

func toMoney(v any, t tds.Type) any {
	if m, ok := v.(tds.Money); ok {
		return m
	}
	if n, ok := v.(int64); ok && n > math.MinInt64/moneyScale && n < math.MaxInt64/moneyScale {
		return tds.Money(n * moneyScale)
	}
	n := toDecimal(v, t).Rescale(4).Unscaled
	if !n.IsInt64() {
		panic(overflow(t))
	}
	return tds.Money(n.Int64())
}

func toFloat(v any, t tds.Type) any {
	switch v := v.(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	}
	panic(failConversion(v, t))
}

func toBinary(v any, t tds.Type) any {
	var b []byte
	switch v := v.(type) {
	case []byte:
		b = v
	case int64:
		b = integerBytes(v, t.Size)
	case string:
		b = tds.AppendUTF16(nil, v)
	default:
		panic(failConversion(v, t))
	}
	if t.Size >= 0 && len(b) > t.Size {
		b = b[:t.Size]
	}
	return b
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

func toGUID(v any, t tds.Type) any {
	switch v := v.(type) {
	case [16]byte:
		return v
	case []byte:
		var g [16]byte
		copy(g[:], v)
		swapGUID(&g)
		return g
	}
	panic(failConversion(v, t))
}

// swapGUID converts the first three groups between the order of the text, in which a value is stored, and that of binary.
func swapGUID(g *[16]byte) {
	g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
	g[4], g[5] = g[5], g[4]
	g[6], g[7] = g[7], g[6]
}

// toSizedText converts to text, cut to the type's size; nchar is padded with blanks.
func toSizedText(v any, t tds.Type) any {
	s := toText(v)
	if t.Kind == tds.KindXML || t.Size < 0 {
		return asGiven(v, s)
	}
	n := tds.LenUTF16(s)
	switch {
	case n > t.Size && isNumber(v):
		panic(tsql.Errorf(8115, 0, "Arithmetic overflow error converting expression to data type nvarchar."))
	case n > t.Size:
		return tds.CutUTF16(s, 0, t.Size)
	case n < t.Size && t.Kind == tds.KindNChar:
		return s + strings.Repeat(" ", t.Size-n)
	}
	return asGiven(v, s)
}

// asGiven is the text s of a value, without a new value if it already is text.
func asGiven(v any, s string) any {
	if _, ok := v.(string); ok {
		return v
	}
	return s
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, tds.Decimal, tds.Money:
		return true
	}
	return false
}

func toText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatInt(boolInt(v), 10)
	case tds.Decimal:
		return formatDecimal(v)
	case time.Time:
		return v.Format("2006-01-02 15:04:05.000")
	case []byte:
		return tds.DecodeUTF16(v)
	}
	panic(failConversion(v, typeSysname))
}

var timeLayouts = []string{
	"20060102", "2006-01-02", "2006-01-02T15:04:05.9999999", "2006-01-02 15:04:05.9999999", "20060102 15:04:05.9999999",
	"2006-01-02 15:04", "2006-01-02T15:04", "2006/01/02", "2006-01-02T15:04:05.9999999Z07:00", "15:04:05", "01/02/2006",
}

func toTime(v any, t tds.Type) any {
	switch v := v.(type) {
	case time.Time:
		return fitTime(v, t)
	case string:
		s := strings.TrimSpace(v)
		for _, layout := range timeLayouts {
			if parsed, err := time.Parse(layout, s); err == nil {
				return fitTime(parsed.UTC(), t)
			}
		}
	}
	panic(failConversion(v, t))
}

// fitTime rounds a time to its type's resolution: datetime counts 1/300 seconds.
func fitTime(v time.Time, t tds.Type) time.Time {
	switch t.Kind {
	case tds.KindDate:
		return time.Date(v.Year(), v.Month(), v.Day(), 0, 0, 0, 0, time.UTC)
	case tds.KindDateTime:
		ticks := (v.Nanosecond()*300 + 500_000_000) / 1_000_000_000
		whole := v.Add(-time.Duration(v.Nanosecond()))
		return whole.Add(time.Duration((ticks*10+1)/3) * time.Millisecond)
	default:
		return v.Truncate(100 * time.Nanosecond)
	}
}

// compareValues orders two values of one type; nil sorts first. Text ignores case and trailing blanks.
func compareValues(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(boolInt(a != nil), boolInt(b != nil))
	}
	switch x := a.(type) {
	case int64:
		return cmp.Compare(x, b.(int64))
	case string:
		return compareText(x, b.(string))
	case float64:
		return cmp.Compare(x, b.(float64))
	case bool:
		return cmp.Compare(boolInt(x), boolInt(b.(bool)))
	case tds.Money:
		return cmp.Compare(x, b.(tds.Money))
	case tds.Decimal:
		y := b.(tds.Decimal)
		scale := max(x.Scale, y.Scale)
		return x.Rescale(scale).Unscaled.Cmp(y.Rescale(scale).Unscaled)
	case time.Time:
		return x.Compare(b.(time.Time))
	}
	return bytes.Compare(a.([]byte), b.([]byte))
}

func compareText(a, b string) int {
	if a == b {
		return 0
	}
	return strings.Compare(textKey(a), textKey(b))
}

func textKey(s string) string { return strings.ToLower(strings.TrimRight(s, " ")) }

// appendKey adds a value to a key such that equal values give equal keys.
func appendKey(key []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(key, 0)
	case int64:
		return binary.BigEndian.AppendUint64(append(key, 1), uint64(v))
	case string:
		key = append(append(key, 2), textKey(v)...)
		return append(key, 0)
	}
	return append(append(append(key, 4), toText(v)...), 0)
}

func rowKey(row []any, columns []int) string {
	key := make([]byte, 0, 9*len(columns))
	for _, c := range columns {
		key = appendKey(key, row[c])
	}
	return string(key)
}

const checksumOfNull = 0x7fffffff

// checksumOf is one value's part of CHECKSUM and BINARY_CHECKSUM. Integers of 32 bits count
// as themselves, as on the server; other types are hashed, with the lab's own numbers.
func checksumOf(v any, ignoreCase bool) uint32 {
	switch v := v.(type) {
	case nil:
		return checksumOfNull
	case int64:
		if v == int64(int32(v)) {
			return uint32(v)
		}
		return uint32(v) ^ uint32(v>>32)
	case bool:
		return uint32(boolInt(v))
	case string:
		if ignoreCase {
			v = textKey(v)
		}
		return hash32([]byte(v))
	case tds.Money:
		return mixed(uint64(v))
	case float64:
		return mixed(math.Float64bits(v))
	case time.Time:
		return mixed(uint64(v.UnixNano()))
	case tds.Decimal:
		return hash32(append(v.Unscaled.Bytes(), byte(boolInt(v.Unscaled.Sign() < 0))))
	case [16]byte:
		return hash32(v[:])
	case []byte:
		return hash32(v)
	}
	panic("a value without a checksum")
}

// mixed spreads 64 bits over 32.
func mixed(n uint64) uint32 {
	n *= 0x9e3779b97f4a7c15
	return uint32(n>>32) ^ uint32(n)
}

// hash32 is FNV-1a.
func hash32(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

// foldChecksum combines the checksums of a list from left to right.
func foldChecksum(sum, part uint32) uint32 { return bits.RotateLeft32(sum, 4) ^ part }
