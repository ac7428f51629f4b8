package sqlserver

import (
	"fmt"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// view is a system view: its columns by version and the function that returns its rows.
type view struct {
	id    int
	name  string // as shown
	since string // first version, "" = all
	cols  []viewColumn
	rows  func(*viewContext)
}

type viewColumn struct {
	column
	since string
}

// viewRow has the values of one row by column name; missing ones are NULL.
type viewRow map[string]any

// timesKey is the number of a row's occurrences, in every row of a view or in none.
const timesKey = "*"

// viewContext is the context in which a view is read, and what takes its rows. Instance.mu is held.
type viewContext struct {
	run *run
	db  *database
	add func(viewRow)
}

func (v *viewContext) inst() *Instance { return v.run.inst }

// views by folded schema.name.
var views = map[string]*view{}

// addView defines a view. Columns are written "name type[?][@since]", ? for nullable.
func addView(name, since, columns string, rows func(*viewContext)) {
	v := &view{name: name[strings.LastIndexByte(name, '.')+1:], since: since, rows: rows}
	for _, part := range strings.Split(columns, ",") {
		v.cols = append(v.cols, parseViewColumn(name, strings.TrimSpace(part)))
	}
	v.id = -int(hash32([]byte(fold(name)))&0x3fffffff) - 1
	views[fold(name)] = v
}

func parseViewColumn(view, text string) viewColumn {
	text, since, _ := strings.Cut(text, "@")
	name, declared, ok := strings.Cut(text, " ")
	nullable := strings.HasSuffix(declared, "?")
	typ, err := tsql.ParseType(strings.ReplaceAll(strings.TrimSuffix(declared, "?"), ";", ","))
	if err != nil || !ok {
		panic(fmt.Sprintf("the view %s has a column without a type: %s", view, text))
	}
	return viewColumn{column: column{name: name, typ: resolveType(typ, 1), nullable: nullable}, since: since}
}

func (v *view) columns(inst *Instance) []column {
	var out []column
	for _, c := range v.cols {
		if inst.version.has(c.since) && !slices.Contains(inst.config.WithoutColumns[v.name], c.name) {
			out = append(out, c.column)
		}
	}
	return out
}

// plan reads the current rows.
func (v *view) plan(ctx *viewContext) *rowsPlan {
	p := &rowsPlan{source: source{v.columns(ctx.inst())}, run: ctx.run}
	ctx.add = func(values viewRow) {
		row := make([]any, len(p.cols))
		for i, c := range p.cols {
			row[i] = cell(v.name, c, values[c.name])
		}
		p.rows = append(p.rows, row)
		if times, ok := values[timesKey].(int64); ok {
			p.times = append(p.times, times)
		}
	}
	v.rows(ctx)
	return p
}

// cell converts a Go value to a value of the column's type.
func cell(view string, c column, value any) any {
	switch n := value.(type) {
	case int:
		value = int64(n)
	case tds.Type:
		panic("a view holds a type")
	}
	v := convert(value, c.typ)
	if v == nil && !c.nullable {
		panic(fmt.Sprintf("%s.%s cannot hold %v", view, c.name, value))
	}
	return v
}

func sortedViews(ver version) []*view {
	var out []*view
	for _, v := range views {
		if ver.has(v.since) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *view) int { return b.id - a.id })
	return out
}

// none is a view that exists and is empty in the lab.
func none(*viewContext) {}
