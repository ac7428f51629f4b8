package sqlserver

import "vnuma.dev/lab/internal/tsql"

// touched are the kinds of tables that a statement uses, for the rule of memory-optimised tables.
type touched struct {
	xtp     bool      // a memory-optimised table
	user    *database // the user database used
	crossed bool      // more than one user database
}

// table notes the use of a table; system views and temporary tables do not count.
func (u *touched) table(t *table) {
	if t.db == nil || t.db.system() {
		return
	}
	u.crossed = u.crossed || u.user != nil && u.user != t.db
	u.user = t.db
	u.xtp = u.xtp || t.memoryOptimized
}

// check keeps memory-optimised tables to one user database.
func (u *touched) check() error {
	if u.xtp && u.crossed {
		return tsql.Errorf(41317, 0, "A user transaction that accesses memory optimized tables or natively compiled modules cannot "+
			"access more than one user database or databases model and msdb, and it cannot write to master.")
	}
	return nil
}
