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
