package sqlserver

import (
	"math/big"
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// evalFunc computes a value from a row; nil is NULL, and a predicate gives true, false or nil (unknown).
type evalFunc func([]any) any

// scalar is a compiled expression: its type is known before any row is read.
type scalar struct {
	typ      tds.Type
	nullable bool
	eval     evalFunc
	constant bool // eval needs no row and always returns the same
	ref      int  // 1 + position of the column that this is, 0 for anything computed
	checksum *checksummed
}

// column is a named column of a row source.
type column struct {
	table    string // alias, folded; "" for none
	name     string
	typ      tds.Type
	nullable bool
}

// scope resolves column names. Subqueries do not see the surrounding query.
type scope struct {
	columns []column
	// replace maps an expression (as tsql.Format writes it) to a column with its value:
	// group keys and aggregates.
	replace map[string]int
	before  *scope // with GROUP BY: the names that can no longer be used
}

// compiler turns expressions into scalars.
type compiler struct {
	run   *run
	scope *scope
	ctes  *cteScope
}

func (c *compiler) with(s *scope) *compiler { return &compiler{run: c.run, scope: s, ctes: c.ctes} }

// constant is a scalar without columns.
func constant(t tds.Type, v any) scalar {
	return scalar{typ: t, nullable: v == nil, constant: true, eval: func([]any) any { return v }}
}

// expr compiles any expression.
func (c *compiler) expr(x tsql.Expr) scalar {
	if i, ok := c.replaced(x); ok {
		return c.columnAt(i)
	}
	switch x := x.(type) {
	case *tsql.NumberLit:
		return numberLiteral(x.Text)
	case *tsql.TextLit:
		return constant(textLiteralType(x.Value), x.Value)
	case *tsql.BinaryLit:
		return constant(tds.Type{Kind: tds.KindVarBinary, Size: max(len(x.Value), 1)}, x.Value)
	case *tsql.NullLit:
		return constant(tds.Type{}, nil)
	case *tsql.VarRef:
		return c.variable(x)
	case *tsql.ColumnRef:
		return c.column(x)
	case *tsql.Arith:
		return arithmetic(x.Op, c.expr(x.L), c.expr(x.R))
	case *tsql.Case:
		return c.caseExpr(x)
	case *tsql.Cast:
		return c.cast(x)
	case *tsql.Call:
		return c.call(x)
	case *tsql.Subquery:
		return c.subquery(x.Query)
	}
	return c.predicate(x)
}

// textLiteralType is nvarchar(max) for a literal that no sized type holds.
func textLiteralType(s string) tds.Type {
	if n := tds.LenUTF16(s); n <= mostUnits {
		return textType(max(n, 1))
	}
	return textType(-1)
}

// exprs compiles a list.
func (c *compiler) exprs(list []tsql.Expr) []scalar {
	out := make([]scalar, len(list))
	for i, x := range list {
		out[i] = c.expr(x)
	}
	return out
}

func (c *compiler) replaced(x tsql.Expr) (int, bool) {
	if c.scope == nil || c.scope.replace == nil {
		return 0, false
	}
	i, ok := c.scope.replace[tsql.Format(x)]
	return i, ok
}

func (c *compiler) columnAt(i int) scalar {
	col := c.scope.columns[i]
	return scalar{typ: col.typ, nullable: col.nullable, ref: i + 1,
		eval: func(row []any) any { return row[i] }}
}

func numberLiteral(text string) scalar {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return constant(typeInt, n)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	precision := max(len(strings.TrimLeft(whole+fraction, "0")), len(fraction), 1)
	if !ok || precision > 38 {
		panic(tsql.Errorf(1007, 0, "The number '%s' is out of the range for numeric representation (maximum precision 38).", text))
	}
	return constant(decimalType(precision, len(fraction)), newDecimal(n, len(fraction)))
}

// column resolves a name.
func (c *compiler) column(x *tsql.ColumnRef) scalar {
	if c.scope != nil {
		if i := c.scope.find(x); i >= 0 {
			return c.columnAt(i)
		}
	}
	name := strings.Join(x.Parts, ".")
	if len(x.Parts) > 1 {
		panic(tsql.Errorf(4104, x.Line, "The multi-part identifier \"%s\" could not be bound.", name))
	}
	panic(tsql.Errorf(207, x.Line, "Invalid column name '%s'.", name))
}

// find is the position of a column, -1 if this scope does not have it.
func (s *scope) find(x *tsql.ColumnRef) int {
	if s.replace != nil {
		if i, ok := s.replace[tsql.Format(x)]; ok {
			return i
		}
	}
	name, table := fold(x.Object()), fold(x.Qualifier(1))
	found := -1
	for i, col := range s.columns {
		if fold(col.name) != name || table != "" && col.table != table {
			continue
		}
		if found >= 0 {
			panic(tsql.Errorf(209, x.Line, "Ambiguous column name '%s'.", x.Object()))
		}
		found = i
	}
	if found < 0 && s.before != nil && s.before.find(x) >= 0 {
		panic(tsql.Errorf(8120, x.Line, "Column '%s' is invalid in the select list because it is not contained in "+
			"either an aggregate function or the GROUP BY clause.", strings.Join(x.Parts, ".")))
	}
	return found
}

// converted compiles a conversion of a scalar, or returns it if the type is already right.
func converted(s scalar, t tds.Type) scalar {
	if s.typ == t || t.Kind == 0 {
		return s
	}
	eval := s.eval
	return folded(scalar{typ: t, nullable: s.nullable, eval: func(row []any) any {
		return convert(eval(row), t)
	}}, &s)
}

func (c *compiler) caseExpr(x *tsql.Case) scalar {
	var conditions, results []scalar
	typ := tds.Type{}
	for _, w := range x.Whens {
		cond := w.Cond
		if x.Operand != nil {
			cond = &tsql.Compare{Op: "=", L: x.Operand, R: w.Cond}
		}
		then := c.expr(w.Then)
		conditions, results, typ = append(conditions, c.expr(cond)), append(results, then), unify(typ, then.typ)
	}
	otherwise := constant(tds.Type{}, nil)
	if x.Else != nil {
		otherwise = c.expr(x.Else)
		typ = unify(typ, otherwise.typ)
	}
	return caseScalar(conditions, append(results, otherwise), typ)
}

// caseScalar has one more result than conditions: the ELSE.
func caseScalar(conditions, results []scalar, typ tds.Type) scalar {
	nullable := false
	for i := range results {
		results[i] = converted(results[i], typ)
		nullable = nullable || results[i].nullable
	}
	return scalar{typ: typ, nullable: nullable, eval: func(row []any) any {
		for i, cond := range conditions {
			if cond.eval(row) == true {
				return results[i].eval(row)
			}
		}
		return results[len(conditions)].eval(row)
	}}
}

func (c *compiler) cast(x *tsql.Cast) scalar {
	t := resolveType(x.Type, 30)
	operand := c.expr(x.X)
	made := converted(operand, t)
	if t.Kind == tds.KindInt64 {
		made.checksum = operand.checksum
	}
	made.ref = 0
	return made
}
