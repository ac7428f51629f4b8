package tsql

import (
	"fmt"
	"reflect"
	"strings"
)

// Children are the direct operands of an expression; subqueries are not entered.
func Children(x Expr) (found []Expr) {
	operands(reflect.ValueOf(x).Elem(), &found)
	return found
}

func operands(v reflect.Value, found *[]Expr) {
	switch v.Kind() {
	case reflect.Interface:
		if x, ok := v.Interface().(Expr); ok {
			*found = append(*found, x)
		}
	case reflect.Pointer:
		if v.Type() != reflect.TypeFor[*Query]() && !v.IsNil() {
			operands(v.Elem(), found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			operands(v.Field(i), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			operands(v.Index(i), found)
		}
	}
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
		}
	}
}

// Format writes an expression or a query in one canonical spelling: equal ones give equal text, whatever the case of their
// names and the line they are on.
func Format(x any) string {
	var b strings.Builder
	write(&b, reflect.ValueOf(x))
	return b.String()
}

func write(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
		b.WriteString("nil")
	case reflect.Interface, reflect.Pointer:
		write(b, v.Elem())
	case reflect.Struct:
		if name, ok := v.Interface().(Name); ok {
			fmt.Fprintf(b, "%q", lower(strings.Join(name.Parts, "].[")))
			return
		}
		b.WriteString(v.Type().Name() + "(")
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Name != "Line" {
				write(b, v.Field(i))
				b.WriteString(" ")
			}
		}
		b.WriteString(")")
	case reflect.Slice:
		b.WriteString("[")
		for i := range v.Len() {
			write(b, v.Index(i))
			b.WriteString(" ")
		}
		b.WriteString("]")
	default:
		fmt.Fprintf(b, "%#v", v)
	}
}
