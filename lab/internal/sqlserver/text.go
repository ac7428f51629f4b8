package sqlserver

import (
	"strconv"
	"strings"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// toSizedText converts to text, cut to the type's size; nchar is padded with blanks.
func toSizedText(v any, t tds.Type) (any, error) {
	s, err := toText(v)
	if err != nil {
		return nil, err
	}
	if t.Kind == tds.KindXML || t.Size < 0 {
		return asGiven(v, s), nil
	}
	n := tds.LenUTF16(s)
	switch {
	case n > t.Size && isNumber(v):
		return nil, tsql.Errorf(8115, 0, "Arithmetic overflow error converting expression to data type nvarchar.")
	case n > t.Size:
		return tds.CutUTF16(s, 0, t.Size), nil
	case n < t.Size && t.Kind == tds.KindNChar:
		return s + strings.Repeat(" ", t.Size-n), nil
	}
	return asGiven(v, s), nil
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

func toText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case bool:
		return strconv.FormatInt(boolInt(v), 10), nil
	case tds.Decimal:
		return formatDecimal(v), nil
	case time.Time:
		return v.Format("2006-01-02 15:04:05.000"), nil
	case []byte:
		return tds.DecodeUTF16(v), nil
	}
	return "", tsql.Errorf(529, 0, "Explicit conversion from data type %s to nvarchar is not allowed.", valueTypeName(v))
}

var timeLayouts = []string{
	"20060102", "2006-01-02", "2006-01-02T15:04:05.9999999", "2006-01-02 15:04:05.9999999", "20060102 15:04:05.9999999",
	"2006-01-02 15:04", "2006-01-02T15:04", "2006/01/02", "2006-01-02T15:04:05.9999999Z07:00", "15:04:05", "01/02/2006",
}

func toTime(v any, t tds.Type) (any, error) {
	switch v := v.(type) {
	case time.Time:
		return fitTime(v, t), nil
	case string:
		s := strings.TrimSpace(v)
		for _, layout := range timeLayouts {
			if parsed, err := time.Parse(layout, s); err == nil {
				return fitTime(parsed.UTC(), t), nil
			}
		}
	}
	return nil, failConversion(v, t)
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
