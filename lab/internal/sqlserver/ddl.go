package sqlserver

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

// define runs CREATE TABLE, INDEX, SCHEMA and PROCEDURE, and DROP.
func (b *batch) define(st tsql.Statement) {
	b.s.rowCount = 0
	switch st := st.(type) {
	case *tsql.CreateTable:
		b.addTable(b.newTable(st))
	case *tsql.CreateSchema:
		b.createSchema(st)
	case *tsql.CreateIndex:
		b.createIndex(st)
	case *tsql.CreateProcedure:
		b.createProcedure(st)
	case *tsql.Drop:
		for _, n := range st.Names {
			b.drop(st, n)
		}
	}
}

// locate finds a new table's database, schema and name.
func (b *batch) locate(t *table, n tsql.Name) {
	t.name, t.schema = n.Object(), "dbo"
	if strings.HasPrefix(t.name, "#") {
		return
	}
	inst := b.s.inst
	inst.mu.Lock()
	defer inst.mu.Unlock()
	t.db = b.newRun().databaseOf(n)
	t.schema = t.db.schemaNamed(n)
}

// newTable builds a table from its definition.
func (b *batch) newTable(def *tsql.CreateTable) *table {
	t := &table{memoryOptimized: def.MemoryOptimized, schemaOnly: def.SchemaOnly, name: def.Name.Object(), indexes: def.Indexes}
	b.locate(t, def.Name)
	for _, c := range def.Columns {
		b.addColumn(t, c)
	}
	for i := range t.indexes {
		t.addIndex(&t.indexes[i])
	}
	t.rows = t.empty()
	b.checkMemoryOptimized(t, def.Line())
	return t
}

func (b *batch) addColumn(t *table, def tsql.ColumnDef) {
	if t.place(def.Name) >= 0 {
		panic(tsql.Errorf(2705, 0, "Column names in each table must be unique. Column name '%s' in table '%s' is specified more than once.",
			def.Name, t.name))
	}
	c := tableColumn{column: column{name: def.Name, nullable: def.Nullable}}
	c.typ = resolveType(def.Type, 1)
	if def.Default != nil {
		s := compiled(b.newRun(), func(cc *compiler) scalar { return cc.expr(def.Default) })
		c.fallback = &s
	}
	t.columns = append(t.columns, c)
}

// addIndex checks an index and makes it enforce its key.
func (t *table) addIndex(x *tsql.IndexDef) {
	var at []int
	for _, name := range x.Columns {
		i := t.place(name)
		if i < 0 {
			panic(tsql.Errorf(1911, 0, "Column name '%s' does not exist in the target table or view.", name))
		}
		at = append(at, i)
	}
	if x.Name == "" {
		x.Name = fmt.Sprintf("%s__%.9s__%08X", map[bool]string{true: "PK", false: "UQ"}[x.Primary], t.name, hash32([]byte(t.fullName())))
	}
	if x.Unique || x.Primary {
		t.unique = append(t.unique, &uniqueKey{index: *x, places: at})
	}
}

// checkMemoryOptimized applies the rules for memory-optimised tables.
func (b *batch) checkMemoryOptimized(t *table, line int) {
	if !t.memoryOptimized || t.db == nil {
		return
	}
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	if !slices.ContainsFunc(t.db.files, t.db.isMemoryOptimized) {
		panic(tsql.Errorf(41337, line, "Cannot create memory optimized tables. To create memory optimized tables, the database must "+
			"have a MEMORY_OPTIMIZED_FILEGROUP that is online and has at least one container."))
	}
}

// free refuses a table's name that is already used. The caller holds Instance.mu.
func (s *Session) free(t *table) {
	if s.temp[fold(t.name)] != nil || t.db != nil && t.db.taken(t.schema, t.name) {
		panic(tsql.Errorf(2714, 0, "There is already an object named '%s' in the database.", t.name))
	}
}

// addTable stores a table under its name.
func (b *batch) addTable(t *table) {
	s := b.s
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	s.free(t)
	if strings.HasPrefix(t.name, "#") {
		key := fold(t.name)
		tempdb := s.inst.lookup("tempdb")
		t.id = -tempdb.newObjectID()
		s.temp[key] = t
		return
	}
	key := fold(t.schema + "." + t.name)
	t.id = t.db.newObjectID()
	t.db.tables[key] = t
}

