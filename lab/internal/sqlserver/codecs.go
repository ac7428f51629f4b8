package sqlserver

import (
	"math"
	"math/big"
	"time"

	"vnuma.dev/lab/internal/tds"
)

// The codecs define how values of each type are stored in a column, and their part of a checksum: the same as
// checksumOf of the value.

func integerCodec(kind tds.Kind) *numberCodec {
	least, most := rangeOf(kind)
	return &numberCodec{
		encode: func(v any) (int64, bool) {
			n, ok := v.(int64)
			return n, ok && least <= n && n <= most
		},
		decode:   func(n int64) any { return n },
		checksum: integerChecksum,
	}
}

var bitCodec = &numberCodec{
	encode: func(v any) (int64, bool) {
		b, ok := v.(bool)
		return boolInt(b), ok
	},
	decode:   func(n int64) any { return n != 0 },
	checksum: func(n int64) uint32 { return uint32(n) },
}

var moneyCodec = &numberCodec{
	encode: func(v any) (int64, bool) {
		m, ok := v.(tds.Money)
		return int64(m), ok
	},
	decode:   func(n int64) any { return tds.Money(n) },
	checksum: func(n int64) uint32 { return mixed(uint64(n)) },
}

// floatCodec inverts the bits of negative numbers, whose order is reversed.
var floatCodec = &numberCodec{
	encode: func(v any) (int64, bool) {
		f, ok := v.(float64)
		return ordered(int64(math.Float64bits(f))), ok
	},
	decode:   func(n int64) any { return math.Float64frombits(uint64(ordered(n))) },
	checksum: func(n int64) uint32 { return mixed(uint64(ordered(n))) },
}

func ordered(bits int64) int64 { return bits ^ (bits >> 63 & math.MaxInt64) }

// timeCodec counts 100 ns since 1970: fitTime rounds to those or to more.
var timeCodec = &numberCodec{
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

// decimalCodec does not store the scale, which all values of a column share.
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
