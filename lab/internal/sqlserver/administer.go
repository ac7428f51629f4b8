package sqlserver

import (
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// administer runs the statements for databases and the server.
func (b *batch) administer(st tsql.Statement) {
	b.s.rowCount = 0
	b.s.requireStatement(st)
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	switch st := st.(type) {
	case *tsql.CreateDatabase:
		b.s.inst.createDatabase(st)
	case *tsql.AlterDatabase:
		b.alterDatabase(st)
	case *tsql.AlterServer:
		b.s.inst.alterServer(st)
	case *tsql.ResourcePool:
		b.s.inst.makePool(st)
	case *tsql.ResourceGovernor:
		b.s.inst.governor.alter(st.Action)
	}
}

// createDatabase adds a database. The caller holds mu.
func (i *Instance) createDatabase(st *tsql.CreateDatabase) {
	if i.lookup(st.Name) != nil {
		panic(tsql.Errorf(1801, st.Line(), "Database '%s' already exists. Choose a different database name.", st.Name))
	}
	id := 5
	for _, db := range i.databases {
		id = max(id, db.id+1)
	}
	i.databases = append(i.databases, newDatabase(id, st.Name))
}

func (b *batch) alterDatabase(st *tsql.AlterDatabase) {
	db := b.s.db
	if st.Name != "" {
		if db = b.s.inst.lookup(st.Name); db == nil {
			panic(tsql.Errorf(5011, st.Line(), "User does not have permission to alter database '%s', the database does not exist, or "+
				"the database is not in a state that allows access checks.", st.Name))
		}
	}
	switch {
	case st.Filegroup != nil:
		db.filegroups = append(db.filegroups, *st.Filegroup)
	case st.File != nil:
		db.addFile(*st.File)
	case st.Modify != nil:
		db.resizeFile(*st.Modify)
	}
	for _, o := range st.Options {
		db.set(o, b.s.inst.version)
		if o.Name == "OFFLINE" {
			b.s.inst.pool.forget(db)
		}
	}
}

func (db *database) addFile(f tsql.File) {
	if !slices.ContainsFunc(db.filegroups, func(g tsql.Filegroup) bool { return strings.EqualFold(g.Name, f.Filegroup) }) {
		panic(tsql.Errorf(1921, 0, "Invalid filegroup '%s' specified.", f.Filegroup))
	}
	db.files = append(db.files, f)
}

// resizeFile makes a file larger; a file never shrinks by it.
func (db *database) resizeFile(f tsql.File) {
	for n, have := range db.files {
		if strings.EqualFold(have.Name, f.Name) {
			db.files[n].SizeKB = max(f.SizeKB, have.SizeKB)
			return
		}
	}
	panic(tsql.Errorf(5041, 0, "MODIFY FILE failed. File '%s' does not exist.", f.Name))
}

// newFileKB is the size of a file created without one.
const newFileKB = 64 * 1024

// grouped options share one value: setting one of them replaces the others.
var groupedOptions = map[string]string{"SINGLE_USER": "USER_ACCESS", "MULTI_USER": "USER_ACCESS", "RESTRICTED_USER": "USER_ACCESS",
	"ONLINE": "STATE", "OFFLINE": "STATE", "READ_ONLY": "UPDATEABILITY", "READ_WRITE": "UPDATEABILITY"}

// set stores an option, after checking that this version has it.
func (db *database) set(o tsql.DatabaseOption, v version) {
	if o.Name == "QUERY_STORE" && v.major < 13 || o.Name == "ACCELERATED_DATABASE_RECOVERY" && v.major < 15 {
		panic(&tsql.Error{Number: 102, Class: 15, State: 6, Text: "Incorrect syntax near '" + o.Name + "'."})
	}
	if group := groupedOptions[o.Name]; group != "" {
		db.options[group] = o.Name
		return
	}
	db.options[o.Name] = o.Value
}

// alterServer stores the affinity, or switches soft-NUMA for the next start. The caller holds mu.
func (i *Instance) alterServer(st *tsql.AlterServer) {
	switch {
	case st.Option != "SOFTNUMA":
		i.bind(st.Value, st.Line())
	case i.version.major < 13:
		panic(&tsql.Error{Number: 102, Class: 15, State: 1, Line: st.Line(), Text: "Incorrect syntax near 'SOFTNUMA'."})
	default:
		i.softNUMA = st.Value == "ON"
	}
}

// use changes the current database and tells the client.
func (b *batch) use(name string) {
	s, before := b.s, b.s.db
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	db := s.inst.database(name)
	s.db, s.rowCount, b.open = db, 0, true
	b.w.Database(db.name, before.name)
	b.info(tds.Message{Number: 5701, State: 2, Class: 0, Line: 1, Text: "Changed database context to '" + db.name + "'."})
}

// backup is BACKUP to the null device, which only permits the log to be truncated.
func (b *batch) backup(st *tsql.Backup) {
	i := b.s.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	db := i.lookup(st.Database)
	kind := map[bool]string{true: "LOG", false: "DATABASE"}[st.Log]
	switch {
	case db == nil:
		panic(tsql.Errorf(911, st.Line(), "Database '%s' does not exist. Make sure that the name is entered correctly.", st.Database))
	case !strings.EqualFold(strings.TrimSuffix(st.Path, ":"), "NUL"):
		panic(tsql.Unmodelled(st.Line(), "BACKUP %s to %s: only to NUL", kind, st.Path))
	}
	b.s.rowCount = 0
	b.info(tds.Message{Number: 3014, State: 1, Class: 0, Line: int32(st.Line()),
		Text: "BACKUP " + kind + " successfully processed 300 pages in 0.010 seconds (234.375 MB/sec)."})
}
