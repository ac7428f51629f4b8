package sqlserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// userProcedure is a procedure of a user's database. Its definition never changes.
type userProcedure struct {
	id           int
	db           *database
	schema, name string
	def          *tsql.CreateProcedure
	types        []tds.Type // of the parameters
	work         procedureWork
	ran          procedureStat // guarded by Instance.mu
}

func (p *userProcedure) key() string { return fold(p.schema + "." + p.name) }

// createProcedure stores a procedure under its name.
func (b *batch) createProcedure(st *tsql.CreateProcedure) {
	r := b.newRun()
	inst := b.s.inst
	inst.mu.Lock()
	defer inst.mu.Unlock()
	db := r.databaseOf(st.Name)
	p := &userProcedure{db: db, schema: db.schemaNamed(st.Name), name: st.Name.Object(), def: st, work: workOf(st)}
	for _, d := range st.Parameters {
		p.types = append(p.types, resolveType(d.Type, 1))
	}
	if st.Native {
		p.checkNative()
	}
	if p.db.taken(p.schema, p.name) {
		panic(tsql.Errorf(2714, p.def.Line(), "There is already an object named '%s' in the database.", p.name))
	}
	p.id = p.db.newObjectID()
	p.db.procedures[p.key()] = p
}

// taken reports whether a table or procedure has the name. The caller holds Instance.mu.
func (db *database) taken(schema, name string) bool {
	return db.find(schema, name) != nil || db.procedures[fold(schema+"."+name)] != nil
}

// procedure finds a user's procedure. The caller holds Instance.mu.
func (r *run) procedure(n tsql.Name) *userProcedure {
	if p := r.databaseOf(n).procedures[fold(cmp.Or(n.Qualifier(1), "dbo")+"."+n.Object())]; p != nil {
		return p
	}
	panic(noProcedure(strings.Join(n.Parts, ".")))
}

// findUserProcedure is procedure for a caller that does not hold Instance.mu.
func (b *batch) findUserProcedure(n tsql.Name) *userProcedure {
	r := b.newRun()
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	return r.procedure(n)
}

// checkNative refuses what the lab does not run in a natively compiled procedure.
func (p *userProcedure) checkNative() {
	tsql.Each(p.def.Body, func(st tsql.Statement) {
		switch st.(type) {
		case *tsql.Insert, *tsql.SelectStatement, *tsql.Delete, *tsql.Declare, *tsql.SetVariable, *tsql.While, *tsql.If, *tsql.Block:
		default:
			panic(tsql.Unmodelled(st.Line(), "this statement in a natively compiled procedure"))
		}
	})
}

// invoke runs a procedure with its arguments.
func (b *batch) invoke(p *userProcedure, args []argument) {
	vars := b.arguments(p, args)
	inner := b.within(vars)
	inner.procedure = p
	options := b.s.options
	if options.statisticsTime && len(p.def.Body) > 0 {
		inner.info(compileTimes(0, 0))
	}
	if p.def.Native {
		b.s.rowCount = 0
	}
	inner.list(p.def.Body)
	if p.def.Native { // @@ROWCOUNT is reset at the start and at the end of a natively compiled procedure
		b.s.rowCount = 0
	}
	b.s.options = options // SET options are reset when a procedure ends
	b.after(inner)
	if !inner.aborted {
		b.executed(p)
	}
}

// arguments assigns values to a procedure's parameters: by name, by position, or by default.
func (b *batch) arguments(p *userProcedure, args []argument) map[string]*variable {
	vars := map[string]*variable{}
	for i, d := range p.def.Parameters {
		v := &variable{typ: p.types[i]}
		vars[d.Name] = v
		given := slices.IndexFunc(args, func(a argument) bool { return a.name == d.Name })
		if given < 0 && i < len(args) && args[i].name == "" {
			given = i
		}
		switch {
		case given >= 0:
			v.value = convert(args[given].value, v.typ)
		case d.Init != nil:
			v.value = convert(b.value(d.Init), v.typ)
		default:
			panic(tsql.Errorf(201, 0, "Procedure or function '%s' expects parameter '%s', which was not supplied.", p.name, d.Name))
		}
	}
	p.checkArguments(args)
	return vars
}

func (p *userProcedure) checkArguments(args []argument) {
	if len(args) > len(p.def.Parameters) {
		panic(tsql.Errorf(8144, 0, "Procedure or function %s has too many arguments specified.", p.name))
	}
	for _, a := range args {
		known := func(d tsql.Declaration) bool { return d.Name == a.name }
		if a.name != "" && !slices.ContainsFunc(p.def.Parameters, known) {
			panic(tsql.Errorf(8145, 0, "%s is not a parameter for procedure %s.", a.name, p.name))
		}
	}
}

func (db *database) sortedProcedures() []*userProcedure {
	return slices.SortedFunc(maps.Values(db.procedures), func(a, b *userProcedure) int { return a.id - b.id })
}

func procedureObjects(v *viewContext) {
	for _, p := range v.db.sortedProcedures() {
		v.add(viewRow{"name": p.name, "object_id": p.id, "schema_id": v.db.schemas[fold(p.schema)].id, "type": "P ",
			"type_desc": "SQL_STORED_PROCEDURE"})
	}
}
