package sqlserver

import (
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// insertPlan is an INSERT ready to run.
type insertPlan struct {
	table  *table
	source plan
	from   []int // source column for each column of the table, -1 = default
	run    *run
}

func (b *batch) insert(st *tsql.Insert) outcome {
	in := compiled(b.newRun(), func(c *compiler) *insertPlan { return c.insert(st) })
	rows := in.build()
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	in.table.insert(rows)
	if in.table.memoryOptimized {
		b.s.inst.place()
	}
	b.s.rowCount = int64(rows.rows)
	return counted(tds.CommandInsert, b.s.rowCount)
}

// insert compiles an INSERT.
func (c *compiler) insert(st *tsql.Insert) *insertPlan {
	t := c.run.stored(st.Target)
	c.run.use.table(t)
	targets := targetColumns(t, st.Columns)
	in := &insertPlan{table: t, run: c.run, from: make([]int, len(t.columns))}
	for i := range in.from {
		in.from[i] = -1
	}
	in.source = c.query(st.Source)
	if len(in.source.columns()) != len(targets) {
		panic(tsql.Errorf(213, 0, "Column name or number of supplied values does not match table definition."))
	}
	for i, target := range targets {
		in.from[target] = i
	}
	return in
}

// targetColumns are the positions of the named columns, or of all.
func targetColumns(t *table, names []string) []int {
	if names == nil {
		return places(len(t.columns))
	}
	var out []int
	for _, name := range names {
		i := t.place(name)
		if i < 0 {
			panic(tsql.Errorf(207, 0, "Invalid column name '%s'.", name))
		}
		out = append(out, i)
	}
	return out
}

// build computes the rows to insert.
func (in *insertPlan) build() *store {
	rows := in.table.empty()
	row := make([]any, len(in.from))
	n := 0
	for given := range in.source.each {
		in.run.check(n)
		n++
		for i, from := range in.from {
			c, v := &in.table.columns[i], any(nil)
			switch {
			case from >= 0:
				v = given[from]
			case c.fallback != nil:
				v = c.fallback.eval(nil)
			}
			row[i] = in.table.fit(c, v, in.run.inst.version)
		}
		rows.add(row)
	}
	return rows
}

// fit converts a value for a column and refuses NULL and text that is too long.
func (t *table) fit(c *tableColumn, v any, ver version) any {
	if v == nil {
		if !c.nullable {
			panic(tsql.Errorf(515, 0, "Cannot insert the value NULL into column '%s', table '%s'; column does not allow nulls. "+
				"INSERT fails.", c.name, t.fullName()))
		}
		return nil
	}
	if s, ok := v.(string); ok && isText(c.typ.Kind) && c.typ.Size > 0 && len(s) > c.typ.Size && tds.LenUTF16(s) > c.typ.Size {
		if ver.major >= 15 {
			panic(tsql.Errorf(2628, 0, "String or binary data would be truncated in table '%s', column '%s'. Truncated value: '%s'.",
				t.fullName(), c.name, tds.CutUTF16(s, 0, c.typ.Size)))
		}
		panic(tsql.Errorf(8152, 0, "String or binary data would be truncated."))
	}
	return convert(v, c.typ)
}

// remove runs a DELETE: it keeps the rows for which its condition is not true.
func (b *batch) remove(st *tsql.Delete) outcome {
	r := b.newRun()
	var t *table
	gone := constant(typeBit, true)
	scan := compiled(r, func(c *compiler) plan {
		t = r.stored(st.Target)
		t.known()
		r.use.table(t)
		if st.Where != nil {
			gone = c.with(&scope{columns: aliased(c.scan(t), t.name, nil, 0).columns()}).expr(st.Where)
		}
		return c.scan(t)
	})
	after, n := t.empty(), int64(0)
	for row := range scan.each {
		if gone.eval(row) == true {
			n++
		} else {
			after.add(row)
		}
	}
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	t.replace(after)
	b.s.rowCount = n
	return counted(tds.CommandDelete, n)
}
