package sqlserver

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

// define runs CREATE TABLE, INDEX, SCHEMA and PROCEDURE, and DROP.
func (b *batch) define(st tsql.Statement) error {
	b.s.rowCount = 0
	switch st := st.(type) {
	case *tsql.CreateTable:
		t, err := b.newTable(st)
		if err != nil {
			return err
		}
		return b.addTable(t)
	case *tsql.CreateSchema:
		return b.createSchema(st)
	case *tsql.CreateIndex:
		return b.createIndex(st)
	case *tsql.CreateProcedure:
		return b.createProcedure(st)
	case *tsql.Drop:
		for _, n := range st.Names {
			if err := b.drop(st, n); err != nil {
				return err
			}
		}
		return nil
	}
	return tsql.Unmodelled(st.Line(), "this definition")
}

// locate finds a new table's database, schema and name.
func (b *batch) locate(t *table, n tsql.Name) error {
	t.name, t.schema = n.Object(), "dbo"
	if strings.HasPrefix(t.name, "#") {
		return nil
	}
	inst := b.s.inst
	inst.mu.Lock()
	defer inst.mu.Unlock()
	db, err := (b.newRun()).databaseOf(n)
	if err != nil {
		return err
	}
	schemaName := n.Qualifier(1)
	if schemaName == "" {
		schemaName = "dbo"
	}
	found := db.schemas[fold(schemaName)]
	if found == nil {
		return tsql.Errorf(2760, n.Line, "The specified schema name \"%s\" either does not exist or you do not have permission to use it.", schemaName)
	}
	t.db, t.schema = db, found.name
	return nil
}

// newTable builds a table from its definition.
func (b *batch) newTable(def *tsql.CreateTable) (*table, error) {
	t := &table{memoryOptimized: def.MemoryOptimized, schemaOnly: def.SchemaOnly, name: def.Name.Object(), indexes: def.Indexes}
	if err := b.locate(t, def.Name); err != nil {
		return nil, err
	}
	for _, c := range def.Columns {
		if err := b.addColumn(t, c); err != nil {
			return nil, err
		}
	}
	for i := range t.indexes {
		if err := t.addIndex(&t.indexes[i]); err != nil {
			return nil, err
		}
	}
	t.rows = t.empty()
	return t, b.checkMemoryOptimized(t, def.Line())
}

func (b *batch) addColumn(t *table, def tsql.ColumnDef) error {
	if t.place(def.Name) >= 0 {
		return tsql.Errorf(2705, 0, "Column names in each table must be unique. Column name '%s' in table '%s' is specified more than once.",
			def.Name, t.name)
	}
	c := tableColumn{column: column{name: def.Name, nullable: def.Nullable}, def: def}
	var err error
	if c.typ, err = resolveType(def.Type, 1); err != nil {
		return err
	}
	if def.Default != nil {
		r := b.newRun()
		if err := b.compile(r, func(cc *compiler) error {
			s, err := cc.expr(def.Default)
			c.fallback = &s
			return err
		}); err != nil {
			return err
		}
	}
	t.columns = append(t.columns, c)
	return nil
}

// addIndex checks an index and makes it enforce its key.
func (t *table) addIndex(x *tsql.IndexDef) error {
	var at []int
	for _, name := range x.Columns {
		i := t.place(name)
		if i < 0 {
			return tsql.Errorf(1911, 0, "Column name '%s' does not exist in the target table or view.", name)
		}
		at = append(at, i)
	}
	if x.Name == "" {
		x.Name = fmt.Sprintf("%s__%.9s__%08X", map[bool]string{true: "PK", false: "UQ"}[x.Primary], t.name, hash32([]byte(t.fullName())))
	}
	if x.Unique || x.Primary {
		t.unique = append(t.unique, &uniqueKey{index: *x, places: at})
	}
	return nil
}

// checkMemoryOptimized applies the rules for memory-optimised tables.
func (b *batch) checkMemoryOptimized(t *table, line int) error {
	if !t.memoryOptimized || t.db == nil {
		return nil
	}
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	if !slices.ContainsFunc(t.db.files, t.db.isMemoryOptimized) {
		return tsql.Errorf(41337, line, "Cannot create memory optimized tables. To create memory optimized tables, the database must "+
			"have a MEMORY_OPTIMIZED_FILEGROUP that is online and has at least one container.")
	}
	return nil
}

// absent returns an error if a table's name is already used.
func (b *batch) absent(t *table) error {
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	return b.s.free(t)
}

// free is absent for a caller that holds Instance.mu.
func (s *Session) free(t *table) error {
	if s.temp[fold(t.name)] != nil || t.db != nil && t.db.taken(t.schema, t.name) {
		return tsql.Errorf(2714, 0, "There is already an object named '%s' in the database.", t.name)
	}
	return nil
}

// addTable stores a table under its name.
func (b *batch) addTable(t *table) error {
	s := b.s
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	if err := s.free(t); err != nil {
		return err
	}
	if strings.HasPrefix(t.name, "#") {
		key := fold(t.name)
		tempdb := s.inst.lookup("tempdb")
		t.id = -tempdb.newObjectID()
		s.temp[key] = t
		return nil
	}
	key := fold(t.schema + "." + t.name)
	t.id = t.db.newObjectID()
	t.db.tables[key] = t
	return nil
}

