package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// variable compiles @v and @@v.
func (c *compiler) variable(x *tsql.VarRef) (scalar, error) {
	if strings.HasPrefix(x.Name, "@@") {
		f, ok := globals[x.Name]
		if !ok {
			return scalar{}, tsql.Errorf(137, x.Line, "Must declare the scalar variable \"%s\".", x.Name)
		}
		return c.apply(f, nil), nil
	}
	v := c.run.batch.vars[x.Name]
	if v == nil {
		return scalar{}, tsql.Errorf(137, x.Line, "Must declare the scalar variable \"%s\".", x.Name)
	}
	return scalar{typ: v.typ, nullable: true, eval: func([]any) (any, error) { return v.value, nil }}, nil
}

func global(t tds.Type, eval func(r *run) any) function {
	return function{result: always(t), eval: func(r *run, _ []any) (any, error) { return eval(r), nil }}
}

// globals are the @@ functions.
var globals = map[string]function{
	"@@version":  global(textType(300), func(r *run) any { return r.inst.banner() }),
	"@@error":    global(typeInt, func(r *run) any { return int64(r.s.lastError) }),
	"@@rowcount": global(typeInt, func(r *run) any { return r.s.rowCount }),
	"@@spid":     global(typeSmallInt, func(r *run) any { return int64(r.s.id) }),
}
