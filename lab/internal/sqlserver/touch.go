package sqlserver

import "vnuma.dev/lab/internal/tsql"

// touched are the kinds of tables that a statement uses, for the rules of memory-optimised tables.
type touched struct {
	xtp      bool      // a memory-optimised table
	noHint   bool      // one of them without the SNAPSHOT hint
	elevated bool      // its database elevates to SNAPSHOT
	user     *database // the user database used
	crossed  bool      // more than one user database
}

// table notes the use of a table; system views and temporary tables do not count.
func (u *touched) table(t *table, hints []string) {
	if t.db == nil || t.db.system() {
		return
	}
	if u.user != nil && u.user != t.db {
		u.crossed = true
	}
	u.user = t.db
	if !t.memoryOptimized {
		return
	}
	u.xtp = true
	hinted := false
	for _, h := range hints {
		hinted = hinted || h == "SNAPSHOT" || h == "REPEATABLEREAD" || h == "SERIALIZABLE"
	}
	u.noHint = u.noHint || !hinted
	u.elevated = t.db.option("MEMORY_OPTIMIZED_ELEVATE_TO_SNAPSHOT", "OFF") == "ON"
}

// check applies the rules, over the whole transaction when one is open.
func (u *touched) check(s *Session) error {
	if u.user == nil {
		return nil
	}
	if s.tx.depth > 0 {
		u.join(&s.tx)
	}
	if u.xtp && u.crossed {
		return tsql.Errorf(41317, 0, "A user transaction that accesses memory optimized tables or natively compiled modules cannot "+
			"access more than one user database or databases model and msdb, and it cannot write to master.")
	}
	if u.noHint && !u.elevated && s.tx.depth > 0 && s.options.isolation == "READ COMMITTED" {
		return tsql.Errorf(41368, 0, "Accessing memory optimized tables using the READ COMMITTED isolation level is supported only "+
			"for autocommit transactions. It is not supported for explicit or implicit transactions. Provide a supported isolation "+
			"level for the memory optimized table using a table hint, such as WITH (SNAPSHOT).")
	}
	return nil
}

// join adds what the open transaction touched before, and remembers what is new.
func (u *touched) join(tx *transaction) {
	if u.user != nil && tx.user != nil && u.user != tx.user {
		u.crossed = true
	}
	u.crossed = u.crossed || tx.crossed
	u.xtp = u.xtp || tx.xtp
	tx.crossed, tx.xtp = u.crossed, u.xtp
	if u.user != nil {
		tx.user = u.user
	}
}
