package sqlserver

import (
	"strconv"

	"vnuma.dev/lab/internal/tsql"
)

// cteScope holds the common table expressions that a query can see.
type cteScope struct {
	name   string
	cte    tsql.CTE
	parent *cteScope
}

func (s *cteScope) find(name string) *cteScope {
	for ; s != nil; s = s.parent {
		if s.name == fold(name) {
			return s
		}
	}
	return nil
}

// query compiles a query expression.
func (c *compiler) query(q *tsql.Query) (plan, error) {
	inner := &compiler{run: c.run, ctes: c.ctes}
	for _, cte := range q.With {
		inner.ctes = &cteScope{name: fold(cte.Name), cte: cte, parent: inner.ctes}
	}
	return inner.body(q.Body, q)
}

// body compiles a body with the ORDER BY of its query.
func (c *compiler) body(b tsql.Body, q *tsql.Query) (plan, error) {
	switch b := b.(type) {
	case *tsql.Select:
		return c.selectBlock(b, q)
	case *tsql.Values:
		p, err := c.values(b)
		if err != nil {
			return nil, err
		}
		return p, unordered(q)
	case *tsql.Union:
		p, err := c.union(b)
		if err != nil {
			return nil, err
		}
		return p, unordered(q)
	}
	return nil, tsql.Unmodelled(q.Line, "this kind of query")
}

func (c *compiler) values(v *tsql.Values) (plan, error) {
	p := &valuesPlan{run: c.run, cols: make([]column, len(v.Rows[0]))}
	at := c.with(nil)
	for _, list := range v.Rows {
		row, err := at.exprs(list)
		if err != nil {
			return nil, err
		}
		for i, s := range row {
			p.cols[i].typ = unify(p.cols[i].typ, s.typ)
			p.cols[i].nullable = p.cols[i].nullable || s.nullable
		}
		p.rows = append(p.rows, row)
	}
	for _, row := range p.rows {
		for i := range row {
			row[i] = converted(row[i], p.cols[i].typ)
		}
	}
	return p, nil
}

func (c *compiler) union(s *tsql.Union) (plan, error) {
	none := &tsql.Query{}
	left, err := c.body(s.Left, none)
	if err != nil {
		return nil, err
	}
	right, err := c.body(s.Right, none)
	if err != nil {
		return nil, err
	}
	if len(left.columns()) != len(right.columns()) {
		return nil, tsql.Errorf(205, 0, "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal "+
			"number of expressions in their target lists.")
	}
	p := &unionPlan{cols: append([]column(nil), left.columns()...)}
	for i, col := range right.columns() {
		p.cols[i].typ = unify(p.cols[i].typ, col.typ)
		p.cols[i].nullable = p.cols[i].nullable || col.nullable
		p.cols[i].table = ""
	}
	p.left, p.right = c.coerced(left, p.cols), c.coerced(right, p.cols)
	if !s.All {
		return &distinctPlan{p}, nil
	}
	return p, nil
}

// coerced converts the columns of a plan to given types.
func (c *compiler) coerced(p plan, cols []column) plan {
	exprs := make([]scalar, len(cols))
	at := c.with(&scope{columns: p.columns()})
	same := true
	for i := range cols {
		exprs[i] = converted(at.columnAt(i), cols[i].typ)
		same = same && exprs[i].ref > 0
	}
	if same {
		return p
	}
	return &projectPlan{input: p, exprs: exprs, cols: cols, run: c.run}
}

func unordered(q *tsql.Query) error {
	if q.OrderBy != nil {
		return tsql.Unmodelled(q.Line, "ORDER BY of a UNION or of VALUES")
	}
	return nil
}

