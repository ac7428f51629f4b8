package sqlserver

import (
	"math"
	"math/big"
	"time"

	"vnuma.dev/lab/internal/tds"
)

// The codecs say how values of each type lie in a column, and what they add to a checksum: the same as
// checksumOf of the value.

func integerCodec[T uint8 | int16 | int32 | int64]() *numberCodec[T] {
	return &numberCodec[T]{
		encode: func(v any) (T, bool) {
			n, ok := v.(int64)
			return T(n), ok && int64(T(n)) == n
		},
		decode:   func(n T) any { return int64(n) },
		checksum: func(n T) uint32 { return integerChecksum(int64(n)) },
	}
}

var bitCodec = &numberCodec[uint8]{
	encode: func(v any) (uint8, bool) {
		b, ok := v.(bool)
		return uint8(boolInt(b)), ok
	},
	decode:   func(n uint8) any { return n != 0 },
	checksum: func(n uint8) uint32 { return uint32(n) },
}

var moneyCodec = &numberCodec[int64]{
	encode: func(v any) (int64, bool) {
		m, ok := v.(tds.Money)
		return int64(m), ok
	},
	decode:   func(n int64) any { return tds.Money(n) },
	checksum: func(n int64) uint32 { return mixed(uint64(n)) },
}

var floatCodec = &numberCodec[float64]{
	encode: func(v any) (float64, bool) {
		f, ok := v.(float64)
		return f, ok
	},
	decode:   func(f float64) any { return f },
	checksum: func(f float64) uint32 { return mixed(math.Float64bits(f)) },
}

// timeCodec counts 100 ns since 1970: fitTime rounds to those or to more.
var timeCodec = &numberCodec[int64]{
	encode: func(v any) (int64, bool) {
		t, ok := v.(time.Time)
		return timeTicks(t), ok
	},
	decode:   func(n int64) any { return ticksTime(n) },
	checksum: func(n int64) uint32 { return mixed(uint64(n)) },
}

const ticksPerSecond = int64(time.Second / 100)

func timeTicks(t time.Time) int64 { return t.Unix()*ticksPerSecond + int64(t.Nanosecond()/100) }

func ticksTime(n int64) time.Time {
	seconds, rest := n/ticksPerSecond, n%ticksPerSecond
	return time.Unix(seconds, rest*100).UTC()
}

var textCodec = &packedCodec{
	encode: func(dst []byte, v any) ([]byte, bool) {
		s, ok := v.(string)
		return append(dst, s...), ok
	},
	decode: func(b []byte) any { return string(b) },
	checksum: func(b []byte, ignoreCase bool) uint32 {
		if ignoreCase {
			b = []byte(textKey(string(b)))
		}
		return hash32(b)
	},
}

// decimalCodec keeps the scale, which all values of a column share, out of the bytes.
func decimalCodec(scale int) *packedCodec {
	return &packedCodec{
		encode: func(dst []byte, v any) ([]byte, bool) {
			d, ok := v.(tds.Decimal)
			if !ok || d.Scale != scale {
				return dst, false
			}
			return appendUnscaled(dst, d.Unscaled), true
		},
		decode:   func(b []byte) any { return newDecimal(unscaledOf(b), scale) },
		checksum: func(b []byte, _ bool) uint32 { return hash32(b) },
	}
}

// appendUnscaled adds a sign, 1 for negative, and the magnitude without leading zeros.
func appendUnscaled(dst []byte, n *big.Int) []byte {
	if n.IsInt64() {
		v := n.Int64()
		rest := magnitude(v)
		dst = append(dst, byte(boolInt(v < 0)))
		for shift := 56; shift >= 0; shift -= 8 {
			if b := byte(rest >> shift); rest>>shift != 0 {
				dst = append(dst, b)
			}
		}
		return dst
	}
	return append(append(dst, byte(boolInt(n.Sign() < 0))), n.Bytes()...)
}

func unscaledOf(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b[1:])
	if b[0] != 0 {
		n.Neg(n)
	}
	return n
}

var guidCodec = &packedCodec{
	encode: func(dst []byte, v any) ([]byte, bool) {
		g, ok := v.([16]byte)
		return append(dst, g[:]...), ok
	},
	decode:   func(b []byte) any { return [16]byte(b) },
	checksum: func(b []byte, _ bool) uint32 { return hash32(b) },
}

var binaryCodec = &packedCodec{
	encode: func(dst []byte, v any) ([]byte, bool) {
		b, ok := v.([]byte)
		return append(dst, b...), ok
	},
	decode:   func(b []byte) any { return append([]byte{}, b...) },
	checksum: func(b []byte, _ bool) uint32 { return hash32(b) },
}
