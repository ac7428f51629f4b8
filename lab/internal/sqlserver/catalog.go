package sqlserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// database is one database of the instance. Everything in it is guarded by Instance.mu.
type database struct {
	id         int
	name       string
	schemas    map[string]*schema        // by folded name
	tables     map[string]*table         // by folded schema.name
	procedures map[string]*userProcedure // by folded schema.name
	filegroups []tsql.Filegroup
	files      []tsql.File
	options    map[string]string // ALTER DATABASE ... SET, upper case
	nextID     int
	pool       int             // resource pool that it is bound to, 0 = none
	populate   func(*database) // fills a database on its first use
}

type schema struct {
	id   int
	name string
}

// table is a stored table: a user table or a temporary table.
type table struct {
	id              int
	db              *database
	schema, name    string
	columns         []tableColumn
	indexes         []tsql.IndexDef
	memoryOptimized bool
	schemaOnly      bool
	rows            *store
	counted         int64     // in addition to rows: rows of which only the number is stored
	repeated        *repeated // instead of rows
	unique          []*uniqueKey
}

// tableColumn is a column of a stored table.
type tableColumn struct {
	column
	fallback *scalar // DEFAULT
}

func newDatabase(id int, name string) *database {
	db := &database{id: id, name: name, tables: map[string]*table{}, procedures: map[string]*userProcedure{}, options: map[string]string{}, nextID: 245575913}
	db.schemas = map[string]*schema{"dbo": {1, "dbo"}, "guest": {2, "guest"}, "information_schema": {3, "INFORMATION_SCHEMA"}, "sys": {4, "sys"}}
	db.filegroups = []tsql.Filegroup{{Name: "PRIMARY"}}
	path := `C:\Program Files\Microsoft SQL Server\MSSQL\DATA\` + name
	db.files = []tsql.File{
		{Name: name, Path: path + ".mdf", Filegroup: "PRIMARY"},
		{Name: name + "_log", Path: path + "_log.ldf", Log: true},
	}
	return db
}

// system reports whether a database is one of the server's own.
func (db *database) system() bool { return db.id <= 4 }

func (db *database) option(name, otherwise string) string {
	if v, ok := db.options[name]; ok {
		return v
	}
	return otherwise
}

// schemaNamed is the schema that the name of a new object has, or dbo.
func (db *database) schemaNamed(n tsql.Name) string {
	name := cmp.Or(n.Qualifier(1), "dbo")
	found := db.schemas[fold(name)]
	if found == nil {
		panic(tsql.Errorf(2760, n.Line, "The specified schema name \"%s\" either does not exist or you do not have permission to use it.", name))
	}
	return found.name
}

func (db *database) find(schemaName, name string) *table {
	if db.populate != nil {
		populate := db.populate
		db.populate = nil
		populate(db)
	}
	return db.tables[fold(cmp.Or(schemaName, "dbo")+"."+name)]
}

// sortedTables lists tables by object id.
func (db *database) sortedTables() []*table {
	if db.populate != nil {
		db.find("dbo", "")
	}
	return slices.SortedFunc(maps.Values(db.tables), func(a, b *table) int { return a.id - b.id })
}

func (db *database) newObjectID() int {
	db.nextID += 16000057
	if db.nextID > 2_000_000_000 {
		db.nextID -= 1_999_000_000
	}
	return db.nextID
}

// isMemoryOptimized reports whether a file is a container of memory-optimised data.
func (db *database) isMemoryOptimized(f tsql.File) bool {
	return slices.ContainsFunc(db.filegroups, func(g tsql.Filegroup) bool { return g.MemoryOptimized && strings.EqualFold(f.Filegroup, g.Name) })
}

// fullName is a table's name in messages.
func (t *table) fullName() string {
	if t.db == nil || strings.HasPrefix(t.name, "#") {
		return t.name
	}
	return t.schema + "." + t.name
}

func (t *table) count() int64 {
	if t.repeated != nil {
		return t.repeated.count()
	}
	return int64(t.rows.rows) + t.counted
}

func (t *table) plainColumns() []column {
	out := make([]column, len(t.columns))
	for i, c := range t.columns {
		out[i] = c.column
	}
	return out
}

// place is the position of a column, -1 if there is none.
func (t *table) place(name string) int {
	for i, c := range t.columns {
		if strings.EqualFold(c.name, name) {
			return i
		}
	}
	return -1
}

// empty is a store for rows of the table.
func (t *table) empty() *store { return newStore(t.plainColumns()) }

// known refuses to read or change rows one by one if the table stores only their number.
func (t *table) known() {
	if t.counted > 0 || t.repeated != nil {
		panic(errCounted)
	}
}

// wireColumns describes columns to the client.
func wireColumns(cols []column) []tds.Column {
	out := make([]tds.Column, len(cols))
	for i, c := range cols {
		out[i] = tds.Column{Name: c.name, Type: c.typ, Nullable: c.nullable}
	}
	return out
}
