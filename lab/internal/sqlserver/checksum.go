package sqlserver

import (
	"hash/fnv"
	"math/bits"
)

// checksumOf is the part that one value adds to CHECKSUM and BINARY_CHECKSUM. Integers of 32 bits count
// as themselves, as on the server; other types are hashed, with numbers of the lab's own.
func checksumOf(v any, ignoreCase bool) uint32 {
	switch v := v.(type) {
	case nil:
		return 0x7fffffff
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
	}
	return hash32(appendKey(nil, v))
}

func hash32(b []byte) uint32 {
	h := fnv.New32a()
	h.Write(b)
	return h.Sum32()
}

// foldChecksum combines the checksums of a list from left to right.
func foldChecksum(sum, part uint32) uint32 { return bits.RotateLeft32(sum, 4) ^ part }
