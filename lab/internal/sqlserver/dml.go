package sqlserver

import (
	"errors"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// insertPlan is an INSERT ready to run.
type insertPlan struct {
	table  *table
	source plan
	from   []int // column of the source for each column of the table, -1 = default
	run    *run
}

func (b *batch) insert(st *tsql.Insert) (outcome, error) {
	r := b.newRun()
	var in *insertPlan
	err := b.compile(r, func(c *compiler) (err error) {
		in, err = c.insert(st)
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	rows, err := in.build()
	if err != nil {
		return outcome{}, err
	}
	inst := b.s.inst
	inst.mu.Lock()
	undo, err := in.table.insert(rows)
	inst.mu.Unlock()
	if err != nil {
		return outcome{}, err
	}
	b.s.remember(undo)
	b.s.rowCount = int64(len(rows))
	return counted(tds.CommandInsert, b.s.rowCount), nil
}

// insert compiles an INSERT.
func (c *compiler) insert(st *tsql.Insert) (*insertPlan, error) {
	t, err := c.run.stored(st.Target)
	if err != nil {
		return nil, err
	}
	c.run.use.table(t, []string{"SNAPSHOT"}) // writing needs no hint
	targets, err := targetColumns(t, st.Columns)
	if err != nil {
		return nil, err
	}
	in := &insertPlan{table: t, run: c.run, source: &rowsPlan{rows: [][]any{{}}, run: c.run}, from: make([]int, len(t.columns))}
	for i := range in.from {
		in.from[i] = -1
	}
	if st.Source == nil {
		return in, nil
	}
	if values, ok := st.Source.Body.(*tsql.Values); ok {
		c.fillDefaults(t, targets, values)
	}
	if in.source, err = c.query(st.Source, nil); err != nil {
		return nil, err
	}
	if have := len(in.source.columns()); have != len(targets) {
		return nil, countMismatch(have, len(targets), st.Columns != nil)
	}
	for i, target := range targets {
		in.from[target] = i
	}
	return in, nil
}

func countMismatch(have, want int, listed bool) error {
	switch {
	case !listed:
		return tsql.Errorf(213, 0, "Column name or number of supplied values does not match table definition.")
	case have < want:
		return tsql.Errorf(120, 0, "The select list for the INSERT statement contains fewer items than the insert list. The number of "+
			"SELECT values must match the number of INSERT columns.")
	}
	return tsql.Errorf(121, 0, "The select list for the INSERT statement contains more items than the insert list. The number of "+
		"SELECT values must match the number of INSERT columns.")
}

// targetColumns are the places of the named columns, or of all that can be given a value.
func targetColumns(t *table, names []string) ([]int, error) {
	var out []int
	if names == nil {
		for i, c := range t.columns {
			if !c.def.Identity && c.computed == nil {
				out = append(out, i)
			}
		}
		return out, nil
	}
	seen := map[int]bool{}
	for _, name := range names {
		i := t.place(name)
		switch {
		case i < 0:
			return nil, tsql.Errorf(207, 0, "Invalid column name '%s'.", name)
		case seen[i]:
			return nil, tsql.Errorf(264, 0, "The column name '%s' is specified more than once in the SET clause or column list of an INSERT.", name)
		case t.columns[i].def.Identity:
			return nil, tsql.Errorf(544, 0, "Cannot insert explicit value for identity column in table '%s' when IDENTITY_INSERT is set to OFF.", t.name)
		case t.columns[i].computed != nil:
			return nil, tsql.Errorf(271, 0, "The column \"%s\" cannot be modified because it is either a computed column or is the result of a UNION operator.", name)
		}
		seen[i] = true
		out = append(out, i)
	}
	return out, nil
}

// fillDefaults puts a column's default where a VALUES list says DEFAULT.
func (c *compiler) fillDefaults(t *table, targets []int, values *tsql.Values) {
	for _, row := range values.Rows {
		for i := range row {
			if row[i] != nil || i >= len(targets) {
				continue
			}
			row[i] = t.columns[targets[i]].def.Default
			if row[i] == nil {
				row[i] = &tsql.NullLit{}
			}
		}
	}
}

// build computes the rows to insert.
func (in *insertPlan) build() ([][]any, error) {
	var rows [][]any
	fr := &frame{run: in.run}
	n := 0
	err := in.source.each(nil, func(given []any) error {
		if n++; n&1023 == 0 {
			if err := in.run.ended(); err != nil {
				return err
			}
		}
		row := make([]any, len(in.from))
		fr.row = row
		for i := range in.from {
			v, err := in.cell(i, given, fr)
			if err != nil {
				return err
			}
			row[i] = v
		}
		rows = append(rows, row)
		return in.table.compute(row, fr)
	})
	return rows, err
}

// cell is the value of one column.
func (in *insertPlan) cell(i int, given []any, fr *frame) (any, error) {
	c := &in.table.columns[i]
	var v any
	var err error
	switch {
	case c.computed != nil:
		return nil, nil
	case c.def.Identity:
		return in.table.nextIdentity(in.run.inst, c.def.Step), nil
	case in.from[i] >= 0:
		v = given[in.from[i]]
	case c.fallback != nil:
		if v, err = c.fallback.eval(fr); err != nil {
			return nil, err
		}
	}
	return in.table.fit(c, v, in.run.inst.version)
}

func (t *table) nextIdentity(inst *Instance, step int64) int64 {
	inst.mu.Lock()
	defer inst.mu.Unlock()
	t.identity += step
	return t.identity
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
	if s, ok := v.(string); ok && isText(c.typ.Kind) && c.typ.Size > 0 && len(s) > c.typ.Size && textLength(s) > c.typ.Size {
		if ver.major >= 15 {
			return nil, tsql.Errorf(2628, 0, "String or binary data would be truncated in table '%s', column '%s'. Truncated value: '%s'.",
				t.fullName(), c.name, string([]rune(s)[:c.typ.Size]))
		}
		return nil, tsql.Errorf(8152, 0, "String or binary data would be truncated.")
	}
	return convert(v, c.typ, 0)
}

// compute fills the computed columns of a row.
func (t *table) compute(row []any, fr *frame) error {
	for i, c := range t.columns {
		if c.computed == nil || c.fallback == nil {
			continue
		}
		fr.row = row
		v, err := c.fallback.eval(fr)
		if err != nil {
			return err
		}
		row[i] = v
	}
	return nil
}

// change is an UPDATE or DELETE ready to run.
type change struct {
	table *table
	where *scalar
	sets  map[int]scalar
	top   *scalar
	run   *run
}

func (b *batch) update(st *tsql.Update) (outcome, error) {
	r := b.newRun()
	var ch *change
	err := b.compile(r, func(c *compiler) (err error) {
		ch, err = c.change(st.Target, st.Where)
		if err != nil {
			return err
		}
		at := c.with(&scope{columns: ch.table.plainColumns()})
		for _, set := range st.Sets {
			i := ch.table.place(set.Column)
			if i < 0 {
				return tsql.Errorf(207, st.Line(), "Invalid column name '%s'.", set.Column)
			}
			if ch.sets[i], err = at.expr(set.X); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return outcome{}, err
	}
	return b.apply(ch, tds.CommandUpdate)
}

func (b *batch) remove(st *tsql.Delete) (outcome, error) {
	r := b.newRun()
	var ch *change
	err := b.compile(r, func(c *compiler) (err error) {
		if ch, err = c.change(st.Target, st.Where); err != nil || st.Top == nil {
			return err
		}
		s, err := c.expr(st.Top)
		s = converted(s, typeBigInt)
		ch.top = &s
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	return b.apply(ch, tds.CommandDelete)
}

func (c *compiler) change(target tsql.Name, where tsql.Expr) (*change, error) {
	t, err := c.run.stored(target)
	if err != nil {
		return nil, err
	}
	c.run.use.table(t, nil)
	ch := &change{table: t, sets: map[int]scalar{}, run: c.run}
	if where != nil {
		cond, err := c.with(&scope{columns: aliasColumns(t)}).expr(where)
		if err != nil {
			return nil, err
		}
		ch.where = &cond
	}
	return ch, nil
}

func aliasColumns(t *table) []column {
	cols := t.plainColumns()
	for i := range cols {
		cols[i].table = fold(t.name)
	}
	return cols
}

// apply runs a change: no SET list means that the rows go.
func (b *batch) apply(ch *change, command uint16) (outcome, error) {
	inst := b.s.inst
	inst.mu.Lock()
	ch.table.expand()
	before := ch.table.rows
	inst.mu.Unlock()
	after, n, err := ch.rows(before)
	if err != nil {
		return outcome{}, err
	}
	inst.mu.Lock()
	defer inst.mu.Unlock()
	ch.table.replace(after)
	if err := ch.table.checkKeys(); err != nil {
		ch.table.replace(before)
		return outcome{}, err
	}
	b.s.remember(func() { ch.table.replace(before) })
	b.s.rowCount = n
	return counted(command, n), nil
}

// rows are the rows after the change, and how many were changed.
func (ch *change) rows(before [][]any) ([][]any, int64, error) {
	limit := int64(-1)
	if ch.top != nil {
		v, err := ch.top.eval(&frame{run: ch.run})
		if err != nil {
			return nil, 0, err
		}
		limit, _ = v.(int64)
	}
	var after [][]any
	var n int64
	fr := &frame{run: ch.run}
	for _, row := range before {
		fr.row = row
		hit := limit < 0 || n < limit
		if hit && ch.where != nil {
			v, err := ch.where.eval(fr)
			if err != nil {
				return nil, 0, err
			}
			hit = v == true
		}
		if !hit {
			after = append(after, row)
			continue
		}
		n++
		if len(ch.sets) == 0 {
			continue
		}
		changed, err := ch.changed(row, fr)
		if err != nil {
			return nil, 0, err
		}
		after = append(after, changed)
	}
	return after, n, nil
}

func (ch *change) changed(row []any, fr *frame) ([]any, error) {
	out := append([]any(nil), row...)
	for i, s := range ch.sets {
		v, err := s.eval(fr)
		if err != nil {
			return nil, err
		}
		if out[i], err = ch.table.fit(&ch.table.columns[i], v, ch.run.inst.version); err != nil {
			return nil, err
		}
	}
	return out, ch.table.compute(out, &frame{run: fr.run})
}

// checkKeys rebuilds the unique keys of a table.
func (t *table) checkKeys() error {
	rows := t.rows
	t.rows = nil
	defer func() { t.rows = rows }()
	var failures []error
	for _, u := range t.unique {
		u.keys = nil
		failures = append(failures, u.addAll(t, rows))
	}
	return errors.Join(failures...)
}

func (b *batch) truncate(st *tsql.Truncate) (outcome, error) {
	r := b.newRun()
	var t *table
	err := b.compile(r, func(c *compiler) (err error) {
		t, err = r.stored(st.Target)
		if err == nil && t.memoryOptimized {
			err = tsql.Errorf(10794, st.Line(), "The statement 'TRUNCATE TABLE' is not supported with memory optimized tables.")
		}
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	t.expand()
	before := t.rows
	t.replace(nil)
	t.identity = t.firstIdentity()
	b.s.remember(func() { t.replace(before) })
	b.s.rowCount = 0
	return outcome{done: &tds.Done{}}, nil
}

// firstIdentity is the value before the first that an identity column gives.
func (t *table) firstIdentity() int64 {
	for _, c := range t.columns {
		if c.def.Identity {
			return c.def.Seed - c.def.Step
		}
	}
	return 0
}

func now() time.Time { return time.Now().UTC() }
