package sqlserver

import "vnuma.dev/lab/internal/tsql"

// digit is one place of a number in mixed radix: `n / by % radix`.
type digit struct{ by, radix int64 }

// withDigits is the same projection, in which an expression that takes the generated number of a derived table
// only as one digit of it is computed once for each value of that digit.
func withDigits(q *tsql.Query, p plan) plan {
	project, ok := p.(*projectPlan)
	if !ok {
		return p
	}
	items, column, inner := overNumbers(q, project)
	if inner == nil {
		return p
	}
	out := *project
	out.exprs = append([]scalar(nil), project.exprs...)
	for i, item := range items {
		if d, _ := digitIn(item.X, column); d != nil && d.radix <= mostDifferent {
			out.exprs[i].eval = d.remembered(out.exprs[i].eval)
		}
	}
	return &out
}

// remembered computes a value that depends on nothing but this digit of the row's one number.
func (d digit) remembered(eval evalFunc) evalFunc {
	known := make([]any, d.radix)
	return func(row []any) (any, error) {
		n, ok := row[0].(int64)
		if !ok || n < 0 {
			return eval(row)
		}
		at := n / d.by % d.radix
		if known[at] != nil {
			return known[at], nil
		}
		v, err := eval(row)
		known[at] = v
		return v, err
	}
}

// digitIn is the one digit of a column that an expression depends on, nil for none; alone is false when it depends on anything
// else. Names other than the column's are parts of dates: the statement has been compiled.
func digitIn(x tsql.Expr, column string) (found *digit, alone bool) {
	alone = true
	tsql.Walk(x, func(x tsql.Expr) bool {
		switch x := x.(type) {
		case *tsql.Arith:
			if d := digitOf(x); d != nil {
				alone = alone && (found == nil || *found == *d)
				found = d
				return false
			}
		case *tsql.ColumnRef:
			alone = alone && fold(x.Object()) != column
		case *tsql.Subquery, *tsql.VarRef:
			alone = false
		}
		return alone
	})
	if !alone {
		found = nil
	}
	return found, alone
}

// digitOf reads `column % radix` and `column / by % radix`.
func digitOf(x *tsql.Arith) *digit {
	if radix := remainderOf(x); radix > 0 {
		return &digit{1, radix}
	}
	quotient, ok := x.L.(*tsql.Arith)
	if !ok || x.Op != "%" || quotient.Op != "/" {
		return nil
	}
	if _, ok := quotient.L.(*tsql.ColumnRef); !ok {
		return nil
	}
	by, radix := wholeLiteral(quotient.R), wholeLiteral(x.R)
	if by <= 0 || radix <= 0 {
		return nil
	}
	return &digit{by, radix}
}
