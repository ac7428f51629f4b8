package sqlserver

import (
	"strconv"
	"sync"

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
func (c *compiler) query(q *tsql.Query) plan {
	inner := &compiler{run: c.run, ctes: c.ctes}
	for _, cte := range q.With {
		inner.ctes = &cteScope{name: fold(cte.Name), cte: cte, parent: inner.ctes}
	}
	return inner.body(q.Body, q)
}

// body compiles a body with the ORDER BY of its query.
func (c *compiler) body(b tsql.Body, q *tsql.Query) plan {
	switch b := b.(type) {
	case *tsql.Select:
		return c.selectBlock(b, q)
	case *tsql.Values:
		unordered(q)
		return c.values(b)
	case *tsql.Union:
		unordered(q)
		return c.union(b)
	}
	panic(tsql.Unmodelled(q.Line, "this kind of query"))
}

func (c *compiler) values(v *tsql.Values) plan {
	p := &valuesPlan{source: source{make([]column, len(v.Rows[0]))}, run: c.run}
	at := c.with(nil)
	for _, list := range v.Rows {
		row := at.exprs(list)
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
	return p
}

func (c *compiler) union(s *tsql.Union) plan {
	none := &tsql.Query{}
	left := c.body(s.Left, none)
	right := c.body(s.Right, none)
	if len(left.columns()) != len(right.columns()) {
		panic(tsql.Errorf(205, 0, "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal "+
			"number of expressions in their target lists."))
	}
	p := &unionPlan{cols: append([]column(nil), left.columns()...)}
	for i, col := range right.columns() {
		p.cols[i].typ = unify(p.cols[i].typ, col.typ)
		p.cols[i].nullable = p.cols[i].nullable || col.nullable
		p.cols[i].table = ""
	}
	p.left, p.right = c.coerced(left, p.cols), c.coerced(right, p.cols)
	if !s.All {
		return &distinctPlan{step{input: p}}
	}
	return p
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
	return &projectPlan{step{p, cols}, exprs}
}

func unordered(q *tsql.Query) {
	if q.OrderBy != nil {
		panic(tsql.Unmodelled(q.Line, "ORDER BY of a UNION or of VALUES"))
	}
}

// outputPlace finds an ORDER BY item among output columns: by number or by name; -1 if it is neither.
func outputPlace(x tsql.Expr, cols []column) int {
	switch x := x.(type) {
	case *tsql.NumberLit:
		n, err := strconv.Atoi(x.Text)
		if err != nil || n < 1 || n > len(cols) {
			panic(tsql.Errorf(108, 0, "The ORDER BY position number %s is out of range of the number of items in the select list.", x.Text))
		}
		return n - 1
	case *tsql.ColumnRef:
		if len(x.Parts) > 1 {
			return -1
		}
		for i, col := range cols {
			if fold(col.name) == fold(x.Object()) {
				return i
			}
		}
	}
	return -1
}

// limit applies TOP to a plan.
func (c *compiler) limit(p plan, top tsql.Expr) plan {
	if top == nil {
		return p
	}
	return &limitPlan{step{input: p}, converted(c.with(nil).expr(top), typeBigInt)}
}

// oneColumn compiles a query that is used as an expression.
func (c *compiler) oneColumn(q *tsql.Query) plan {
	p := c.query(q)
	if len(p.columns()) != 1 {
		panic(tsql.Errorf(116, q.Line, "Only one expression can be specified in the select list when the subquery is "+
			"not introduced with EXISTS."))
	}
	return p
}

// subquery compiles a scalar subquery, whose value is the same for every row.
func (c *compiler) subquery(q *tsql.Query) scalar {
	p := c.oneColumn(q)
	value := sync.OnceValue(func() (out any) {
		n := 0
		for row := range p.each {
			if n++; n > 1 {
				panic(tsql.Errorf(512, q.Line, "Subquery returned more than 1 value. This is not permitted when the subquery "+
					"follows =, !=, <, <= , >, >= or when the subquery is used as an expression."))
			}
			out = row[0]
		}
		return out
	})
	return scalar{typ: p.columns()[0].typ, nullable: true, eval: func([]any) any { return value() }}
}

func (c *compiler) inQuery(x *tsql.In) scalar {
	p := c.oneColumn(x.Query)
	left, item := toOneType(c.expr(x.X), c.with(&scope{columns: p.columns()}).columnAt(0))
	values := sync.OnceValue(func() (out []any) {
		for row := range p.each {
			out = append(out, item.eval(row))
		}
		return out
	})
	return test(func(row []any) any {
		v, found := left.eval(row), any(false)
		if v == nil {
			return nil
		}
		for _, w := range values() {
			switch {
			case w == nil:
				found = nil
			case compareValues(v, w) == 0:
				return true
			}
		}
		return found
	})
}
