package sqlserver

import "vnuma.dev/lab/internal/tsql"

// crossPlan is the product of two inputs; the inner one is computed once.
type crossPlan struct {
	left, right plan
	run         *run

	outerRows, innerRows int64 // of the last run
}

func (p *crossPlan) columns() []column { return joinColumns(p.left, p.right, "CROSS") }

func joinColumns(left, right plan, kind string) []column {
	out := append([]column(nil), left.columns()...)
	out = append(out, right.columns()...)
	for i := range out {
		fromLeft := i < len(left.columns())
		if kind == "FULL" || kind == "LEFT" && !fromLeft || kind == "RIGHT" && fromLeft || kind == "OUTER APPLY" && !fromLeft {
			out[i].nullable = true
		}
	}
	return out
}

func (p *crossPlan) each(f *frame, yield func([]any) error) error {
	inner, err := collect(p.right, f)
	if err != nil {
		return err
	}
	p.outerRows, p.innerRows = 0, int64(len(inner))
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	return p.left.each(f, func(row []any) error {
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

// joinPlan is an INNER, LEFT, RIGHT or FULL join, by nested loops unless a hash will do.
type joinPlan struct {
	kind        string
	left, right plan
	on          scalar
	equal       *equalities // nil: nested loops
	run         *run
}

func (p *joinPlan) columns() []column { return joinColumns(p.left, p.right, p.kind) }

func (p *joinPlan) nested(f *frame, yield func([]any) error) error {
	inner, err := collect(p.right, f)
	if err != nil {
		return err
	}
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	fr := &frame{outer: f, run: p.run, row: buffer}
	matchedInner := make([]bool, len(inner))
	err = p.left.each(f, func(row []any) error {
		copy(buffer, row)
		matched := false
		for i, in := range inner {
			copy(buffer[width:], in)
			v, err := p.on.eval(fr)
			if err != nil {
				return err
			}
			if v != true {
				continue
			}
			matched, matchedInner[i] = true, true
			if err := yield(buffer); err != nil {
				return err
			}
		}
		if !matched && (p.kind == "LEFT" || p.kind == "FULL") {
			clear(buffer[width:])
			return yield(buffer)
		}
		return p.run.ended()
	})
	if err != nil || p.kind != "RIGHT" && p.kind != "FULL" {
		return err
	}
	return unmatched(inner, matchedInner, buffer, width, yield)
}

// unmatched hands over the inner rows that no outer row met.
func unmatched(inner [][]any, matched []bool, buffer []any, width int, yield func([]any) error) error {
	clear(buffer[:width])
	for i, in := range inner {
		if matched[i] {
			continue
		}
		copy(buffer[width:], in)
		if err := yield(buffer); err != nil {
			return err
		}
	}
	return nil
}

// applyPlan runs its right side once per left row, which that side can see.
type applyPlan struct {
	left, right plan
	outer       bool
	run         *run
}

func (p *applyPlan) columns() []column {
	if p.outer {
		return joinColumns(p.left, p.right, "OUTER APPLY")
	}
	return joinColumns(p.left, p.right, "CROSS")
}

func (p *applyPlan) each(f *frame, yield func([]any) error) error {
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	return p.left.each(f, func(row []any) error {
		copy(buffer, row)
		found := false
		err := p.right.each(&frame{row: row, outer: f, run: p.run}, func(in []any) error {
			found = true
			copy(buffer[width:], in)
			return yield(buffer)
		})
		if err != nil || found || !p.outer {
			return err
		}
		clear(buffer[width:])
		return yield(buffer)
	})
}

// tableRef compiles one source of rows of a FROM clause.
func (c *compiler) tableRef(ref tsql.TableRef) (plan, error) {
	switch ref := ref.(type) {
	case *tsql.Table:
		return c.table(ref)
	case *tsql.Derived:
		p, err := c.query(ref.Query, c.scope)
		if err != nil {
			return nil, err
		}
		return aliased(p, ref.Alias, ref.Columns, ref.Query.Line)
	case *tsql.TableFunction:
		return c.tableFunction(ref)
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
	if j.Kind == "CROSS APPLY" || j.Kind == "OUTER APPLY" {
		right, err := c.with(&scope{columns: left.columns(), outer: c.scope}).tableRef(j.Right)
		return &applyPlan{left: left, right: right, outer: j.Kind == "OUTER APPLY", run: c.run}, err
	}
	right, err := c.tableRef(j.Right)
	if err != nil {
		return nil, err
	}
	if err := distinctAliases(left, right); err != nil {
		return nil, err
	}
	if j.Kind == "CROSS" {
		return &crossPlan{left: left, right: right, run: c.run}, nil
	}
	p := &joinPlan{kind: j.Kind, left: left, right: right, run: c.run, equal: c.equalities(j.On, left, right)}
	p.on, err = c.with(&scope{columns: p.columns(), outer: c.scope}).expr(j.On)
	return p, err
}

// distinctAliases refuses the same exposed name on both sides.
func distinctAliases(left, right plan) error {
	seen := map[string]bool{}
	for _, col := range left.columns() {
		seen[col.table] = true
	}
	for _, col := range right.columns() {
		if col.table != "" && seen[col.table] {
			return tsql.Errorf(1011, 0, "The correlation name '%s' is specified multiple times in a FROM clause.", col.table)
		}
	}
	return nil
}

// renamed shows a plan's columns under other names.
type renamedPlan struct {
	plan
	cols []column
}

func (p *renamedPlan) columns() []column { return p.cols }

// aliased gives a plan an alias and perhaps column names.
func aliased(p plan, alias string, names []string, line int) (plan, error) {
	cols := append([]column(nil), p.columns()...)
	if names != nil && len(names) != len(cols) {
		return nil, tsql.Errorf(8158, line, "'%s' has %s columns than were specified in the column list.", alias, moreOrFewer(len(cols), len(names)))
	}
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

func moreOrFewer(have, want int) string {
	if have > want {
		return "more"
	}
	return "fewer"
}
