package sqlserver

import (
	"strconv"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

func init() { register(timeFunctions) }

var timeFunctions = map[string]function{
	"sysdatetime":       clock(typeDT2),
	"sysutcdatetime":    clock(typeDT2),
	"getdate":           clock(typeDateTime),
	"getutcdate":        clock(typeDateTime),
	"current_timestamp": clock(typeDateTime),
	"year":              partOf("year"),
	"month":             partOf("month"),
	"day":               partOf("day"),
}

// clock is the time of the statement: the lab's guest runs on UTC.
func clock(t tds.Type) function {
	return function{result: always(t), eval: func(r *run, _ []any) (any, error) { return fitTime(r.now, t), nil }}
}

func partOf(part string) function {
	return function{least: 1, most: 1, args: typeDT2, result: always(typeInt), eval: func(_ *run, a []any) (any, error) {
		return timePart(part, a[0].(time.Time)), nil
	}}
}

// dateParts maps the names and abbreviations of date parts.
var dateParts = map[string]string{
	"year": "year", "yy": "year", "yyyy": "year", "quarter": "quarter", "qq": "quarter", "month": "month", "mm": "month",
	"m": "month", "day": "day", "dd": "day", "d": "day", "dayofyear": "dayofyear", "week": "week", "wk": "week",
	"ww": "week", "weekday": "weekday", "dw": "weekday", "hour": "hour", "hh": "hour", "minute": "minute", "mi": "minute",
	"n": "minute", "second": "second", "ss": "second", "s": "second", "millisecond": "millisecond", "ms": "millisecond",
	"microsecond": "microsecond", "mcs": "microsecond", "nanosecond": "nanosecond", "ns": "nanosecond",
}

// fixedParts are the parts of one length.
var fixedParts = map[string]time.Duration{
	"week": 7 * 24 * time.Hour, "day": 24 * time.Hour, "dayofyear": 24 * time.Hour, "weekday": 24 * time.Hour,
	"hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond,
	"microsecond": time.Microsecond, "nanosecond": time.Nanosecond,
}

func datePartName(x *tsql.Call, args int) (string, error) {
	if err := argumentCount(x, args); err != nil {
		return "", err
	}
	if ref, ok := x.Args[0].(*tsql.ColumnRef); ok {
		if part := dateParts[fold(ref.Object())]; part != "" {
			return part, nil
		}
		return "", tsql.Errorf(155, ref.Line, "'%s' is not a recognized %s option.", ref.Object(), fold(x.Name.Object()))
	}
	return "", tsql.Errorf(1023, x.Name.Line, "Invalid parameter 1 specified for %s.", fold(x.Name.Object()))
}

func timePart(part string, t time.Time) int64 {
	switch part {
	case "year":
		return int64(t.Year())
	case "quarter":
		return int64(t.Month()+2) / 3
	case "month":
		return int64(t.Month())
	case "day":
		return int64(t.Day())
	case "dayofyear":
		return int64(t.YearDay())
	case "week":
		_, week := t.ISOWeek()
		return int64(week)
	case "weekday":
		return int64(t.Weekday()) + 1
	case "hour":
		return int64(t.Hour())
	case "minute":
		return int64(t.Minute())
	case "second":
		return int64(t.Second())
	case "millisecond":
		return int64(t.Nanosecond() / 1e6)
	case "microsecond":
		return int64(t.Nanosecond() / 1e3)
	}
	return int64(t.Nanosecond())
}

func datePart(c *compiler, x *tsql.Call) (scalar, error) {
	part, err := datePartName(x, 2)
	if err != nil {
		return scalar{}, err
	}
	arg, err := c.expr(x.Args[1])
	if err != nil {
		return scalar{}, err
	}
	return c.apply(function{args: typeDT2, result: always(typeInt), eval: func(_ *run, a []any) (any, error) {
		return timePart(part, a[0].(time.Time)), nil
	}}, []scalar{arg}), nil
}

func dateName(c *compiler, x *tsql.Call) (scalar, error) {
	part, err := datePartName(x, 2)
	if err != nil {
		return scalar{}, err
	}
	arg, err := c.expr(x.Args[1])
	if err != nil {
		return scalar{}, err
	}
	return c.apply(function{args: typeDT2, result: always(textType(30)), eval: func(_ *run, a []any) (any, error) {
		t := a[0].(time.Time)
		switch part {
		case "month":
			return t.Month().String(), nil
		case "weekday":
			return t.Weekday().String(), nil
		}
		return strconv.FormatInt(timePart(part, t), 10), nil
	}}, []scalar{arg}), nil
}

func dateAdd(c *compiler, x *tsql.Call) (scalar, error) {
	part, err := datePartName(x, 3)
	if err != nil {
		return scalar{}, err
	}
	args, err := c.exprs(x.Args[1:])
	if err != nil {
		return scalar{}, err
	}
	typ := args[1].typ
	if !isTime(typ.Kind) {
		typ = typeDateTime
	}
	args[0], args[1] = converted(args[0], typeInt), converted(args[1], typ)
	return c.apply(function{result: always(typ), eval: func(_ *run, a []any) (any, error) {
		return fitTime(addParts(part, int(a[0].(int64)), a[1].(time.Time)), typ), nil
	}}, args), nil
}

func addParts(part string, n int, t time.Time) time.Time {
	switch part {
	case "year":
		return addMonths(t, 12*n)
	case "quarter":
		return addMonths(t, 3*n)
	case "month":
		return addMonths(t, n)
	case "day", "dayofyear", "weekday":
		return t.AddDate(0, 0, n)
	}
	return t.Add(time.Duration(n) * fixedParts[part])
}

// addMonths keeps the day of the month, or takes the last one.
func addMonths(t time.Time, n int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}

func dateDiff(c *compiler, x *tsql.Call) (scalar, error) {
	part, err := datePartName(x, 3)
	if err != nil {
		return scalar{}, err
	}
	args, err := c.exprs(x.Args[1:])
	if err != nil {
		return scalar{}, err
	}
	typ := typeInt
	if fold(x.Name.Object()) == "datediff_big" {
		typ = typeBigInt
	}
	return c.apply(function{args: typeDT2, result: always(typ), eval: func(_ *run, a []any) (any, error) {
		n := boundaries(part, a[0].(time.Time), a[1].(time.Time))
		if inRange(n, typ) != nil {
			return nil, tsql.Errorf(535, 0, "The datediff function resulted in an overflow. The number of dateparts separating "+
				"two date/time instances is too large. Try to use datediff with a less precise datepart.")
		}
		return n, nil
	}}, args), nil
}

// boundaries counts the boundaries of a part between two times, as DATEDIFF does.
func boundaries(part string, from, to time.Time) int64 {
	months := int64(to.Year()-from.Year())*12 + int64(to.Month()) - int64(from.Month())
	switch part {
	case "year":
		return int64(to.Year() - from.Year())
	case "quarter":
		return (int64(to.Year())*4 + timePart("quarter", to)) - (int64(from.Year())*4 + timePart("quarter", from))
	case "month":
		return months
	case "week":
		return weekNumber(to) - weekNumber(from)
	}
	unit := fixedParts[part]
	return sinceEpoch(to, unit) - sinceEpoch(from, unit)
}

// weekNumber counts weeks that start on Sunday.
func weekNumber(t time.Time) int64 { return (sinceEpoch(t, 24*time.Hour) + 1) / 7 }

// sinceEpoch counts whole units since 1900 without the overflow of time.Duration.
func sinceEpoch(t time.Time, unit time.Duration) int64 {
	seconds := t.Unix() - epoch.Unix()
	if unit >= time.Second {
		return seconds / int64(unit/time.Second)
	}
	return seconds*int64(time.Second/unit) + int64(t.Nanosecond())/int64(unit)
}
