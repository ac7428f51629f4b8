package tds

import (
	"encoding/binary"
	"time"
)

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
