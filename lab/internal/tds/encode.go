package tds

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"time"
)

// appendType adds TYPE_INFO: always the variant of a type that can hold NULL.
func appendType(dst []byte, t Type) []byte {
	switch t.Kind {
	case KindInt8:
		return append(dst, wireIntN, 1)
	case KindInt16:
		return append(dst, wireIntN, 2)
	case KindInt32:
		return append(dst, wireIntN, 4)
	case KindInt64:
		return append(dst, wireIntN, 8)
	case KindBit:
		return append(dst, wireBitN, 1)
	case KindFloat:
		return append(dst, wireFloatN, 8)
	case KindDecimal:
		return append(dst, wireNumericN, byte(1+decimalBytes(t.Precision)), byte(t.Precision), byte(t.Scale))
	case KindMoney:
		return append(dst, wireMoneyN, 8)
	case KindDate:
		return append(dst, wireDate)
	case KindDateTime:
		return append(dst, wireDateTimeN, 8)
	case KindDateTime2:
		return append(dst, wireDateTime2, byte(t.Scale))
	case KindUniqueIdentifier:
		return append(dst, wireGUID, 16)
	case KindXML:
		return append(dst, wireXML, 0)
	}
	return appendSizedType(dst, t)
}

// appendSizedType adds TYPE_INFO of the character and binary kinds.
func appendSizedType(dst []byte, t Type) []byte {
	wire, size := byte(wireNVarChar), 2*t.Size
	switch t.Kind {
	case KindNChar:
		wire = wireNChar
	case KindVarBinary:
		wire, size = wireVarBinary, t.Size
	}
	switch {
	case t.long():
		size = plpLength
	case size == 0:
		size = 2 // no type has length 0, an empty text of one does
	}
	dst = binary.LittleEndian.AppendUint16(append(dst, wire), uint16(size))
	if t.Kind == KindVarBinary {
		return dst
	}
	return append(dst, collation[:]...)
}

// checkType refuses a type that cannot be described on the wire.
func checkType(t Type) error {
	bad := false
	switch t.Kind {
	case KindDecimal:
		bad = t.Precision < 1 || t.Precision > maxPrecision || t.Scale < 0 || t.Scale > t.Precision
	case KindDateTime2:
		bad = t.Scale < 0 || t.Scale > maxScale
	case KindNChar:
		bad = t.Size < 1 || t.Size > maxBytes/2
	case KindNVarChar, KindVarBinary:
		bad = t.Size < MaxSize
	default:
		bad = kindNames[t.Kind] == ""
	}
	if bad {
		return fmt.Errorf("no such type: %s, size %d, precision %d, scale %d", t.Kind, t.Size, t.Precision, t.Scale)
	}
	return nil
}

// appendValue adds a value with its length.
func appendValue(dst []byte, t Type, value any) ([]byte, error) {
	if value == nil {
		return appendNull(dst, t), nil
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
			return append(dst, 1, b2i(v)), nil
		}
	case float64:
		if t.Kind == KindFloat {
			return binary.LittleEndian.AppendUint64(append(dst, 8), math.Float64bits(v)), nil
		}
	case Decimal:
		if t.Kind == KindDecimal {
			return appendDecimal(dst, t, v)
		}
	case Money:
		if t.Kind == KindMoney {
			dst = binary.LittleEndian.AppendUint32(append(dst, 8), uint32(v>>32))
			return binary.LittleEndian.AppendUint32(dst, uint32(v)), nil
		}
	case time.Time:
		return appendMoment(dst, t, v)
	case string:
		return appendString(dst, t, v)
	case []byte:
		return appendBinary(dst, t, v)
	case [16]byte:
		if t.Kind == KindUniqueIdentifier {
			return appendGUID(dst, v), nil
		}
	}
	return dst, fmt.Errorf("a %T is no value of type %s", value, t.Kind)
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

