package sqlserver

import (
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

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
			after.copyFrom(before, i)
		}
	}
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	t.replace(after)
	b.s.rowCount = n
	return counted(tds.CommandDelete, n), nil
}
