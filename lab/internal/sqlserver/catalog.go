package sqlserver

import (
	"sort"
	"strings"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// database is one database of the instance. Everything in it is guarded by Instance.mu.
type database struct {
	id         int
	name       string
	created    time.Time
	schemas    map[string]*schema // by folded name
	tables     map[string]*table  // by folded schema.name
	filegroups []tsql.Filegroup
	files      []tsql.File
	options    map[string]string // ALTER DATABASE ... SET, upper case
	nextID     int
	populate   func(*database) // fills a database on its first use
}

type schema struct {
	id   int
	name string
}

// table is a stored table: a user table, a temporary table or a table variable.
type table struct {
	id              int
	db              *database
	schema, name    string
	created         time.Time
	columns         []tableColumn
	indexes         []tsql.IndexDef
	memoryOptimized bool
	schemaOnly      bool
	rows            [][]any // never changed in place: readers hold slices of it
	product         *product
	unique          []*uniqueKey
	identity        int64 // last value given
}

// product is the content of SELECT ... INTO of a cross join: its rows follow from the two sides.
type product struct {
	left, right [][]any
	places      []int // column of the joined row for each column of the table
}

func (p *product) count() int64 { return int64(len(p.left)) * int64(len(p.right)) }

// tableColumn is a column of a stored table.
type tableColumn struct {
	column
	declared string // type as declared, for sys.types
	def      tsql.ColumnDef
	fallback *scalar // DEFAULT
	computed tsql.Expr
}

// uniqueKey enforces a primary key or unique index; keys is nil until it is needed.
type uniqueKey struct {
	index  tsql.IndexDef
	places []int
	keys   map[string]struct{}
}

func newDatabase(id int, name string, now time.Time) *database {
	db := &database{id: id, name: name, created: now, tables: map[string]*table{}, options: map[string]string{}, nextID: 245575913}
	db.schemas = map[string]*schema{"dbo": {1, "dbo"}, "guest": {2, "guest"}, "information_schema": {3, "INFORMATION_SCHEMA"}, "sys": {4, "sys"}}
	db.filegroups = []tsql.Filegroup{{Name: "PRIMARY"}}
	path := `C:\Program Files\Microsoft SQL Server\MSSQL\DATA\` + name
	db.files = []tsql.File{
		{Name: name, Path: path + ".mdf", Filegroup: "PRIMARY"},
		{Name: name + "_log", Path: path + "_log.ldf", Log: true},
	}
	return db
}

// system tells whether a database belongs to the server.
func (db *database) system() bool { return db.id <= 4 }

func (db *database) option(name, otherwise string) string {
	if v, ok := db.options[name]; ok {
		return v
	}
	return otherwise
}

func (db *database) find(schemaName, name string) *table {
	if db.populate != nil {
		populate := db.populate
		db.populate = nil
		populate(db)
	}
	if schemaName == "" {
		schemaName = "dbo"
	}
	return db.tables[fold(schemaName+"."+name)]
}

// sortedTables lists tables by object id.
func (db *database) sortedTables() []*table {
	if db.populate != nil {
		db.find("dbo", "")
	}
	out := make([]*table, 0, len(db.tables))
	for _, t := range db.tables {
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

func (db *database) newObjectID() int {
	db.nextID += 16000057
	if db.nextID > 2_000_000_000 {
		db.nextID -= 1_999_000_000
	}
	return db.nextID
}

func (db *database) hasMemoryOptimizedFilegroup() bool {
	for _, g := range db.filegroups {
		if g.MemoryOptimized {
			for _, f := range db.files {
				if strings.EqualFold(f.Filegroup, g.Name) {
					return true
				}
			}
		}
	}
	return false
}

// fullName is how messages name a table.
func (t *table) fullName() string {
	if t.db == nil || strings.HasPrefix(t.name, "#") || strings.HasPrefix(t.name, "@") {
		return t.name
	}
	return t.schema + "." + t.name
}

func (t *table) count() int64 {
	if t.product != nil {
		return t.product.count()
	}
	return int64(len(t.rows))
}

func (t *table) plainColumns() []column {
	out := make([]column, len(t.columns))
	for i, c := range t.columns {
		out[i] = c.column
	}
	return out
}

// place is the position of a column, -1 when there is none.
func (t *table) place(name string) int {
	for i, c := range t.columns {
		if strings.EqualFold(c.name, name) {
			return i
		}
	}
	return -1
}

// expand turns a product into plain rows, before they are changed.
func (t *table) expand() {
	if t.product == nil {
		return
	}
	p := t.product
	rows := make([][]any, 0, p.count())
	for _, l := range p.left {
		for _, r := range p.right {
			rows = append(rows, p.row(l, r, make([]any, len(p.places))))
		}
	}
	t.rows, t.product = rows, nil
}

func (p *product) row(left, right, into []any) []any {
	for i, at := range p.places {
		if at < len(left) {
			into[i] = left[at]
		} else {
			into[i] = right[at-len(left)]
		}
	}
	return into
}

// productPlan reads the rows of a product.
type productPlan struct {
	cols []column
	of   *product
	name string
	run  *run
}

func (p *productPlan) columns() []column { return p.cols }

func (p *productPlan) each(_ *frame, yield func([]any) error) error {
	buffer := make([]any, len(p.of.places))
	for _, l := range p.of.left {
		if err := p.run.ended(); err != nil {
			return err
		}
		for _, r := range p.of.right {
			if err := yield(p.of.row(l, r, buffer)); err != nil {
				return err
			}
		}
	}
	return nil
}

// insert adds rows after checking keys; it gives the function that takes them back.
func (t *table) insert(rows [][]any) (undo func(), err error) {
	t.expand()
	before := t.rows
	for _, u := range t.unique {
		if err := u.addAll(t, rows); err != nil {
			t.forgetKeys()
			return nil, err
		}
	}
	t.rows = append(t.rows, rows...)
	return func() { t.replace(before) }, nil
}

// replace puts other rows in place of all; slices handed out before stay as they were.
func (t *table) replace(rows [][]any) {
	t.product = nil
	t.rows = rows[:len(rows):len(rows)]
	t.forgetKeys()
}

func (t *table) forgetKeys() {
	for _, u := range t.unique {
		u.keys = nil
	}
}

func (u *uniqueKey) addAll(t *table, rows [][]any) error {
	if u.keys == nil {
		u.keys = make(map[string]struct{}, len(t.rows)+len(rows))
		for _, row := range t.rows {
			u.keys[rowKey(row, u.places)] = struct{}{}
		}
	}
	for _, row := range rows {
		key := rowKey(row, u.places)
		if _, taken := u.keys[key]; taken {
			return u.duplicate(t, row)
		}
		u.keys[key] = struct{}{}
	}
	return nil
}

func (u *uniqueKey) duplicate(t *table, row []any) error {
	var values []string
	for _, p := range u.places {
		text, err := toText(row[p], 121)
		if row[p] == nil || err != nil {
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

// wireColumns describes columns to the client.
func wireColumns(cols []column) []tds.Column {
	out := make([]tds.Column, len(cols))
	for i, c := range cols {
		out[i] = tds.Column{Name: c.name, Type: c.typ, Nullable: c.nullable}
	}
	return out
}
