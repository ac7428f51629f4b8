package sqlserver

import (
	"regexp"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// predicate compiles a condition; its value is true, false or nil for unknown.
func (c *compiler) predicate(x tsql.Expr) scalar {
	switch x := x.(type) {
	case *tsql.Compare:
		return c.comparison(x.Op, x.L, x.R)
	case *tsql.Logic:
		return c.logic(x)
	case *tsql.Not:
		return negate(c.expr(x.X))
	case *tsql.IsNull:
		return c.isNull(x)
	case *tsql.In:
		return c.inQuery(x)
	case *tsql.Like:
		return c.like(x)
	}
	panic(tsql.Unmodelled(0, "the expression %s", tsql.Format(x)))
}

func test(eval evalFunc) scalar { return scalar{typ: typeBit, nullable: true, eval: eval} }

func negate(s scalar) scalar {
	return test(func(row []any) any {
		v := s.eval(row)
		if v == nil {
			return nil
		}
		return v != true
	})
}

var comparisonHolds = map[string]func(int) bool{
	"=": func(c int) bool { return c == 0 }, "<>": func(c int) bool { return c != 0 },
	"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
	">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
}

func (c *compiler) comparison(op string, l, r tsql.Expr) scalar {
	left, right := toOneType(c.expr(l), c.expr(r))
	holds := comparisonHolds[op]
	both := ofBoth(left, right, typeBit, func(a, b any) any { return holds(compareValues(a, b)) })
	return test(both.eval)
}

// toOneType converts both sides to the type in which they are compared.
func toOneType(left, right scalar) (scalar, scalar) {
	t := unify(left.typ, right.typ)
	if isText(t.Kind) || t.Kind == tds.KindVarBinary {
		t.Size = -1
		t.Kind = map[bool]tds.Kind{true: tds.KindNVarChar, false: t.Kind}[isText(t.Kind)]
	}
	return converted(left, t), converted(right, t)
}

func (c *compiler) logic(x *tsql.Logic) scalar {
	left, right := c.expr(x.L), c.expr(x.R)
	decisive := x.Op == "OR" // true decides OR, false decides AND
	return test(func(row []any) any {
		a := left.eval(row)
		if a == decisive {
			return a
		}
		b := right.eval(row)
		if b == decisive {
			return b
		}
		if a == nil || b == nil {
			return nil
		}
		return !decisive
	})
}

func (c *compiler) isNull(x *tsql.IsNull) scalar {
	operand := c.expr(x.X)
	return test(func(row []any) any { return (operand.eval(row) == nil) != x.Not })
}

func (c *compiler) like(x *tsql.Like) scalar {
	operand, pattern := c.expr(x.X), c.expr(x.Pattern)
	text := textType(-1)
	cache := map[string]*regexp.Regexp{}
	both := ofBoth(converted(operand, text), converted(pattern, text), typeBit, func(a, b any) any {
		pattern := b.(string)
		if cache[pattern] == nil {
			compiled, err := regexp.Compile(likePattern(pattern))
			if err != nil {
				return false // an unfinished class matches nothing
			}
			cache[pattern] = compiled
		}
		return cache[pattern].MatchString(a.(string))
	})
	return test(both.eval)
}

// likePattern is a LIKE pattern as a regular expression.
func likePattern(pattern string) string {
	var b strings.Builder
	b.WriteString("(?is)^")
	runes := []rune(pattern)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case r == '%':
			b.WriteString(".*")
		case r == '_':
			b.WriteString(".")
		case r == '[':
			end := strings.IndexRune(string(runes[i:]), ']')
			if end < 0 {
				return "[" // does not compile: no match
			}
			class := string(runes[i:])[:end+1]
			b.WriteString(strings.ReplaceAll(class, `\`, `\\`))
			i += len([]rune(class)) - 1
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return b.String() + " *$"
}
