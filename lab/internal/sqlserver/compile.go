package sqlserver

import (
	"math/big"
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// evalFunc computes a value from a row; nil is NULL, and a predicate gives true, false or nil (unknown).
type evalFunc func([]any) (any, error)

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
	return scalar{typ: t, nullable: v == nil, constant: true, eval: func([]any) (any, error) { return v, nil }}
}

// expr compiles any expression.
func (c *compiler) expr(x tsql.Expr) (scalar, error) {
	if i, ok := c.replaced(x); ok {
		return c.columnAt(i), nil
	}
	switch x := x.(type) {
	case *tsql.NumberLit:
		return numberLiteral(x.Text)
	case *tsql.TextLit:
		return constant(textLiteralType(x.Value), x.Value), nil
	case *tsql.BinaryLit:
		return constant(tds.Type{Kind: tds.KindVarBinary, Size: max(len(x.Value), 1)}, x.Value), nil
	case *tsql.NullLit:
		return constant(tds.Type{}, nil), nil
	case *tsql.VarRef:
		return c.variable(x)
	case *tsql.ColumnRef:
		return c.column(x)
	case *tsql.Arith:
		return c.arithmetic(x)
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
func (c *compiler) exprs(list []tsql.Expr) ([]scalar, error) {
	out := make([]scalar, len(list))
	for i, x := range list {
		s, err := c.expr(x)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
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
		eval: func(row []any) (any, error) { return row[i], nil }}
}

func numberLiteral(text string) (scalar, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return constant(typeInt, n), nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	precision := max(len(strings.TrimLeft(whole+fraction, "0")), len(fraction), 1)
	if !ok || precision > 38 {
		return scalar{}, tsql.Errorf(1007, 0, "The number '%s' is out of the range for numeric representation (maximum precision 38).", text)
	}
	return constant(decimalType(precision, len(fraction)), newDecimal(n, len(fraction))), nil
}

// column resolves a name.
func (c *compiler) column(x *tsql.ColumnRef) (scalar, error) {
	if c.scope != nil {
		i, err := c.scope.find(x)
		if err != nil {
			return scalar{}, err
		}
		if i >= 0 {
			return c.columnAt(i), nil
		}
	}
	name := strings.Join(x.Parts, ".")
	if len(x.Parts) > 1 {
		return scalar{}, tsql.Errorf(4104, x.Line, "The multi-part identifier \"%s\" could not be bound.", name)
	}
	return scalar{}, tsql.Errorf(207, x.Line, "Invalid column name '%s'.", name)
}

// find is the position of a column, -1 if this scope does not have it.
func (s *scope) find(x *tsql.ColumnRef) (int, error) {
	if s.replace != nil {
		if i, ok := s.replace[tsql.Format(x)]; ok {
			return i, nil
		}
	}
	name, table := fold(x.Object()), fold(x.Qualifier(1))
	found := -1
	for i, col := range s.columns {
		if fold(col.name) != name || table != "" && col.table != table {
			continue
		}
		if found >= 0 {
			return -1, tsql.Errorf(209, x.Line, "Ambiguous column name '%s'.", x.Object())
		}
		found = i
	}
	if found < 0 && s.before != nil {
		if hidden, err := s.before.find(x); err != nil || hidden < 0 {
			return -1, err
		}
		return -1, tsql.Errorf(8120, x.Line, "Column '%s' is invalid in the select list because it is not contained in "+
			"either an aggregate function or the GROUP BY clause.", strings.Join(x.Parts, "."))
	}
	return found, nil
}

// converted compiles a conversion of a scalar, or returns it if the type is already right.
func converted(s scalar, t tds.Type) scalar {
	if s.typ == t || t.Kind == 0 {
		return s
	}
	eval := s.eval
	return folded(scalar{typ: t, nullable: s.nullable, eval: func(row []any) (any, error) {
		v, err := eval(row)
		if err != nil || v == nil {
			return nil, err
		}
		return convert(v, t)
	}}, &s)
}

func (c *compiler) caseExpr(x *tsql.Case) (scalar, error) {
	var conditions, results []scalar
	typ := tds.Type{}
	for _, w := range x.Whens {
		cond := w.Cond
		if x.Operand != nil {
			cond = &tsql.Compare{Op: "=", L: x.Operand, R: w.Cond}
		}
		test, err := c.expr(cond)
		if err != nil {
			return scalar{}, err
		}
		then, err := c.expr(w.Then)
		if err != nil {
			return scalar{}, err
		}
		conditions, results, typ = append(conditions, test), append(results, then), unify(typ, then.typ)
	}
	otherwise := constant(tds.Type{}, nil)
	if x.Else != nil {
		var err error
		if otherwise, err = c.expr(x.Else); err != nil {
			return scalar{}, err
		}
		typ = unify(typ, otherwise.typ)
	}
	return caseScalar(conditions, append(results, otherwise), typ), nil
}

// caseScalar has one more result than conditions: the ELSE.
func caseScalar(conditions, results []scalar, typ tds.Type) scalar {
	nullable := false
	for i := range results {
		results[i] = converted(results[i], typ)
		nullable = nullable || results[i].nullable
	}
	return scalar{typ: typ, nullable: nullable, eval: func(row []any) (any, error) {
		for i, cond := range conditions {
			v, err := cond.eval(row)
			if err != nil {
				return nil, err
			}
			if v == true {
				return results[i].eval(row)
			}
		}
		return results[len(conditions)].eval(row)
	}}
}

func (c *compiler) cast(x *tsql.Cast) (scalar, error) {
	t, err := resolveType(x.Type, 30)
	if err != nil {
		return scalar{}, err
	}
	operand, err := c.expr(x.X)
	if err != nil {
		return scalar{}, err
	}
	made := converted(operand, t)
	if t.Kind == tds.KindInt64 {
		made.checksum = operand.checksum
	}
	made.ref = 0
	return made, nil
}
