package tds

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// appendType adds TYPE_INFO: always the variant of a type that can hold NULL.
func appendType(dst []byte, t Type) []byte {
	dst = append(dst, kinds[t.Kind].wire)
	switch t.Kind {
	case KindDate:
		return dst
	case KindDecimal:
		return append(dst, byte(1+decimalBytes(t.Precision)), byte(t.Precision), byte(t.Scale))
	case KindDateTime2:
		return append(dst, byte(t.Scale))
	case KindNChar, KindNVarChar, KindVarBinary:
		return appendSize(dst, t)
	}
	return append(dst, kinds[t.Kind].size)
}

// appendSize adds the rest of TYPE_INFO of the character and binary kinds.
func appendSize(dst []byte, t Type) []byte {
	size := 2 * max(t.Size, 1) // no type has length 0, an empty text of one does
	switch {
	case t.long():
		size = plpLength
	case t.Kind == KindVarBinary:
		size = max(t.Size, 2)
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(size))
	if t.Kind == KindVarBinary {
		return dst
	}
	return append(dst, collation[:]...)
}

// appendValue adds a value with its length. It panics if the type has no such value: the engine is wrong.
func appendValue(dst []byte, t Type, value any) []byte {
	if value == nil {
		return appendNull(dst, t)
	}
	switch v := value.(type) {
	case int64:
		switch t.Kind {
		case KindInt8, KindInt16, KindInt32, KindInt64:
			return appendInteger(dst, t, v)
		case KindDecimal:
			return appendDecimal(dst, t, NewDecimal(v, 0))
		}
	case bool:
		if t.Kind == KindBit {
			return append(dst, 1, b2i(v))
		}
	case float64:
		if t.Kind == KindFloat {
			return binary.LittleEndian.AppendUint64(append(dst, 8), math.Float64bits(v))
		}
	case Decimal:
		if t.Kind == KindDecimal {
			return appendDecimal(dst, t, v)
		}
	case Money:
		if t.Kind == KindMoney {
			dst = binary.LittleEndian.AppendUint32(append(dst, 8), uint32(v>>32))
			return binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	case time.Time:
		return appendMoment(dst, t, v)
	case string:
		if t.Kind == KindNVarChar || t.Kind == KindNChar || t.Kind == KindXML {
			return appendString(dst, t, v)
		}
	case []byte:
		if t.Kind == KindVarBinary {
			return appendSized(dst, t, v, t.Size)
		}
	case [16]byte:
		if t.Kind == KindUniqueIdentifier {
			// The first three groups travel little-endian.
			return append(append(dst, 16, v[3], v[2], v[1], v[0], v[5], v[4], v[7], v[6]), v[8:]...)
		}
	}
	panic(noValue(t, value))
}

func noValue(t Type, value any) error {
	return fmt.Errorf("%v (%T) is no value of type %s", value, value, t.Kind)
}

func appendNull(dst []byte, t Type) []byte {
	switch {
	case t.long():
		return binary.LittleEndian.AppendUint64(dst, plpNull)
	case t.Kind >= KindNChar && t.Kind <= KindVarBinary:
		return binary.LittleEndian.AppendUint16(dst, plpLength)
	}
	return append(dst, 0)
}

func b2i(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendInteger(dst []byte, t Type, v int64) []byte {
	size := kinds[t.Kind].size
	if rest := 64 - 8*size; t.Kind == KindInt8 && v != int64(uint8(v)) || t.Kind != KindInt8 && v<<rest>>rest != v {
		panic(noValue(t, v))
	}
	dst = append(dst, size)
	for i := range size {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// appendDecimal adds a sign and the unscaled number at the column's scale, rounded half away from zero.
func appendDecimal(dst []byte, t Type, v Decimal) []byte {
	n := v.Rescale(t.Scale).Unscaled
	if n.CmpAbs(Pow10(t.Precision)) >= 0 {
		panic(noValue(t, v))
	}
	width := decimalBytes(t.Precision)
	dst = append(dst, byte(1+width), b2i(v.Unscaled.Sign() >= 0))
	var buf [16]byte
	n.FillBytes(buf[:])
	for i := range width {
		dst = append(dst, buf[15-i])
	}
	return dst
}

// appendMoment adds a date, or a date with a time.
func appendMoment(dst []byte, t Type, v time.Time) []byte {
	switch t.Kind {
	case KindDateTime:
		days, ticks := datetimeTicks(wallClock(v, epochDateTime))
		dst = binary.LittleEndian.AppendUint32(append(dst, 8), uint32(days))
		return binary.LittleEndian.AppendUint32(dst, uint32(ticks))
	case KindDate:
		days, _ := wallClock(v, epochDate)
		return appendDate(append(dst, 3), days)
	case KindDateTime2:
		days, nanos := wallClock(v, epochDate)
		days, units := roundNanos(days, nanos, t.Scale)
		return appendDate(appendTime(append(dst, byte(timeBytes(t.Scale)+3)), units, t.Scale), days)
	}
	panic(noValue(t, v))
}

// appendString adds text; nchar is padded with blanks to its full length.
func appendString(dst []byte, t Type, v string) []byte {
	data := AppendUTF16(make([]byte, 0, 2*len(v)), v)
	for t.Kind == KindNChar && len(data) < 2*t.Size {
		data = append(data, ' ', 0)
	}
	return appendSized(dst, t, data, 2*t.Size)
}

// appendSized adds bytes with a length of two bytes, or in one chunk for the (max) types.
func appendSized(dst []byte, t Type, data []byte, limit int) []byte {
	if !t.long() {
		if len(data) > limit {
			panic(noValue(t, data))
		}
		return append(binary.LittleEndian.AppendUint16(dst, uint16(len(data))), data...)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(data)))
	if len(data) > 0 {
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(data))), data...)
	}
	return append(dst, 0, 0, 0, 0)
}

const (
	dayNanos     = int64(24 * time.Hour)
	datetimeTick = 300 // datetime counts 1/300 s
)

// Days are counted from these dates, in the proleptic Gregorian calendar.
var (
	epochDate     = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	epochDateTime = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
)

var powersOfTen = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// wallClock splits what a clock shows at t, in t's own zone, into days from epoch and nanoseconds of the day.
func wallClock(t time.Time, epoch time.Time) (days, nanos int64) {
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	days = (midnight.Unix() - epoch.Unix()) / (24 * 3600)
	nanos = int64(t.Hour())*int64(time.Hour) + int64(t.Minute())*int64(time.Minute) +
		int64(t.Second())*int64(time.Second) + int64(t.Nanosecond())
	return days, nanos
}

// roundNanos gives nanos in units of 10^-scale s, rounded; a day's worth of units carries into days.
func roundNanos(days, nanos int64, scale int) (int64, int64) {
	unit := powersOfTen[9-scale]
	units := (nanos + unit/2) / unit
	if units*unit >= dayNanos {
		return days + 1, 0
	}
	return days, units
}

// datetimeTicks gives nanos in 1/300 s, rounded; a day's worth of ticks carries into days.
func datetimeTicks(days, nanos int64) (int64, int64) {
	ticks := (nanos*datetimeTick/1000 + 500_000) / 1_000_000
	if ticks >= 24*3600*datetimeTick {
		return days + 1, 0
	}
	return days, ticks
}

// appendTime adds a time of day in units of 10^-scale s.
func appendTime(dst []byte, units int64, scale int) []byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(units))
	return append(dst, b[:timeBytes(scale)]...)
}

// appendDate adds a date: three bytes of days since 0001-01-01.
func appendDate(dst []byte, days int64) []byte {
	return append(dst, byte(days), byte(days>>8), byte(days>>16))
}
