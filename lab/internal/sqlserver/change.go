package sqlserver

import (
	"errors"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

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