func (b *batch) createSchema(st *tsql.CreateSchema) {
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	db := b.s.db
	key := fold(st.Name)
	if db.schemas[key] != nil {
		panic(tsql.Errorf(2714, st.Line(), "There is already an object named '%s' in the database.", st.Name))
	}
	db.schemas[key] = &schema{id: len(db.schemas) + 1, name: st.Name}
}

func (b *batch) createIndex(st *tsql.CreateIndex) {
	r := b.newRun()
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	t := found(r.stored, st.Table)
	if t == nil {
		panic(tsql.Errorf(1088, st.Line(), "Cannot find the object \"%s\" because it does not exist or you do not have permissions.",
			strings.Join(st.Table.Parts, ".")))
	}
	x := st.Index
	if x.Unique {
		t.known()
	}
	with := *t // if its key is not unique, the table has no such index
	with.addIndex(&x)
	with.keep(t.rows, 0)
	with.indexes = append(t.indexes, x)
	*t = with
}

// drop removes one table, schema, procedure or database.
func (b *batch) drop(st *tsql.Drop, n tsql.Name) {
	missing := func(kind string) {
		if st.IfExists {
			return
		}
		panic(&tsql.Error{Number: 3701, Class: 11, State: 5, Line: n.Line, Text: fmt.Sprintf("Cannot drop the %s '%s', because it does not "+
			"exist or you do not have permission.", kind, strings.Join(n.Parts, "."))})
	}
	r := b.newRun()
	s := b.s
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	switch st.What {
	case "DATABASE":
		if db := s.inst.lookup(n.Object()); db != nil {
			s.dropDatabase(db)
		} else {
			missing("database")
		}
	case "RESOURCE POOL":
		s.inst.dropPool(n.Object(), n.Line)
	case "PROCEDURE":
		if p := found(r.procedure, n); p != nil {
			delete(p.db.procedures, p.key())
		} else {
			missing("procedure")
		}
	default:
		switch t := found(r.stored, n); {
		case t == nil:
			missing("table")
		case t.db == nil:
			delete(s.temp, fold(t.name))
		default:
			delete(t.db.tables, fold(t.schema+"."+t.name))
		}
	}
}

func (s *Session) dropDatabase(db *database) {
	if db.system() {
		panic(tsql.Errorf(3708, 0, "Cannot drop the database '%s' because it is a system database.", db.name))
	}
	for _, other := range s.inst.sessions {
		if other.db == db && (other == s || db.option("USER_ACCESS", "MULTI_USER") != "SINGLE_USER") {
			panic(tsql.Errorf(3702, 0, "Cannot drop database \"%s\" because it is currently in use.", db.name))
		}
	}
	s.inst.databases = slices.DeleteFunc(s.inst.databases, func(d *database) bool { return d == db })
	go debug.FreeOSMemory() // its tables used most of the lab's memory
}

// uniqueKey is a primary key or unique index.
type uniqueKey struct {
	index  tsql.IndexDef
	places []int
}

// insert adds rows after checking keys.
func (t *table) insert(rows *store) {
	if t.repeated != nil {
		panic(errCounted)
	}
	t.keep(t.rows.with(rows), t.rows.rows)
}

// keep makes rows those of the table, in the order of its first key, which those up to `from` have already. Stores passed to
// readers before stay as they were.
func (t *table) keep(rows *store, from int) {
	for n, u := range slices.Backward(t.unique) {
		if n > 0 {
			from = 0
		}
		sorted, duplicate := rows.inOrder(u.places, from)
		if duplicate >= 0 {
			panic(u.duplicate(t, sorted, duplicate))
		}
		if n == 0 {
			rows = sorted
		}
	}
	t.rows = rows
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

func (u *uniqueKey) duplicate(t *table, s *store, row int) *tsql.Error {
	var values []string
	for _, p := range u.places {
		text := "<NULL>"
		if v := s.cells[p].value(row); v != nil {
			text = toText(v)
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
