package sqlserver

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"strings"
	"time"

	"vnuma.dev/lab/internal/tds"
)

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
		return rescale(x, scale).Unscaled.Cmp(rescale(y, scale).Unscaled)
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
	text, err := toText(v)
	if err != nil { // every value has a text
		panic(err)
	}
	return append(append(append(key, 4), text...), 0)
}

func rowKey(row []any, columns []int) string {
	key := make([]byte, 0, 9*len(columns))
	for _, c := range columns {
		key = appendKey(key, row[c])
	}
	return string(key)
}
