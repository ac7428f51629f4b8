package sqlserver

import (
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// change is an UPDATE or DELETE ready to run.
type change struct {
	table *table
	where *scalar
	sets  map[int]scalar
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
		ch, err = c.change(st.Target, st.Where)
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
	c.run.use.table(t)
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

// apply runs a change: without a SET list the rows are deleted.
func (b *batch) apply(ch *change, command uint16) (outcome, error) {
	before, err := ch.before()
	if err != nil {
		return outcome{}, err
	}
	after, n, err := ch.rows(before)
	if err != nil {
		return outcome{}, err
	}
	inst := b.s.inst
	inst.mu.Lock()
	defer inst.mu.Unlock()
	ch.table.replace(after)
	if err := ch.table.checkKeys(); err != nil {
		ch.table.replace(before)
		return outcome{}, err
	}
	b.s.rowCount = n
	return counted(command, n), nil
}

func (ch *change) before() (*store, error) {
	ch.run.inst.mu.Lock()
	defer ch.run.inst.mu.Unlock()
	return ch.table.rows, ch.table.known()
}

// rows are the rows after the change, and how many were changed.
func (ch *change) rows(before *store) (*store, int64, error) {
	after := ch.table.empty()
	var n int64
	row := make([]any, len(before.cells))
	for i := range before.rows {
		if i&1023 == 1023 {
			if err := ch.run.ended(); err != nil {
				return nil, 0, err
			}
		}
		hit, err := ch.hits(before, i, row)
		switch {
		case err != nil:
			return nil, 0, err
		case !hit:
			after.copyFrom(before, i)
			continue
		}
		n++
		if err := ch.changed(after, row); err != nil {
			return nil, 0, err
		}
	}
	return after, n, nil
}

// hits reports whether a row is to be changed, and reads it if its values are needed.
func (ch *change) hits(before *store, place int, row []any) (bool, error) {
	if ch.where == nil && len(ch.sets) == 0 {
		return true, nil
	}
	before.read(place, row)
	if ch.where == nil {
		return true, nil
	}
	v, err := ch.where.eval(row)
	return v == true, err
}

// changed adds the row after the change, unless it is deleted.
func (ch *change) changed(after *store, row []any) error {
	if len(ch.sets) == 0 {
		return nil
	}
	out := append([]any(nil), row...)
	for i, s := range ch.sets {
		v, err := s.eval(row)
		if err != nil {
			return err
		}
		if out[i], err = ch.table.fit(&ch.table.columns[i], v, ch.run.inst.version); err != nil {
			return err
		}
	}
	return after.add(out)
}
