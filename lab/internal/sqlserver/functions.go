package sqlserver

import (
	"math"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// function is a built-in scalar function. Arguments arrive as given by `args`, converted to those types
// when set; a NULL argument makes the result NULL unless nullable is set.
type function struct {
	least, most int
	args        tds.Type // type of every argument; zero = as they are
	result      func(args []scalar) tds.Type
	nulls       bool // the function handles NULL itself
	eval        func(r *run, args []any) (any, error)
}

func always(t tds.Type) func([]scalar) tds.Type { return func([]scalar) tds.Type { return t } }

func firstType(args []scalar) tds.Type { return args[0].typ }

// functions by lower-case name; filled by the files of the families.
var functions = map[string]function{}

func register(family map[string]function) {
	for name, f := range family {
		functions[name] = f
	}
}

func init() { register(mathFunctions) }

var mathFunctions = map[string]function{
	"abs":     {least: 1, most: 1, result: firstType, eval: absolute},
	"floor":   {least: 1, most: 1, args: typeFloat, result: always(typeFloat), eval: onFloat(math.Floor)},
	"ceiling": {least: 1, most: 1, args: typeFloat, result: always(typeFloat), eval: onFloat(math.Ceil)},
	"sqrt":    {least: 1, most: 1, args: typeFloat, result: always(typeFloat), eval: onFloat(math.Sqrt)},
	"log":     {least: 1, most: 1, args: typeFloat, result: always(typeFloat), eval: onFloat(math.Log)},
	"exp":     {least: 1, most: 1, args: typeFloat, result: always(typeFloat), eval: onFloat(math.Exp)},
	"power": {least: 2, most: 2, args: typeFloat, result: always(typeFloat), eval: func(_ *run, a []any) (any, error) {
		return math.Pow(a[0].(float64), a[1].(float64)), nil
	}},
	"sign": {least: 1, most: 1, args: typeFloat, result: always(typeInt), eval: func(_ *run, a []any) (any, error) {
		f := a[0].(float64)
		return boolInt(f > 0) - boolInt(f < 0), nil
	}},
	"round": {least: 2, most: 2, args: typeFloat, result: always(typeFloat), eval: func(_ *run, a []any) (any, error) {
		unit := math.Pow(10, a[1].(float64))
		return math.Round(a[0].(float64)*unit) / unit, nil
	}},
	"checksum":        {least: 1, most: 1024, nulls: true, result: always(typeInt), eval: checksumFunction(true)},
	"binary_checksum": {least: 1, most: 1024, nulls: true, result: always(typeInt), eval: checksumFunction(false)},
}

func onFloat(f func(float64) float64) func(*run, []any) (any, error) {
	return func(_ *run, args []any) (any, error) {
		v := f(args[0].(float64))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, tsql.Errorf(3623, 0, "An invalid floating point operation occurred.")
		}
		return v, nil
	}
}

func absolute(_ *run, args []any) (any, error) {
	switch v := args[0].(type) {
	case int64:
		return max(v, -v), nil
	case float64:
		return math.Abs(v), nil
	case tds.Money:
		return max(v, -v), nil
	case tds.Decimal:
		if v.Unscaled.Sign() < 0 {
			return decimalArithmetic("-", tds.NewDecimal(0, 0), v, decimalType(38, v.Scale))
		}
		return v, nil
	}
	return nil, failConversion(args[0], typeFloat)
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
	if x.Over != nil || aggregates[name] != nil {
		return scalar{}, tsql.Errorf(147, x.Name.Line, "An aggregate or window function may not appear here: '%s'.", x.Name.Object())
	}
	if special := specialForms[name]; special != nil {
		return special(c, x)
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
	return c.apply(f, args), nil
}

func (c *compiler) apply(f function, args []scalar) scalar {
	typ := f.result(args)
	for i := range args {
		args[i] = converted(args[i], f.args)
	}
	r := c.run
	return scalar{typ: typ, nullable: true, eval: func(fr *frame) (any, error) {
		values, err := evaluate(args, fr, make([]any, len(args)))
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

// specialForms are functions whose arguments are not plain values, or whose type follows from several of them.
var specialForms map[string]func(*compiler, *tsql.Call) (scalar, error)

func init() {
	specialForms = map[string]func(*compiler, *tsql.Call) (scalar, error){
		"coalesce": coalesce, "isnull": isNullFunction, "nullif": nullIf, "iif": iif,
		"datediff": dateDiff, "datediff_big": dateDiff, "dateadd": dateAdd, "datepart": datePart, "datename": dateName,
	}
}

func argumentCount(x *tsql.Call, n int) error {
	if len(x.Args) != n {
		return tsql.Errorf(174, x.Name.Line, "The %s function requires %d argument(s).", fold(x.Name.Object()), n)
	}
	return nil
}

func coalesce(c *compiler, x *tsql.Call) (scalar, error) {
	if len(x.Args) < 2 {
		return scalar{}, tsql.Errorf(102, x.Name.Line, "Incorrect syntax near ')'.")
	}
	form := &tsql.Case{}
	for _, arg := range x.Args[:len(x.Args)-1] {
		form.Whens = append(form.Whens, tsql.When{Cond: &tsql.IsNull{X: arg, Not: true}, Then: arg})
	}
	form.Else = x.Args[len(x.Args)-1]
	return c.caseExpr(form)
}

// isNullFunction has the type of its first argument, unlike COALESCE.
func isNullFunction(c *compiler, x *tsql.Call) (scalar, error) {
	if err := argumentCount(x, 2); err != nil {
		return scalar{}, err
	}
	args, err := c.exprs(x.Args)
	if err != nil {
		return scalar{}, err
	}
	typ := args[0].typ
	if typ.Kind == 0 {
		typ = args[1].typ
	}
	first, second := args[0], converted(args[1], typ)
	return scalar{typ: typ, nullable: second.nullable, eval: func(f *frame) (any, error) {
		v, err := first.eval(f)
		if err != nil || v != nil {
			return v, err
		}
		return second.eval(f)
	}}, nil
}

func nullIf(c *compiler, x *tsql.Call) (scalar, error) {
	if err := argumentCount(x, 2); err != nil {
		return scalar{}, err
	}
	return c.caseExpr(&tsql.Case{
		Whens: []tsql.When{{Cond: &tsql.Compare{Op: "=", L: x.Args[0], R: x.Args[1]}, Then: &tsql.NullLit{}}},
		Else:  x.Args[0],
	})
}

func iif(c *compiler, x *tsql.Call) (scalar, error) {
	if err := argumentCount(x, 3); err != nil {
		return scalar{}, err
	}
	return c.caseExpr(&tsql.Case{Whens: []tsql.When{{Cond: x.Args[0], Then: x.Args[1]}}, Else: x.Args[2]})
}
