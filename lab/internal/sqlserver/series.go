package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// tableFunction compiles GENERATE_SERIES.
func (c *compiler) tableFunction(ref *tsql.TableFunction) (plan, error) {
	name := fold(strings.Join(ref.Call.Name.Parts, "."))
	args, err := c.with(&scope{outer: c.scope}).exprs(ref.Call.Args)
	if err != nil {
		return nil, err
	}
	if name != "generate_series" || !c.run.inst.version.atLeast(16, 0, 0) || len(args) < 2 || len(args) > 3 {
		return nil, tsql.Errorf(208, ref.Call.Name.Line, "Invalid object name '%s'.", strings.Join(ref.Call.Name.Parts, "."))
	}
	p := &seriesPlan{args: args, run: c.run, cols: []column{{name: "value", typ: unify(args[0].typ, args[1].typ)}}}
	alias := ref.Alias
	if alias == "" {
		alias = ref.Call.Name.Object()
	}
	return aliased(p, alias, ref.Columns, ref.Call.Name.Line)
}

// seriesPlan is GENERATE_SERIES(start, stop, step) for integers.
type seriesPlan struct {
	args []scalar
	cols []column
	run  *run
}

func (p *seriesPlan) columns() []column { return p.cols }

func (p *seriesPlan) each(f *frame, yield func([]any) error) error {
	bounds := [3]int64{2: 1}
	for i, s := range p.args {
		v, err := converted(s, tds.Type{Kind: tds.KindInt64}).eval(&frame{outer: f, run: p.run})
		if err != nil {
			return err
		}
		n, ok := v.(int64)
		if !ok || i == 2 && n == 0 {
			return tsql.Errorf(4199, 0, "Argument value %d is invalid for argument %d of generate_series function.", n, i+1)
		}
		bounds[i] = n
	}
	if len(p.args) == 2 && bounds[1] < bounds[0] {
		bounds[2] = -1
	}
	row := make([]any, 1)
	for n := bounds[0]; bounds[2] > 0 && n <= bounds[1] || bounds[2] < 0 && n >= bounds[1]; n += bounds[2] {
		row[0] = n
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}
