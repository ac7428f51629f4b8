package sqlserver

import (
	"maps"
	"math/rand/v2"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// function is a built-in scalar function. A NULL argument makes its result NULL, unless it handles NULL itself.
type function struct {
	least, most int
	args        tds.Type // the type to which every argument is converted; zero: none
	result      func(args []scalar) tds.Type
	nulls       bool // it handles NULL itself
	eval        func(r *run, args []any) (any, error)
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
func random(r *run, _ []any) (any, error) {
	if r.random == nil {
		v := rand.Float64()
		r.random = &v
	}
	return *r.random, nil
}

func checksumFunction(ignoreCase bool) func(*run, []any) (any, error) {
	return func(_ *run, args []any) (any, error) {
		var sum uint32
		for _, v := range args {
			sum = foldChecksum(sum, checksumOf(v, ignoreCase))
		}
		return int64(int32(sum)), nil
	}
}

// call compiles a function call.
func (c *compiler) call(x *tsql.Call) (scalar, error) {
	name := fold(x.Name.Object())
	if len(x.Name.Parts) > 1 {
		return scalar{}, tsql.Errorf(4121, x.Name.Line, "Cannot find either column \"%s\" or the user-defined function or aggregate "+
			"\"%s\", or the name is ambiguous.", x.Name.Parts[0], strings.Join(x.Name.Parts, "."))
	}
	switch name { // its first argument is a date part
	case "dateadd":
		return dateAdd(c, x)
	}
	f, ok := functions[name]
	if !ok {
		return scalar{}, tsql.Errorf(195, x.Name.Line, "'%s' is not a recognized built-in function name.", x.Name.Object())
	}
	if len(x.Args) < f.least || len(x.Args) > f.most || x.Star {
		return scalar{}, tsql.Errorf(174, x.Name.Line, "The %s function requires %d argument(s).", name, f.least)
	}
	args, err := c.exprs(x.Args)
	if err != nil {
		return scalar{}, err
	}
	if name == "replicate" && isText(args[0].typ.Kind) && args[0].typ.Size < 0 {
		f = replicateMax
	}
	return c.apply(f, args), nil
}

func (c *compiler) apply(f function, args []scalar) scalar {
	typ := f.result(args)
	for i := range args {
		args[i] = converted(args[i], f.args)
	}
	r := c.run
	return scalar{typ: typ, nullable: true, eval: func(row []any) (any, error) {
		values, err := evaluate(args, row, make([]any, len(args)))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if v == nil && !f.nulls {
				return nil, nil
			}
		}
		return f.eval(r, values)
	}}
}
