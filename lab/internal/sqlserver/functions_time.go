package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

var timeFunctions = map[string]function{
	"sysdatetime":    clock(typeDT2),
	"sysutcdatetime": clock(typeDT2),
	"getdate":        clock(typeDateTime),
}

// clock is the time of the statement: the lab's guest runs on UTC.
func clock(t tds.Type) function {
	return function{result: always(t), eval: func(r *run, _ []any) (any, error) { return fitTime(r.now, t), nil }}
}

// dateParts are the parts of a date that have one length, by their names.
var dateParts = map[string]time.Duration{
	"day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond,
	"microsecond": time.Microsecond, "nanosecond": time.Nanosecond,
}

// datePart reads the first of an expected number of arguments.
func datePart(x *tsql.Call, args int) (time.Duration, error) {
	if len(x.Args) != args {
		return 0, tsql.Errorf(174, x.Name.Line, "The %s function requires %d argument(s).", fold(x.Name.Object()), args)
	}
	if ref, ok := x.Args[0].(*tsql.ColumnRef); ok {
		if part := dateParts[fold(ref.Object())]; part != 0 {
			return part, nil
		}
		return 0, tsql.Errorf(155, ref.Line, "'%s' is not a recognized %s option.", ref.Object(), fold(x.Name.Object()))
	}
	return 0, tsql.Errorf(1023, x.Name.Line, "Invalid parameter 1 specified for %s.", fold(x.Name.Object()))
}

func dateAdd(c *compiler, x *tsql.Call) (scalar, error) {
	part, err := datePart(x, 3)
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
		return fitTime(a[1].(time.Time).Add(time.Duration(a[0].(int64))*part), typ), nil
	}}, args), nil
}

// dateDiff counts the boundaries of a part between two times.
func dateDiff(c *compiler, x *tsql.Call) (scalar, error) {
	part, err := datePart(x, 3)
	if err != nil {
		return scalar{}, err
	}
	args, err := c.exprs(x.Args[1:])
	if err != nil {
		return scalar{}, err
	}
	return c.apply(function{args: typeDT2, result: always(typeInt), eval: func(_ *run, a []any) (any, error) {
		n := sinceEpoch(a[1].(time.Time), part) - sinceEpoch(a[0].(time.Time), part)
		if inRange(n, typeInt) != nil {
			return nil, tsql.Errorf(535, 0, "The datediff function resulted in an overflow. The number of dateparts separating "+
				"two date/time instances is too large. Try to use datediff with a less precise datepart.")
		}
		return n, nil
	}}, args), nil
}

// sinceEpoch counts whole units since 1900 without the overflow of time.Duration.
func sinceEpoch(t time.Time, unit time.Duration) int64 {
	seconds := t.Unix() - epoch.Unix()
	if unit >= time.Second {
		return seconds / int64(unit/time.Second)
	}
	return seconds*int64(time.Second/unit) + int64(t.Nanosecond())/int64(unit)
}
