package sqlserver

import (
	"cmp"
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
	hasKey := false
	for _, x := range t.indexes {
		hasKey = hasKey || x.Primary
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
	if err := t.addIndex(&x); err != nil {
		return err
	}
	if err := t.checkKeys(); err != nil {
		t.unique = t.unique[:len(t.unique)-1]
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

// uniqueKey enforces a primary key or unique index by the sorted order of its rows.
type uniqueKey struct {
	index  tsql.IndexDef
	places []int
	order  *keyOrder // nil until needed
}

// keyOrder is the order of the rows of a store by a key; rows is nil if they are in that order.
type keyOrder struct{ rows []int32 }

// at is the row at a position of the order.
func (o *keyOrder) at(place int) int {
	if o.rows == nil {
		return place
	}
	return int(o.rows[place])
}

const noDuplicate = -1

// inOrder finds the order of the rows of a table's store.
func (u *uniqueKey) inOrder(s *store) *keyOrder {
	if u.order == nil {
		u.order, _ = u.extended(&keyOrder{}, s, 0)
	}
	return u.order
}

// extended merges the rows of a store from one on into the order of those before. duplicate is the first row
// with the key of an earlier row.
func (u *uniqueKey) extended(o *keyOrder, s *store, from int) (out *keyOrder, duplicate int) {
	if u.ascending(o, s, from) {
		if o.rows != nil {
			o = &keyOrder{rows: append(o.rows[:len(o.rows):len(o.rows)], numbered(from, s.rows)...)}
		}
		return o, noDuplicate
	}
	rows := numbered(0, s.rows)
	slices.SortFunc(rows, func(a, b int32) int {
		return cmp.Or(s.compare(int(a), int(b), u.places), cmp.Compare(a, b))
	})
	duplicate = noDuplicate
	for place := 1; place < len(rows); place++ {
		before, row := int(rows[place-1]), int(rows[place])
		if s.compare(before, row, u.places) == 0 && (duplicate == noDuplicate || row < duplicate) {
			duplicate = row
		}
	}
	return &keyOrder{rows: rows}, duplicate
}

// ascending reports whether the rows from one on follow all others in the order of the key, each once.
func (u *uniqueKey) ascending(o *keyOrder, s *store, from int) bool {
	for row := max(from, 1); row < s.rows; row++ {
		before := row - 1
		if row == from {
			before = o.at(from - 1)
		}
		if s.compare(before, row, u.places) >= 0 {
			return false
		}
	}
	return true
}

func numbered(from, to int) []int32 {
	out := make([]int32, 0, to-from)
	for row := from; row < to; row++ {
		out = append(out, int32(row))
	}
	return out
}

// insert adds rows after checking keys.
func (t *table) insert(rows *store) error {
	if t.repeated != nil {
		return errCounted
	}
	before := t.rows
	after := before.with(rows)
	orders := make([]*keyOrder, len(t.unique))
	for i, u := range t.unique {
		order, duplicate := u.extended(u.inOrder(before), after, before.rows)
		if duplicate != noDuplicate {
			return u.duplicate(t, after, duplicate)
		}
		orders[i] = order
	}
	t.rows = after
	for i, u := range t.unique {
		u.order = orders[i]
	}
	return nil
}

// replace replaces all rows by others; stores passed to readers before stay as they were.
func (t *table) replace(rows *store) {
	t.repeated, t.counted = nil, 0
	t.rows = rows.clipped()
	for _, u := range t.unique {
		u.order = nil
	}
}

// checkKeys finds the order of the rows by every key, or returns the error of one that is not unique.
func (t *table) checkKeys() error {
	for _, u := range t.unique {
		order, duplicate := u.extended(&keyOrder{}, t.rows, 0)
		if duplicate != noDuplicate {
			return u.duplicate(t, t.rows, duplicate)
		}
		u.order = order
	}
	return nil
}

// ordered is a key that yields the rows in the order of some columns without a sort, as the optimiser would
// use it: clustered, or any range index of a memory-optimised table. Nil if there is none.
func (t *table) ordered(columns []int) *uniqueKey {
	for _, u := range t.unique {
		usable := !u.index.Hash && (t.memoryOptimized || u.index.Clustered)
		for i := range min(len(columns), len(u.places)) {
			usable = usable && columns[i] == u.places[i]
		}
		if usable {
			return u
		}
	}
	return nil
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
