package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

func invalidObject(n tsql.Name) *tsql.Error {
	return tsql.Errorf(208, n.Line, "Invalid object name '%s'.", strings.Join(n.Parts, "."))
}

// found is what find gives for a name, or nothing if it fails.
func found[T any](find func(tsql.Name) T, n tsql.Name) (out T) {
	tsql.Catch(func() { out = find(n) })
	return out
}

// table compiles a named source: CTE, temporary table, system view or user table.
func (c *compiler) table(ref *tsql.Table) plan {
	n := ref.Name
	alias := ref.Alias
	if alias == "" {
		alias = n.Object()
	}
	if len(n.Parts) == 1 {
		if found := c.ctes.find(n.Object()); found != nil {
			at := &compiler{run: c.run, ctes: found.parent}
			return aliased(at.query(found.cte.Query), alias, found.cte.Columns, n.Line)
		}
	}
	if p := c.view(n); p != nil {
		return aliased(p, alias, nil, n.Line)
	}
	t := c.run.stored(n)
	c.run.use.table(t)
	return aliased(c.scan(t), alias, nil, n.Line)
}

func (c *compiler) scan(t *table) plan {
	if t.repeated != nil {
		c.run.use.stores = append(c.run.use.stores, t.repeated.rows)
		return &repeatedPlan{source: source{t.plainColumns()}, table: t, of: t.repeated, run: c.run}
	}
	if t.counted > 0 {
		c.run.use.volatile = true
		return &countedPlan{source{t.plainColumns()}, t.count()}
	}
	c.run.use.stores = append(c.run.use.stores, t.rows)
	return &scanPlan{source: source{t.plainColumns()}, table: t, rows: t.rows, to: t.rows.rows, run: c.run}
}

// stored finds a table by name. The caller holds Instance.mu.
func (r *run) stored(n tsql.Name) *table {
	object := n.Object()
	if strings.HasPrefix(object, "#") {
		if t := r.s.temp[fold(object)]; t != nil {
			return t
		}
		panic(invalidObject(n))
	}
	db := r.databaseOf(n)
	if t := db.find(n.Qualifier(1), object); t != nil {
		return t
	}
	panic(invalidObject(n))
}

// databaseOf is the database that a name points to. The caller holds Instance.mu.
func (r *run) databaseOf(n tsql.Name) *database {
	if name := n.Qualifier(2); name != "" {
		db := r.inst.lookup(name)
		if db == nil {
			panic(invalidObject(n))
		}
		return r.inst.database(name)
	}
	return r.s.db
}

// view compiles a system view; nil if the name is not one.
func (c *compiler) view(n tsql.Name) plan {
	schemaName := fold(n.Qualifier(1))
	if schemaName == "" { // old names without a schema: sysobjects and so on are not modelled
		return nil
	}
	v := views[schemaName+"."+fold(n.Object())]
	if v == nil || !c.run.inst.version.has(v.since) {
		return nil
	}
	c.run.s.requireView(v.name)
	db := c.run.databaseOf(n)
	c.run.use.volatile = true
	return v.plan(&viewContext{run: c.run, db: db})
}

// touched is what a statement uses.
type touched struct {
	xtp     bool      // a memory-optimised table
	user    *database // the user database used
	crossed bool      // more than one user database

	stores   []*store // that it reads
	volatile bool     // it depends on anything else as well
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
func (u *touched) check() {
	if u.xtp && u.crossed {
		panic(tsql.Errorf(41317, 0, "A user transaction that accesses memory optimized tables or natively compiled modules cannot "+
			"access more than one user database or databases model and msdb, and it cannot write to master."))
	}
}