func appendInteger(dst []byte, t Type, v int64) ([]byte, error) {
	switch {
	case t.Kind == KindInt8 && v == int64(uint8(v)):
		return append(dst, 1, byte(v)), nil
	case t.Kind == KindInt16 && v == int64(int16(v)):
		return append(dst, 2, byte(v), byte(v>>8)), nil
	case t.Kind == KindInt32 && v == int64(int32(v)):
		return binary.LittleEndian.AppendUint32(append(dst, 4), uint32(v)), nil
	case t.Kind == KindInt64:
		return binary.LittleEndian.AppendUint64(append(dst, 8), uint64(v)), nil
	}
	return dst, fmt.Errorf("%d does not fit type %s", v, t.Kind)
}

// appendDecimal adds a sign and the unscaled number at the column's scale, rounded half away from zero.
func appendDecimal(dst []byte, t Type, v Decimal) ([]byte, error) {
	if v.Unscaled == nil {
		return dst, fmt.Errorf("a decimal without a number")
	}
	n := new(big.Int).Abs(v.Unscaled)
	if up := t.Scale - v.Scale; up >= 0 {
		n.Mul(n, power10(up))
	} else {
		divisor := power10(-up)
		n.Add(n.Lsh(n, 1), divisor).Quo(n, divisor.Lsh(divisor, 1))
	}
	if n.Cmp(power10(t.Precision)) >= 0 {
		return dst, fmt.Errorf("%s with scale %d does not fit decimal(%d,%d)", v.Unscaled, v.Scale, t.Precision, t.Scale)
	}
	width := decimalBytes(t.Precision)
	dst = append(dst, byte(1+width), b2i(v.Unscaled.Sign() >= 0))
	var buf [16]byte
	n.FillBytes(buf[:])
	for i := range width {
		dst = append(dst, buf[15-i])
	}
	return dst, nil
}

func power10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// appendMoment adds a date, a time or both.
func appendMoment(dst []byte, t Type, v time.Time) ([]byte, error) {
	switch t.Kind {
	case KindDateTime:
		days, ticks := datetimeTicks(wallClock(v, epochDateTime))
		dst = binary.LittleEndian.AppendUint32(append(dst, 8), uint32(days))
		return binary.LittleEndian.AppendUint32(dst, uint32(ticks)), nil
	case KindDate:
		days, _ := wallClock(v, epochDate)
		return appendDate(append(dst, 3), days), nil
	case KindDateTime2:
		days, nanos := wallClock(v, epochDate)
		days, units := roundNanos(days, nanos, t.Scale)
		return appendDate(appendTime(append(dst, byte(timeBytes(t.Scale)+3)), units, t.Scale), days), nil
	}
	return dst, fmt.Errorf("a time is no value of type %s", t.Kind)
}

// appendString adds text; nchar is padded with blanks to its full length.
func appendString(dst []byte, t Type, v string) ([]byte, error) {
	if t.Kind != KindNVarChar && t.Kind != KindNChar && t.Kind != KindXML {
		return dst, fmt.Errorf("text is no value of type %s", t.Kind)
	}
	data := AppendUTF16(make([]byte, 0, 2*len(v)), v)
	for t.Kind == KindNChar && len(data) < 2*t.Size {
		data = append(data, ' ', 0)
	}
	return appendSized(dst, t, data, 2*t.Size)
}

func appendBinary(dst []byte, t Type, v []byte) ([]byte, error) {
	if t.Kind != KindVarBinary {
		return dst, fmt.Errorf("bytes are no value of type %s", t.Kind)
	}
	return appendSized(dst, t, v, t.Size)
}

// appendSized adds bytes with a length of two bytes, or in one chunk for the (max) types.
func appendSized(dst []byte, t Type, data []byte, limit int) ([]byte, error) {
	if !t.long() {
		if len(data) > limit {
			return dst, fmt.Errorf("%d bytes do not fit %s of %d bytes", len(data), t.Kind, limit)
		}
		return append(binary.LittleEndian.AppendUint16(dst, uint16(len(data))), data...), nil
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(data)))
	if len(data) > 0 {
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(data))), data...)
	}
	return append(dst, 0, 0, 0, 0), nil
}

// appendGUID adds a GUID: its first three groups travel little-endian.
func appendGUID(dst []byte, g [16]byte) []byte {
	dst = append(dst, 16, g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6])
	return append(dst, g[8:]...)
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
