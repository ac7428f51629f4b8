package tsql

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Format writes an expression in one canonical spelling: equal expressions give equal text,
// whatever the case of their names and the line they stood on.
func Format(x Expr) string {
	switch x := x.(type) {
	case nil:
		return "DEFAULT"
	case *NumberLit:
		return x.Text
	case *TextLit:
		return "N'" + strings.ReplaceAll(x.Value, "'", "''") + "'"
	case *BinaryLit:
		return "0x" + hex.EncodeToString(x.Value)
	case *NullLit:
		return "NULL"
	case *VarRef:
		return x.Name
	case *ColumnRef:
		return lower("[" + strings.Join(x.Parts, "].[") + "]")
	case *Unary:
		return x.Op + Format(x.X)
	case *Arith:
		return binary(x.Op, x.L, x.R)
	case *Compare:
		return binary(x.Op, x.L, x.R)
	case *Logic:
		return binary(x.Op, x.L, x.R)
	case *Not:
		return "NOT " + Format(x.X)
	}
	return formatPredicate(x)
}

func binary(op string, l, r Expr) string { return "(" + Format(l) + " " + op + " " + Format(r) + ")" }

func negated(not bool) string {
	if not {
		return " NOT"
	}
	return ""
}

func formatPredicate(x Expr) string {
	switch x := x.(type) {
	case *IsNull:
		return Format(x.X) + " IS" + negated(x.Not) + " NULL"
	case *Between:
		return Format(x.X) + negated(x.Not) + " BETWEEN " + Format(x.Lo) + " AND " + Format(x.Hi)
	case *In:
		if x.Query != nil {
			return Format(x.X) + negated(x.Not) + fmt.Sprintf(" IN (query %p)", x.Query)
		}
		return Format(x.X) + negated(x.Not) + " IN (" + formatList(x.List) + ")"
	case *Like:
		text := Format(x.X) + negated(x.Not) + " LIKE " + Format(x.Pattern)
		if x.Escape != nil {
			text += " ESCAPE " + Format(x.Escape)
		}
		return text
	case *Exists:
		return fmt.Sprintf("EXISTS (query %p)", x.Query)
	case *Subquery:
		return fmt.Sprintf("(query %p)", x.Query)
	case *Case:
		return formatCase(x)
	case *Cast:
		style := ""
		if x.Style != nil {
			style = ", " + Format(x.Style)
		}
		return fmt.Sprintf("CONVERT(%s%v, %s%s, %t)", x.Type.Name, x.Type.Args, Format(x.X), style, x.Try)
	case *Call:
		return formatCall(x)
	}
	return fmt.Sprintf("%p", x)
}

func formatCase(x *Case) string {
	var b strings.Builder
	b.WriteString("CASE")
	if x.Operand != nil {
		b.WriteString(" " + Format(x.Operand))
	}
	for _, w := range x.Whens {
		b.WriteString(" WHEN " + Format(w.Cond) + " THEN " + Format(w.Then))
	}
	if x.Else != nil {
		b.WriteString(" ELSE " + Format(x.Else))
	}
	return b.String() + " END"
}

func formatCall(x *Call) string {
	args := formatList(x.Args)
	if x.Star {
		args = "*"
	}
	if x.Distinct {
		args = "DISTINCT " + args
	}
	text := lower(strings.Join(x.Name.Parts, ".")) + "(" + args + ")"
	if x.Within != nil {
		text += " WITHIN GROUP (" + formatOrder(x.Within) + ")"
	}
	if x.Over != nil {
		text += " OVER (" + formatList(x.Over.Partition) + "; " + formatOrder(x.Over.Order) + ")"
	}
	return text
}

func formatOrder(items []OrderItem) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = Format(item.X)
		if item.Desc {
			parts[i] += " DESC"
		}
	}
	return strings.Join(parts, ", ")
}

func formatList(list []Expr) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = Format(x)
	}
	return strings.Join(parts, ", ")
}