// outputPlace finds an ORDER BY item among output columns: by number or by name; -1 if it is neither.
func outputPlace(x tsql.Expr, cols []column) (int, error) {
	switch x := x.(type) {
	case *tsql.NumberLit:
		n, err := strconv.Atoi(x.Text)
		if err != nil || n < 1 || n > len(cols) {
			return 0, tsql.Errorf(108, 0, "The ORDER BY position number %s is out of range of the number of items in the select list.", x.Text)
		}
		return n - 1, nil
	case *tsql.ColumnRef:
		if len(x.Parts) > 1 {
			return -1, nil
		}
		for i, col := range cols {
			if fold(col.name) == fold(x.Object()) {
				return i, nil
			}
		}
	}
	return -1, nil
}

// limit applies TOP to a plan.
func (c *compiler) limit(p plan, top tsql.Expr) (plan, error) {
	if top == nil {
		return p, nil
	}
	take, err := c.with(nil).expr(top)
	return &limitPlan{input: p, take: converted(take, typeBigInt), run: c.run}, err
}

// subquery compiles a scalar subquery.
func (c *compiler) subquery(q *tsql.Query) (scalar, error) {
	p, err := c.query(q)
	if err != nil {
		return scalar{}, err
	}
	if len(p.columns()) != 1 {
		return scalar{}, tsql.Errorf(116, q.Line, "Only one expression can be specified in the select list when the subquery is "+
			"not introduced with EXISTS.")
	}
	return scalar{typ: p.columns()[0].typ, nullable: true, eval: once(func() (any, error) {
		var out any
		n := 0
		err := stoppable(p.each(func(row []any) error {
			if n++; n > 1 {
				return tsql.Errorf(512, q.Line, "Subquery returned more than 1 value. This is not permitted when the subquery "+
					"follows =, !=, <, <= , >, >= or when the subquery is used as an expression.")
			}
			out = row[0]
			return nil
		}))
		return out, err
	})}, nil
}

// once computes a value that is the same for every row at its first use.
func once(eval func() (any, error)) evalFunc {
	var done bool
	var value any
	return func([]any) (any, error) {
		if done {
			return value, nil
		}
		v, err := eval()
		done, value = err == nil, v
		return v, err
	}
}

func (c *compiler) inQuery(x *tsql.In) (scalar, error) {
	p, err := c.query(x.Query)
	if err != nil {
		return scalar{}, err
	}
	left, err := c.expr(x.X)
	if err != nil {
		return scalar{}, err
	}
	if len(p.columns()) != 1 {
		return scalar{}, tsql.Errorf(116, x.Query.Line, "Only one expression can be specified in the select list when the "+
			"subquery is not introduced with EXISTS.")
	}
	item := c.with(&scope{columns: p.columns()}).columnAt(0)
	left, item = toOneType(left, item)
	list := once(func() (any, error) {
		var values []any
		err := p.each(func(row []any) error {
			v, err := item.eval(row)
			values = append(values, v)
			return err
		})
		return values, err
	})
	return membership(left, list), nil
}

func membership(left scalar, list evalFunc) scalar {
	return test(func(row []any) (any, error) {
		v, err := left.eval(row)
		if err != nil || v == nil {
			return nil, err
		}
		values, err := list(row)
		if err != nil {
			return nil, err
		}
		unknown := false
		for _, w := range values.([]any) {
			if w == nil {
				unknown = true
			} else if compareValues(v, w) == 0 {
				return true, nil
			}
		}
		if unknown {
			return nil, nil
		}
		return false, nil
	})
}

// limitPlan is TOP.
type limitPlan struct {
	input plan
	take  scalar
	run   *run
}

func (p *limitPlan) columns() []column { return p.input.columns() }

func (p *limitPlan) each(yield func([]any) error) error {
	v, err := p.take.eval(nil)
	if err != nil {
		return err
	}
	take, ok := v.(int64)
	if !ok || take < 0 {
		return tsql.Errorf(127, 0, "A TOP N or FETCH rowcount value may not be negative.")
	}
	var n int64
	if take == 0 {
		return nil
	}
	return stoppable(p.input.each(func(row []any) error {
		n++
		if err := yield(row); err != nil || n < take {
			return err
		}
		return errStop
	}))
}
