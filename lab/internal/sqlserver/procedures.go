package sqlserver

import (
	"context"
	"fmt"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// procedure is a system procedure; its arguments are by position or by name.
type procedure func(b *batch, args []argument)

// argument is a value given to a procedure.
type argument struct {
	name  string
	value any
}

var procedures map[string]procedure

func init() {
	procedures = map[string]procedure{
		"sp_executesql":        executeSQL,
		"sp_datatype_info_100": dataTypes, "sp_datatype_info": dataTypes,
		"sp_readerrorlog": readErrorLog, "xp_readerrorlog": readErrorLog,
		"sp_getapplock": getAppLock, "sp_releaseapplock": releaseAppLock,
		"sp_xtp_bind_db_resource_pool": bindPool, "sp_xtp_unbind_db_resource_pool": unbindPool,
		"xp_instance_regwrite": writeRegistry,
	}
}

// find a procedure by its last part: it may be called as sys.x, [sys].[x], master..x or x.
func findProcedure(name string) procedure {
	if n := splitName(name); n != nil {
		return procedures[fold(n.Object())]
	}
	return nil
}

func noProcedure(name string) *tsql.Error {
	return &tsql.Error{Number: 2812, Class: 16, State: 62, Text: fmt.Sprintf("Could not find stored procedure '%s'.", name)}
}

// Call runs a procedure by name.
func (s *Session) Call(ctx context.Context, name string, params []tds.Param, w *tds.Writer) {
	s.begin(w.Procedure, "")
	defer s.end()
	b := newBatch(ctx, s, w)
	b.remote = true
	b.reporting(func() {
		var args []argument
		for _, p := range params {
			if p.Output {
				panic(tsql.Unmodelled(1, "output parameters of a procedure"))
			}
			args = append(args, argument{name: fold(p.Name), value: p.Value})
		}
		if run := findProcedure(name); run != nil {
			b.audit(changingCall(splitName(name).Object()))
			run(b, args)
		} else if n := splitName(name); n != nil {
			b.invoke(b.findUserProcedure(*n), args)
		} else {
			panic(noProcedure(name))
		}
		b.close()
	})
}

// exec runs EXEC of a procedure.
func (b *batch) exec(st *tsql.Exec) {
	if b.nesting >= maxNesting {
		panic(tsql.Errorf(217, st.Line(), "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit %d).", maxNesting))
	}
	var args []argument
	for _, a := range st.Args {
		args = append(args, argument{name: a.Name, value: b.value(a.X)})
	}
	if status := b.execNamed(st.Name, args); st.Status != "" {
		b.assign(st.Status, status)
	}
}

// execNamed runs a procedure of the system, or a user's.
func (b *batch) execNamed(n tsql.Name, args []argument) (status int64) {
	if run := findProcedure(strings.Join(n.Parts, ".")); run != nil {
		run(b, args)
		status, b.returned = b.returned, 0
		return status
	}
	b.invoke(b.findUserProcedure(n), args)
	return 0
}

// within is a batch for what runs inside this one, with its own variables.
func (b *batch) within(vars map[string]*variable) *batch {
	return &batch{ctx: b.ctx, s: b.s, w: b.w, vars: vars, nesting: b.nesting + 1, open: b.open, sent: b.sent}
}

// after takes over the state of an inner batch.
func (b *batch) after(inner *batch) {
	b.open, b.sent = inner.open, inner.sent
	b.aborted = b.aborted || inner.aborted
}

// nested runs a text as a batch within the batch, with these variables.
func (b *batch) nested(text string, vars map[string]*variable) {
	statements, err := tsql.Parse(text)
	if err != nil {
		panic(err)
	}
	inner := b.within(vars)
	if b.s.options.statisticsTime && len(statements) > 0 {
		inner.info(compileTimes(0, 0))
	}
	inner.list(statements)
	b.after(inner)
}

// executeSQL is sp_executesql @statement, with its parameters by name. Drivers call it by its number, as a batch.
func executeSQL(b *batch, args []argument) {
	if len(args) == 0 {
		panic(tsql.Errorf(201, 0, "Procedure or function 'sp_executesql' expects parameter '@statement', which was not supplied."))
	}
	texts := make([]string, 2)
	for i, a := range args[:min(2, len(args))] {
		text, ok := a.value.(string)
		if !ok {
			panic(tsql.Errorf(214, 0, "Procedure expects parameter '%s' of type 'ntext/nchar/nvarchar'.", []string{"@statement", "@params"}[i]))
		}
		texts[i] = text
	}
	inner := b.within(map[string]*variable{})
	if texts[1] != "" {
		declared, err := tsql.Parse("DECLARE " + texts[1])
		if err != nil {
			panic(err)
		}
		for _, st := range declared {
			parameters, ok := st.(*tsql.Declare)
			if !ok {
				panic(tsql.Unmodelled(0, "other statements among the parameters of sp_executesql"))
			}
			inner.declare(parameters)
		}
	}
	for _, given := range args[min(2, len(args)):] {
		if given.name == "" {
			panic(tsql.Unmodelled(0, "parameters of sp_executesql by position"))
		}
		inner.assign(given.name, given.value)
	}
	b.nested(texts[0], inner.vars)
}

// table sends a result of a procedure.
func (b *batch) table(cols []column, rows [][]any) {
	b.open = true
	b.w.Columns(wireColumns(cols))
	for _, row := range rows {
		b.w.Row(row)
	}
	b.s.rowCount = int64(len(rows))
	b.done(tds.Done{Count: b.s.rowCount, HasCount: true, Command: tds.CommandSelect})
}

// odbcTypes are the rows of sp_datatype_info_100: name, ODBC type, precision, literal prefix and suffix.
var odbcTypes = []struct {
	name           string
	odbc           int64
	size           int64
	prefix, suffix any
	params         any
}{
	{"bit", -7, 1, nil, nil, nil}, {"tinyint", -6, 3, nil, nil, nil}, {"smallint", 5, 5, nil, nil, nil}, {"int", 4, 10, nil, nil, nil},
	{"bigint", -5, 19, nil, nil, nil}, {"money", 3, 19, "$", nil, nil}, {"numeric", 2, 38, nil, nil, "precision,scale"},
	{"decimal", 3, 38, nil, nil, "precision,scale"}, {"float", 6, 53, nil, nil, nil}, {"real", 7, 24, nil, nil, nil},
	{"nvarchar", -9, 4000, "N'", "'", "max length"}, {"varchar", 12, 8000, "'", "'", "max length"}, {"nchar", -8, 4000, "N'", "'", "length"},
	{"char", 1, 8000, "'", "'", "length"}, {"varbinary", -3, 8000, "0x", nil, "max length"}, {"binary", -2, 8000, "0x", nil, "length"},
	{"datetime2", 93, 27, "'", "'", "scale"}, {"datetime", 93, 23, "'", "'", nil}, {"date", 91, 10, "'", "'", nil},
	{"uniqueidentifier", -11, 36, "'", "'", nil}, {"xml", -152, 0, "N'", "'", nil},
}

func dataTypes(b *batch, args []argument) {
	wanted := int64(0)
	if len(args) > 0 && args[0].value != nil {
		wanted = wholeNumber(args[0].value, typeInt)
	}
	small := func(name string) column { return column{name: name, typ: typeSmallInt, nullable: true} }
	text := func(name string, size int) column { return column{name: name, typ: textType(size), nullable: true} }
	whole := func(name string) column { return column{name: name, typ: typeInt, nullable: true} }
	cols := []column{text("TYPE_NAME", 128), small("DATA_TYPE"), whole("PRECISION"), text("LITERAL_PREFIX", 32), text("LITERAL_SUFFIX", 32),
		text("CREATE_PARAMS", 32), small("NULLABLE"), small("CASE_SENSITIVE"), small("SEARCHABLE"), small("UNSIGNED_ATTRIBUTE"), small("MONEY"),
		small("AUTO_INCREMENT"), text("LOCAL_TYPE_NAME", 128), small("MINIMUM_SCALE"), small("MAXIMUM_SCALE"), small("SQL_DATA_TYPE"),
		small("SQL_DATETIME_SUB"), whole("NUM_PREC_RADIX"), small("INTERVAL_PRECISION"), small("USERTYPE")}
	var rows [][]any
	for _, t := range odbcTypes {
		if wanted != 0 && wanted != t.odbc {
			continue
		}
		rows = append(rows, []any{t.name, t.odbc, t.size, t.prefix, t.suffix, t.params, int64(1), int64(0), int64(3), nil, int64(0), nil, t.name,
			nil, nil, t.odbc, nil, nil, nil, int64(0)})
	}
	b.table(cols, rows)
}

// readErrorLog is sp_readerrorlog log, type, search1, search2.
func readErrorLog(b *batch, args []argument) {
	var search []string
	for i, a := range args {
		if s, ok := a.value.(string); ok && i >= 2 {
			search = append(search, fold(s))
		}
	}
	i := b.s.inst
	i.mu.Lock()
	lines, started := i.errorLog(), i.started
	i.mu.Unlock()
	var rows [][]any
	for _, line := range lines {
		wanted := true
		for _, s := range search {
			wanted = wanted && strings.Contains(fold(line), s)
		}
		if wanted {
			rows = append(rows, []any{fitTime(started, typeDateTime), "Server", line})
		}
	}
	b.table([]column{{name: "LogDate", typ: typeDateTime}, {name: "ProcessInfo", typ: textType(50)}, {name: "Text", typ: textType(-1), nullable: true}}, rows)
}
