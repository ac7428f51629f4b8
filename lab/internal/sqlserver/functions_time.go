package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

var timeFunctions = map[string]function{
	"sysutcdatetime": clock(typeDT2),
	"getdate":        clock(typeDateTime),
}

// clock is the time of the statement: the lab's guest runs on UTC.
func clock(t tds.Type) function {
	return function{result: always(t), eval: func(r *run, _ []any) (any, error) { return fitTime(r.now, t), nil }}
}

// dateParts are the date parts of a fixed length, by name.
var dateParts = map[string]time.Duration{
	"day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond,
}

// datePart reads the first of three arguments.
func datePart(x *tsql.Call) (time.Duration, error) {
	if len(x.Args) != 3 {
		return 0, tsql.Errorf(174, x.Name.Line, "The %s function requires 3 argument(s).", fold(x.Name.Object()))
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
	part, err := datePart(x)
	if err != nil {
		return scalar{}, err
	}
	args, err := c.exprs(x.Args[1:])
	if err != nil {
		return scalar{}, err
	}
	typ := args[1].typ
	args[0], args[1] = converted(args[0], typeInt), converted(args[1], typ)
	return c.apply(function{result: always(typ), eval: func(_ *run, a []any) (any, error) {
		return fitTime(a[1].(time.Time).Add(time.Duration(a[0].(int64))*part), typ), nil
	}}, args), nil
}