func (b *batch) createSchema(st *tsql.CreateSchema) error {
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	db := b.s.db
	key := fold(st.Name)
	if db.schemas[key] != nil {
		return tsql.Errorf(2714, st.Line(), "There is already an object named '%s' in the database.", st.Name)
	}
	db.schemas[key] = &schema{id: len(db.schemas) + 1, name: st.Name}
	return nil
}

func (b *batch) createIndex(st *tsql.CreateIndex) error {
	r := b.newRun()
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	t, err := r.stored(st.Table)
	if err != nil {
		return tsql.Errorf(1088, st.Line(), "Cannot find the object \"%s\" because it does not exist or you do not have permissions.",
			strings.Join(st.Table.Parts, "."))
	}
	x := st.Index
	if x.Unique {
		if err := t.known(); err != nil {
			return err
		}
	}
	before := t.unique
	if err := t.addIndex(&x); err != nil {
		return err
	}
	if err := t.keep(t.rows, 0); err != nil {
		t.unique = before
		return err
	}
	t.indexes = append(t.indexes, x)
	return nil
}

// drop removes one table, schema, procedure or database.
func (b *batch) drop(st *tsql.Drop, n tsql.Name) error {
	missing := func(kind string) error {
		if st.IfExists {
			return nil
		}
		return &tsql.Error{Number: 3701, Class: 11, State: 5, Line: n.Line, Text: fmt.Sprintf("Cannot drop the %s '%s', because it does not "+
			"exist or you do not have permission.", kind, strings.Join(n.Parts, "."))}
	}
	r := b.newRun()
	s := b.s
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	switch st.What {
	case "DATABASE":
		if s.inst.lookup(n.Object()) == nil {
			return missing("database")
		}
		return s.dropDatabase(n.Object())
	case "RESOURCE POOL":
		return s.inst.dropPool(n.Object(), n.Line)
	case "PROCEDURE":
		p, err := r.procedure(n)
		if err != nil {
			return missing("procedure")
		}
		delete(p.db.procedures, p.key())
		return nil
	}
	t, err := r.stored(n)
	if err != nil {
		return missing("table")
	}
	s.dropTable(t)
	return nil
}

func (s *Session) dropTable(t *table) {
	if t.db == nil {
		delete(s.temp, fold(t.name))
		return
	}
	delete(t.db.tables, fold(t.schema+"."+t.name))
}

func (s *Session) dropDatabase(name string) error {
	db := s.inst.lookup(name)
	if db.system() {
		return tsql.Errorf(3708, 0, "Cannot drop the database '%s' because it is a system database.", db.name)
	}
	for _, other := range s.inst.sessions {
		if other.db == db && (other == s || db.option("USER_ACCESS", "MULTI_USER") != "SINGLE_USER") {
			return tsql.Errorf(3702, 0, "Cannot drop database \"%s\" because it is currently in use.", db.name)
		}
	}
	s.inst.databases = slices.DeleteFunc(s.inst.databases, func(d *database) bool { return d == db })
	go debug.FreeOSMemory() // its tables used most of the lab's memory
	return nil
}

// uniqueKey is a primary key or unique index.
type uniqueKey struct {
	index  tsql.IndexDef
	places []int
}

// insert adds rows after checking keys.
func (t *table) insert(rows *store) error {
	if t.repeated != nil {
		return errCounted
	}
	return t.keep(t.rows.with(rows), t.rows.rows)
}

// keep makes rows those of the table, in the order of its first key, which those up to `from` have already. Stores passed to
// readers before stay as they were.
func (t *table) keep(rows *store, from int) error {
	for n, u := range slices.Backward(t.unique) {
		if n > 0 {
			from = 0
		}
		sorted, duplicate := rows.inOrder(u.places, from)
		if duplicate >= 0 {
			return u.duplicate(t, sorted, duplicate)
		}
		if n == 0 {
			rows = sorted
		}
	}
	t.rows = rows
	return nil
}

// replace replaces all rows by others, in the same order.
func (t *table) replace(rows *store) {
	t.repeated, t.counted, t.rows = nil, 0, rows
}

// ordered is the key in whose order the table is read without a sort, as the optimiser would use it: a clustered one, or any
// range index of a memory-optimised table. Nil if that is not the order of these columns.
func (t *table) ordered(columns []int) *uniqueKey {
	if len(t.unique) == 0 {
		return nil
	}
	u := t.unique[0]
	n := min(len(columns), len(u.places))
	if u.index.Hash || !(t.memoryOptimized || u.index.Clustered) || !slices.Equal(columns[:n], u.places[:n]) {
		return nil
	}
	return u
}

func (u *uniqueKey) duplicate(t *table, s *store, row int) error {
	var values []string
	for _, p := range u.places {
		v := s.cells[p].value(row)
		text, err := toText(v)
		if v == nil || err != nil {
			text = "<NULL>"
		}
		values = append(values, text)
	}
	key := "(" + strings.Join(values, ", ") + ")"
	if u.index.Primary {
		return tsql.Errorf(2627, 0, "Violation of PRIMARY KEY constraint '%s'. Cannot insert duplicate key in object '%s'. "+
			"The duplicate key value is %s.", u.index.Name, t.fullName(), key)
	}
	return tsql.Errorf(2601, 0, "Cannot insert duplicate key row in object '%s' with unique index '%s'. The duplicate key value is %s.",
		t.fullName(), u.index.Name, key)
}
