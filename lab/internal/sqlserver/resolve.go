package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

func invalidObject(n tsql.Name) error {
	return tsql.Errorf(208, n.Line, "Invalid object name '%s'.", strings.Join(n.Parts, "."))
}

// table compiles a named source: CTE, temporary table, system view or user table.
func (c *compiler) table(ref *tsql.Table) (plan, error) {
	n := ref.Name
	alias := ref.Alias
	if alias == "" {
		alias = n.Object()
	}
	if len(n.Parts) == 1 {
		if found := c.ctes.find(n.Object()); found != nil {
			at := &compiler{run: c.run, ctes: found.parent}
			p, err := at.query(found.cte.Query)
			if err != nil {
				return nil, err
			}
			return aliased(p, alias, found.cte.Columns, n.Line)
		}
	}
	if p, err := c.view(n); p != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return aliased(p, alias, nil, n.Line)
	}
	t, err := c.run.stored(n)
	if err != nil {
		return nil, err
	}
	c.run.use.table(t)
	return aliased(c.scan(t), alias, nil, n.Line)
}

func (c *compiler) scan(t *table) plan {
	if t.repeated != nil {
		c.run.use.stores = append(c.run.use.stores, t.repeated.rows)
		return &repeatedPlan{cols: t.plainColumns(), table: t, of: t.repeated, run: c.run}
	}
	if t.counted > 0 {
		c.run.use.volatile = true
		return &countedPlan{cols: t.plainColumns(), rows: t.count()}
	}
	c.run.use.stores = append(c.run.use.stores, t.rows)
	return &scanPlan{cols: t.plainColumns(), table: t, rows: t.rows, to: t.rows.rows, run: c.run}
}

// stored finds a table by name. The caller holds Instance.mu.
func (r *run) stored(n tsql.Name) (*table, error) {
	object := n.Object()
	if strings.HasPrefix(object, "#") {
		if t := r.s.temp[fold(object)]; t != nil {
			return t, nil
		}
		return nil, invalidObject(n)
	}
	db, err := r.databaseOf(n)
	if err != nil {
		return nil, err
	}
	if t := db.find(n.Qualifier(1), object); t != nil {
		return t, nil
	}
	return nil, invalidObject(n)
}

// databaseOf is the database that a name points to. The caller holds Instance.mu.
func (r *run) databaseOf(n tsql.Name) (*database, error) {
	if name := n.Qualifier(2); name != "" {
		db := r.inst.lookup(name)
		if db == nil {
			return nil, invalidObject(n)
		}
		return r.inst.database(name)
	}
	return r.s.db, nil
}

// view compiles a system view; nil if the name is not one.
func (c *compiler) view(n tsql.Name) (plan, error) {
	schemaName := fold(n.Qualifier(1))
	if schemaName == "" { // old names without a schema: sysobjects and so on are not modelled
		return nil, nil
	}
	v := views[schemaName+"."+fold(n.Object())]
	if v == nil || !c.run.inst.version.has(v.since) {
		return nil, nil
	}
	if err := c.run.s.requireView(v.name); err != nil {
		return nil, err
	}
	db, err := c.run.databaseOf(n)
	if err != nil {
		return nil, err
	}
	c.run.use.volatile = true
	return v.plan(&viewContext{run: c.run, db: db}), nil
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
func (u *touched) check() error {
	if u.xtp && u.crossed {
		return tsql.Errorf(41317, 0, "A user transaction that accesses memory optimized tables or natively compiled modules cannot "+
			"access more than one user database or databases model and msdb, and it cannot write to master.")
	}
	return nil
}
