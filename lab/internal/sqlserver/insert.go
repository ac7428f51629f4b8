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

func (b *batch) insert(st *tsql.Insert) (outcome, error) {
	in, rows, err := b.rowsOf(st)
	if err != nil {
		return outcome{}, err
	}
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	if err := in.table.insert(rows); err != nil {
		return outcome{}, err
	}
	if in.table.memoryOptimized {
		b.s.inst.place()
	}
	b.s.rowCount = int64(rows.rows)
	return counted(tds.CommandInsert, b.s.rowCount), nil
}

// rowsOf computes the rows of an INSERT without inserting them.
func (b *batch) rowsOf(st *tsql.Insert) (in *insertPlan, rows *store, err error) {
	err = b.compile(b.newRun(), func(c *compiler) (err error) {
		in, err = c.insert(st)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	rows, err = in.build()
	return in, rows, err
}

// insert compiles an INSERT.
func (c *compiler) insert(st *tsql.Insert) (*insertPlan, error) {
	t, err := c.run.stored(st.Target)
	if err != nil {
		return nil, err
	}
	c.run.use.table(t)
	targets, err := targetColumns(t, st.Columns)
	if err != nil {
		return nil, err
	}
	in := &insertPlan{table: t, run: c.run, from: make([]int, len(t.columns))}
	for i := range in.from {
		in.from[i] = -1
	}
	if in.source, err = c.query(st.Source); err != nil {
		return nil, err
	}
	if have := len(in.source.columns()); have != len(targets) {
		return nil, tsql.Errorf(213, 0, "Column name or number of supplied values does not match table definition.")
	}
	for i, target := range targets {
		in.from[target] = i
	}
	return in, nil
}

// targetColumns are the positions of the named columns, or of all.
func targetColumns(t *table, names []string) ([]int, error) {
	var out []int
	if names == nil {
		for i := range t.columns {
			out = append(out, i)
		}
		return out, nil
	}
	for _, name := range names {
		i := t.place(name)
		if i < 0 {
			return nil, tsql.Errorf(207, 0, "Invalid column name '%s'.", name)
		}
		out = append(out, i)
	}
	return out, nil
}

// build computes the rows to insert.
func (in *insertPlan) build() (*store, error) {
	rows := in.table.empty()
	row := make([]any, len(in.from))
	n := 0
	err := in.source.each(func(given []any) error {
		if n++; n&1023 == 0 {
			if err := in.run.ended(); err != nil {
				return err
			}
		}
		for i := range in.from {
			v, err := in.cell(i, given)
			if err != nil {
				return err
			}
			row[i] = v
		}
		return rows.add(row)
	})
	return rows, err
}

// cell is the value of one column.
func (in *insertPlan) cell(i int, given []any) (any, error) {
	c := &in.table.columns[i]
	var v any
	var err error
	switch {
	case in.from[i] >= 0:
		v = given[in.from[i]]
	case c.fallback != nil:
		if v, err = c.fallback.eval(nil); err != nil {
			return nil, err
		}
	}
	return in.table.fit(c, v, in.run.inst.version)
}

// fit converts a value for a column and refuses NULL and text that is too long.
func (t *table) fit(c *tableColumn, v any, ver version) (any, error) {
	if v == nil {
		if !c.nullable {
			return nil, tsql.Errorf(515, 0, "Cannot insert the value NULL into column '%s', table '%s'; column does not allow nulls. "+
				"INSERT fails.", c.name, t.fullName())
		}
		return nil, nil
	}
	if s, ok := v.(string); ok && isText(c.typ.Kind) && c.typ.Size > 0 && len(s) > c.typ.Size && tds.LenUTF16(s) > c.typ.Size {
		if ver.major >= 15 {
			return nil, tsql.Errorf(2628, 0, "String or binary data would be truncated in table '%s', column '%s'. Truncated value: '%s'.",
				t.fullName(), c.name, tds.CutUTF16(s, 0, c.typ.Size))
		}
		return nil, tsql.Errorf(8152, 0, "String or binary data would be truncated.")
	}
	return convert(v, c.typ)
}

// remove runs a DELETE: it keeps the rows for which its condition is not true.
func (b *batch) remove(st *tsql.Delete) (outcome, error) {
	r := b.newRun()
	var t *table
	var before *store
	gone := constant(typeBit, true)
	err := b.compile(r, func(c *compiler) (err error) {
		if t, err = r.stored(st.Target); err != nil {
			return err
		}
		r.use.table(t)
		before = t.rows
		if st.Where != nil {
			cols := t.plainColumns()
			for i := range cols {
				cols[i].table = fold(t.name)
			}
			if gone, err = c.with(&scope{columns: cols}).expr(st.Where); err != nil {
				return err
			}
		}
		return t.known()
	})
	if err != nil {
		return outcome{}, err
	}
	after, n := t.empty(), int64(0)
	row := make([]any, len(before.cells))
	for i := range before.rows {
		if i&1023 == 1023 {
			if err := r.ended(); err != nil {
				return outcome{}, err
			}
		}
		before.read(i, row)
		switch v, err := gone.eval(row); {
		case err != nil:
			return outcome{}, err
		case v == true:
			n++
		default:
			if err := after.add(row); err != nil {
				return outcome{}, err
			}
		}
	}
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	t.replace(after)
	b.s.rowCount = n
	return counted(tds.CommandDelete, n), nil
}
