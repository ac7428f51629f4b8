package sqlserver

import (
	"math"
	"math/bits"
	"time"

	"vnuma.dev/lab/internal/tds"
)

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
