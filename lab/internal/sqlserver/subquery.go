package sqlserver

import (
	"vnuma.dev/lab/internal/tsql"
)

// subquery compiles a scalar subquery.
func (c *compiler) subquery(q *tsql.Query) (scalar, error) {
	p, fixed, err := c.inner(q)
	if err != nil {
		return scalar{}, err
	}
	if len(p.columns()) != 1 {
		return scalar{}, tsql.Errorf(116, q.Line, "Only one expression can be specified in the select list when the subquery is "+
			"not introduced with EXISTS.")
	}
	return scalar{typ: p.columns()[0].typ, nullable: true, eval: cached(fixed, func(f *frame) (any, error) {
		var out any
		n := 0
		err := stoppable(p.each(f, func(row []any) error {
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

// inner compiles a subquery and tells whether its result is the same for every outer row.
func (c *compiler) inner(q *tsql.Query) (p plan, fixed bool, err error) {
	outer := &scope{}
	if c.scope != nil {
		copied := *c.scope
		outer = &copied
	}
	outer.used = false
	p, err = c.query(q, outer)
	fixed = !outer.used && (outer.outer == nil || !outer.outer.used)
	return p, fixed, err
}

// cached computes a fixed value once per run of the statement.
func cached(fixed bool, eval evalFunc) evalFunc {
	if !fixed {
		return eval
	}
	var done bool
	var value any
	return func(f *frame) (any, error) {
		if done {
			return value, nil
		}
		v, err := eval(f)
		done, value = err == nil, v
		return v, err
	}
}

func (c *compiler) exists(q *tsql.Query) (scalar, error) {
	p, fixed, err := c.inner(q)
	if err != nil {
		return scalar{}, err
	}
	return test(cached(fixed, func(f *frame) (any, error) {
		found := false
		err := stoppable(p.each(f, func([]any) error {
			found = true
			return errStop
		}))
		return found, err
	})), nil
}

func (c *compiler) inQuery(x *tsql.In) (scalar, error) {
	p, fixed, err := c.inner(x.Query)
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
	left, item = comparable(left, item)
	list := cached(fixed, func(f *frame) (any, error) {
		var values []any
		fr := &frame{run: c.run}
		err := p.each(f, func(row []any) error {
			fr.row = row
			v, err := item.eval(fr)
			values = append(values, v)
			return err
		})
		return values, err
	})
	return negateIf(x.Not, membership(left, list)), nil
}

func membership(left scalar, list evalFunc) scalar {
	return test(func(f *frame) (any, error) {
		v, err := left.eval(f)
		if err != nil || v == nil {
			return nil, err
		}
		values, err := list(f)
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
