package sqlserver

import (
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// function is a built-in scalar function. A NULL argument makes its result NULL, unless it handles NULL itself.
type function struct {
	least, most int
	args        tds.Type // the type to which every argument is converted; zero: none
	result      func(args []scalar) tds.Type
	nulls       bool // it handles NULL itself
	eval        func(r *run, args []any) any
}

func always(t tds.Type) func([]scalar) tds.Type { return func([]scalar) tds.Type { return t } }

// functions by lower-case name.
var functions = map[string]function{}

func init() {
	for _, family := range []map[string]function{numberFunctions, textFunctions, timeFunctions, metaFunctions} {
		maps.Copy(functions, family)
	}
}

var numberFunctions = map[string]function{
	"checksum":        {least: 1, most: 1024, nulls: true, result: always(typeInt), eval: checksumFunction(true)},
	"binary_checksum": {least: 1, most: 1024, nulls: true, result: always(typeInt), eval: checksumFunction(false)},
	"rand":            {result: always(typeFloat), eval: random},
}

// random is RAND: one number for a whole statement, as on the server.
func random(r *run, _ []any) any {
	if r.random == nil {
		v := rand.Float64()
		r.random = &v
	}
	return *r.random
}

func checksumFunction(ignoreCase bool) func(*run, []any) any {
	return func(_ *run, args []any) any {
		var sum uint32
		for _, v := range args {
			sum = foldChecksum(sum, checksumOf(v, ignoreCase))
		}
		return int64(int32(sum))
	}
}

// columnsOfChecksum are the arguments if all are columns, otherwise nil.
func columnsOfChecksum(args []scalar, ignoreCase bool) *checksummed {
	c := &checksummed{ignoreCase: ignoreCase}
	for _, arg := range args {
		if arg.ref == 0 {
			return nil
		}
		c.places = append(c.places, arg.ref-1)
	}
	return c
}

// call compiles a function call.
func (c *compiler) call(x *tsql.Call) scalar {
	name := fold(x.Name.Object())
	if len(x.Name.Parts) > 1 {
		panic(tsql.Errorf(4121, x.Name.Line, "Cannot find either column \"%s\" or the user-defined function or aggregate "+
			"\"%s\", or the name is ambiguous.", x.Name.Parts[0], strings.Join(x.Name.Parts, ".")))
	}
	if name == "dateadd" {
		return dateAdd(c, x)
	}
	f, ok := functions[name]
	if !ok {
		panic(tsql.Errorf(195, x.Name.Line, "'%s' is not a recognized built-in function name.", x.Name.Object()))
	}
	if len(x.Args) < f.least || len(x.Args) > f.most || x.Star {
		panic(tsql.Errorf(174, x.Name.Line, "The %s function requires %d argument(s).", name, f.least))
	}
	args := c.exprs(x.Args)
	if name == "replicate" && isText(args[0].typ.Kind) && args[0].typ.Size < 0 {
		f = replicateMax
	}
	_, pure := textFunctions[name]
	made := c.apply(f, args)
	if strings.HasSuffix(name, "checksum") {
		made.checksum, pure = columnsOfChecksum(args, name == "checksum"), true
	}
	c.run.use.volatile = c.run.use.volatile || !pure
	return made
}

func (c *compiler) apply(f function, args []scalar) scalar {
	typ := f.result(args)
	for i := range args {
		args[i] = converted(args[i], f.args)
	}
	r := c.run
	return scalar{typ: typ, nullable: true, eval: func(row []any) any {
		values := evaluate(args, row, make([]any, len(args)))
		for _, v := range values {
			if v == nil && !f.nulls {
				return nil
			}
		}
		return f.eval(r, values)
	}}
}

var anyText = textType(-1)

var textFunctions = map[string]function{
	"rtrim": {least: 1, most: 1, args: anyText, result: sizedLikeFirst, eval: func(_ *run, a []any) any {
		return strings.TrimRight(a[0].(string), " ")
	}},
	"right":     {least: 2, most: 2, result: sizedLikeFirst, eval: right},
	"replicate": {least: 2, most: 2, result: always(textType(mostUnits)), eval: replicate},
}

const (
	mostUnits  = 4000     // UTF-16 units of a sized nvarchar
	mostRepeat = 16 << 20 // bytes of one REPLICATE; SQL Server: 2 GB
)

func sizedLikeFirst(args []scalar) tds.Type {
	if isText(args[0].typ.Kind) {
		return textType(args[0].typ.Size)
	}
	return textType(mostUnits)
}

// textAndNumber are the two arguments of such functions.
func textAndNumber(args []any) (text string, n int64) {
	return toText(args[0]), wholeNumber(args[1], typeInt)
}

func right(_ *run, args []any) any {
	s, n := textAndNumber(args)
	if n < 0 {
		panic(tsql.Errorf(536, 0, "Invalid length parameter passed to the RIGHT function."))
	}
	length := tds.LenUTF16(s)
	return tds.CutUTF16(s, int(max(0, int64(length)-n)), length)
}

// replicate cuts its result at 8,000 bytes (REPLICATE, Transact-SQL reference).
func replicate(_ *run, args []any) any {
	s, n := textAndNumber(args)
	if n < 0 {
		return nil
	}
	return tds.CutUTF16(strings.Repeat(s, int(min(n, mostUnits))), 0, mostUnits)
}

// replicateMax is REPLICATE of a text of a max type, which it does not cut.
var replicateMax = function{least: 2, most: 2, result: always(anyText), eval: func(_ *run, args []any) any {
	s, n := textAndNumber(args)
	switch {
	case n < 0:
		return nil
	case n > mostRepeat/int64(max(len(s), 1)):
		panic(tsql.Unmodelled(0, "REPLICATE of more than 16 MB"))
	}
	return strings.Repeat(s, int(n))
}}

var timeFunctions = map[string]function{
	"sysutcdatetime": clock(typeDT2),
	"getdate":        clock(typeDateTime),
}

// clock is the time of the statement: the lab's guest runs on UTC.
func clock(t tds.Type) function {
	return function{result: always(t), eval: func(r *run, _ []any) any { return fitTime(r.now, t) }}
}

// dateParts are the date parts of a fixed length, by name.
var dateParts = map[string]time.Duration{
	"day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond,
}

// datePart reads the first of three arguments.
func datePart(x *tsql.Call) time.Duration {
	if len(x.Args) != 3 {
		panic(tsql.Errorf(174, x.Name.Line, "The %s function requires 3 argument(s).", fold(x.Name.Object())))
	}
	if ref, ok := x.Args[0].(*tsql.ColumnRef); ok {
		if part := dateParts[fold(ref.Object())]; part != 0 {
			return part
		}
		panic(tsql.Errorf(155, ref.Line, "'%s' is not a recognized %s option.", ref.Object(), fold(x.Name.Object())))
	}
	panic(tsql.Errorf(1023, x.Name.Line, "Invalid parameter 1 specified for %s.", fold(x.Name.Object())))
}

func dateAdd(c *compiler, x *tsql.Call) scalar {
	part := datePart(x)
	args := c.exprs(x.Args[1:])
	typ := args[1].typ
	args[0], args[1] = converted(args[0], typeInt), converted(args[1], typ)
	return c.apply(function{result: always(typ), eval: func(_ *run, a []any) any {
		return fitTime(a[1].(time.Time).Add(time.Duration(a[0].(int64))*part), typ)
	}}, args)
}

// variable compiles @v and @@v.
func (c *compiler) variable(x *tsql.VarRef) scalar {
	c.run.use.volatile = true
	if strings.HasPrefix(x.Name, "@@") {
		f, ok := globals[x.Name]
		if !ok {
			panic(tsql.Errorf(137, x.Line, "Must declare the scalar variable \"%s\".", x.Name))
		}
		return c.apply(f, nil)
	}
	v := c.run.batch.vars[x.Name]
	if v == nil {
		panic(tsql.Errorf(137, x.Line, "Must declare the scalar variable \"%s\".", x.Name))
	}
	return scalar{typ: v.typ, nullable: true, eval: func([]any) any { return v.value }}
}

func global(t tds.Type, eval func(r *run) any) function {
	return function{result: always(t), eval: func(r *run, _ []any) any { return eval(r) }}
}

// globals are the @@ functions.
var globals = map[string]function{
	"@@version":  global(textType(300), func(r *run) any { return r.inst.banner() }),
	"@@error":    global(typeInt, func(r *run) any { return int64(r.s.lastError) }),
	"@@rowcount": global(typeInt, func(r *run) any { return r.s.rowCount }),
	"@@spid":     global(typeSmallInt, func(r *run) any { return int64(r.s.id) }),
}
