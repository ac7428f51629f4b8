package tsql

// Children are the direct operands of an expression; subqueries are not entered.
func Children(x Expr) []Expr {
	switch x := x.(type) {
	case *Unary:
		return []Expr{x.X}
	case *Arith:
		return []Expr{x.L, x.R}
	case *Compare:
		return []Expr{x.L, x.R}
	case *Logic:
		return []Expr{x.L, x.R}
	case *Not:
		return []Expr{x.X}
	case *IsNull:
		return []Expr{x.X}
	case *Between:
		return []Expr{x.X, x.Lo, x.Hi}
	case *In:
		return append([]Expr{x.X}, x.List...)
	case *Like:
		if x.Escape != nil {
			return []Expr{x.X, x.Pattern, x.Escape}
		}
		return []Expr{x.X, x.Pattern}
	case *Cast:
		return []Expr{x.X}
	case *Case:
		return caseChildren(x)
	case *Call:
		return callChildren(x)
	}
	return nil
}

func caseChildren(x *Case) []Expr {
	var out []Expr
	if x.Operand != nil {
		out = append(out, x.Operand)
	}
	for _, w := range x.Whens {
		out = append(out, w.Cond, w.Then)
	}
	if x.Else != nil {
		out = append(out, x.Else)
	}
	return out
}

func callChildren(x *Call) []Expr {
	out := append([]Expr(nil), x.Args...)
	for _, item := range x.Within {
		out = append(out, item.X)
	}
	if x.Over != nil {
		out = append(out, x.Over.Partition...)
		for _, item := range x.Over.Order {
			out = append(out, item.X)
		}
	}
	return out
}

// Walk visits an expression and its operands, parents first; visit returns false to stop descending.
func Walk(x Expr, visit func(Expr) bool) {
	if x == nil || !visit(x) {
		return
	}
	for _, child := range Children(x) {
		Walk(child, visit)
	}
}

// Each visits statements and those within them, in order.
func Each(list []Statement, visit func(Statement)) {
	for _, st := range list {
		if st == nil {
			continue
		}
		visit(st)
		switch st := st.(type) {
		case *Block:
			Each(st.Body, visit)
		case *If:
			Each([]Statement{st.Then, st.Else}, visit)
		case *While:
			Each([]Statement{st.Body}, visit)
		case *Try:
			Each(st.Body, visit)
			Each(st.Catch, visit)
		}
	}
}

// Mentions tells whether an expression of the statements, queries left out, reads that variable.
func Mentions(list []Statement, variable string) bool {
	found := false
	look := func(x Expr) {
		Walk(x, func(x Expr) bool {
			v, ok := x.(*VarRef)
			found = found || ok && v.Name == variable
			return true
		})
	}
	Each(list, func(st Statement) {
		switch st := st.(type) {
		case *Declare:
			for _, d := range st.Variables {
				look(d.Init)
			}
		case *SetVariable:
			look(st.X)
		case *While:
			look(st.Cond)
		case *If:
			look(st.Cond)
		case *Insert:
			if st.Source == nil {
				return
			}
			if values, ok := st.Source.Body.(*Values); ok {
				for _, row := range values.Rows {
					for _, x := range row {
						look(x)
					}
				}
			}
		}
	})
	return found
}
