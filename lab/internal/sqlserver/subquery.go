package sqlserver

import (
	"vnuma.dev/lab/internal/tsql"
)

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
