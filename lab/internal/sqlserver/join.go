package sqlserver

import "vnuma.dev/lab/internal/tsql"

// crossPlan is the product of two inputs; the inner one is computed once.
type crossPlan struct {
	left, right plan
	run         *run

	outerRows, innerRows int64 // of the last run
}

func (p *crossPlan) columns() []column { return joinColumns(p.left, p.right, false) }

// joinColumns are the columns of both sides; those of the right one may be NULL in an outer join.
func joinColumns(left, right plan, outer bool) []column {
	out := append(append([]column(nil), left.columns()...), right.columns()...)
	for i := len(left.columns()); outer && i < len(out); i++ {
		out[i].nullable = true
	}
	return out
}

func (p *crossPlan) each(yield func([]any) error) error {
	inner, err := collect(p.right)
	if err != nil {
		return err
	}
	p.outerRows, p.innerRows = 0, int64(len(inner))
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	return p.left.each(func(row []any) error {
		if err := p.run.ended(); err != nil {
			return err
		}
		p.outerRows++
		copy(buffer, row)
		for _, in := range inner {
			copy(buffer[width:], in)
			if err := yield(buffer); err != nil {
				return err
			}
		}
		return nil
	})
}

// joinPlan is an INNER or LEFT join, by hash if possible, otherwise by nested loops.
type joinPlan struct {
	outer       bool // LEFT
	left, right plan
	on          scalar
	equal       *equalities // nil: nested loops
	run         *run
}

func (p *joinPlan) columns() []column { return joinColumns(p.left, p.right, p.outer) }

// tableRef compiles one source of rows of a FROM clause.
func (c *compiler) tableRef(ref tsql.TableRef) (plan, error) {
	switch ref := ref.(type) {
	case *tsql.Table:
		return c.table(ref)
	case *tsql.Derived:
		p, err := c.query(ref.Query)
		if err != nil {
			return nil, err
		}
		return aliased(p, ref.Alias, ref.Columns, ref.Query.Line)
	case *tsql.Join:
		return c.join(ref)
	}
	return nil, tsql.Unmodelled(0, "this kind of table source")
}

func (c *compiler) join(j *tsql.Join) (plan, error) {
	left, err := c.tableRef(j.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.tableRef(j.Right)
	if err != nil {
		return nil, err
	}
	if j.Kind == "CROSS" {
		return &crossPlan{left: left, right: right, run: c.run}, nil
	}
	p := &joinPlan{outer: j.Kind == "LEFT", left: left, right: right, run: c.run, equal: c.equalities(j.On, left, right)}
	p.on, err = c.with(&scope{columns: p.columns()}).expr(j.On)
	return p, err
}

// renamed is a plan with other column names.
type renamedPlan struct {
	plan
	cols []column
}

func (p *renamedPlan) columns() []column { return p.cols }

// aliased gives a plan an alias and perhaps column names.
func aliased(p plan, alias string, names []string, line int) (plan, error) {
	cols := append([]column(nil), p.columns()...)
	for i := range cols {
		cols[i].table = fold(alias)
		if names != nil {
			cols[i].name = names[i]
		}
		if cols[i].name == "" {
			return nil, tsql.Errorf(8155, line, "No column name was specified for column %d of '%s'.", i+1, alias)
		}
	}
	return &renamedPlan{plan: p, cols: cols}, nil
}
