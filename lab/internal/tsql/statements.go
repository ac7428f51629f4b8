package tsql

import "strings"

// Statement is one statement of a batch.
type Statement interface{ Line() int }

type at int

// Line is where the statement starts, 1 = first line of the batch.
func (a at) Line() int { return int(a) }

// Statements.
type (
	// SelectStatement is a query as a statement, INTO included.
	SelectStatement struct {
		at
		Query *Query
	}
	// Insert is INSERT ... VALUES or SELECT.
	Insert struct {
		at
		Target  Name
		Columns []string
		Source  *Query
	}
	// Delete is DELETE FROM ... WHERE on one table.
	Delete struct {
		at
		Target Name
		Where  Expr
	}
	// CreateTable is CREATE TABLE.
	CreateTable struct {
		at
		Name            Name
		Columns         []ColumnDef
		Indexes         []IndexDef
		MemoryOptimized bool
		SchemaOnly      bool
	}
	// CreateIndex is CREATE INDEX on a table.
	CreateIndex struct {
		at
		Table Name
		Index IndexDef
	}
	// CreateSchema is CREATE SCHEMA.
	CreateSchema struct {
		at
		Name string
	}
	// CreateDatabase is CREATE DATABASE.
	CreateDatabase struct {
		at
		Name string
	}
	// AlterDatabase is one action of ALTER DATABASE.
	AlterDatabase struct {
		at
		Name      string // "" = CURRENT
		Filegroup *Filegroup
		File      *File
		Modify    *File // the file's new size
		Options   []DatabaseOption
	}
	// AlterServer is ALTER SERVER CONFIGURATION SET option = value.
	AlterServer struct {
		at
		Option, Value string // upper case, as written
	}
	// Drop is DROP TABLE, DATABASE, SCHEMA or PROCEDURE.
	Drop struct {
		at
		What     string // TABLE, DATABASE, SCHEMA, PROCEDURE
		Names    []Name
		IfExists bool
	}
	// Declare is DECLARE @v type [= value], ....
	Declare struct {
		at
		Variables []Declaration
	}
	// SetVariable is SET @v = x (compound operators are expanded).
	SetVariable struct {
		at
		Name string
		X    Expr
	}
	// SetOption is SET option value: Option is upper case, Value as written.
	SetOption struct {
		at
		Option, Value string
	}
	// If is IF ... ELSE.
	If struct {
		at
		Cond Expr
		Then Statement
		Else Statement
	}
	// While is WHILE.
	While struct {
		at
		Cond Expr
		Body Statement
	}
	// Block is BEGIN ... END.
	Block struct {
		at
		Body []Statement
	}
	// RaiseError is RAISERROR(message, severity, state).
	RaiseError struct {
		at
		Args []Expr
	}
	// Throw is THROW number, message, state.
	Throw struct {
		at
		Args []Expr
	}
	// Exec is EXEC [@status =] procedure args.
	Exec struct {
		at
		Status string // the variable for the procedure's return value
		Name   Name
		Args   []Argument
	}
	// Use is USE database.
	Use struct {
		at
		Database string
	}
	// WaitFor is WAITFOR DELAY x.
	WaitFor struct {
		at
		Delay Expr
	}
	// InputBuffer is DBCC INPUTBUFFER (session).
	InputBuffer struct {
		at
		Session Expr
	}
	// Accepted is a statement without effect on what the lab models; What names it.
	Accepted struct {
		at
		What string
	}
)

// Declaration is one variable of DECLARE.
type Declaration struct {
	Name string
	Type TypeName
	Init Expr
}

// Argument is one argument of EXEC.
type Argument struct {
	Name string
	X    Expr
}

// ColumnDef is a column of CREATE TABLE.
type ColumnDef struct {
	Name     string
	Type     TypeName
	Nullable bool
	Default  Expr
}

// IndexDef is an index, primary key or unique constraint.
type IndexDef struct {
	Name      string
	Columns   []string
	Primary   bool
	Unique    bool
	Hash      bool
	Clustered bool
}

// Filegroup is a filegroup of a database.
type Filegroup struct {
	Name            string
	MemoryOptimized bool
}

// File is a database file; Filegroup is where it goes.
type File struct {
	Name, Path, Filegroup string
	Log                   bool
	SizeKB                int64 // 0 = not given
}

// DatabaseOption is one option of ALTER DATABASE ... SET, upper case.
type DatabaseOption struct{ Name, Value string }

func readInsert(p *parser, line at) Statement {
	p.word("INTO")
	s := &Insert{at: line, Target: p.name()}
	p.tableHints()
	if p.isSymbol("(") && !p.nestedQuery() {
		s.Columns = p.nameList()
	}
	p.must(p.is("VALUES", "SELECT", "WITH") || p.isSymbol("("))
	s.Source = p.query()
	return s
}

func readDelete(p *parser, line at) Statement {
	p.word("FROM")
	s := &Delete{at: line, Target: p.name()}
	p.tableHints()
	if p.word("WHERE") != "" {
		s.Where = p.expr()
	}
	return s
}

// Statements about the whole server.
type (
	// Backup is BACKUP DATABASE or LOG ... TO DISK = 'path'.
	Backup struct {
		at
		Log      bool
		Database string
		Path     string
	}
	// ResourcePool is CREATE or ALTER RESOURCE POOL, with its options in upper case.
	ResourcePool struct {
		at
		Name    string
		Alter   bool
		Options map[string]int64
	}
	// ResourceGovernor is ALTER RESOURCE GOVERNOR RECONFIGURE or DISABLE.
	ResourceGovernor struct {
		at
		Action string
	}
)

func readBackup(p *parser, line at) Statement {
	b := &Backup{at: line, Log: p.expect("DATABASE", "LOG") == "LOG", Database: p.identifier()}
	p.must(p.phrase("TO DISK"))
	p.expectSymbol("=")
	p.must(p.peek().Kind == Text)
	b.Path = p.next().Text
	return b
}

// resourcePool reads what follows CREATE or ALTER.
func (p *parser) resourcePool(line at, alter bool) Statement {
	s := &ResourcePool{at: line, Name: p.identifier(), Alter: alter, Options: map[string]int64{}}
	if p.word("WITH") != "" {
		p.hintList(func(parts []string) {
			if len(parts) != 3 || parts[1] != "=" || !poolOptions[parts[0]] {
				panic(syntaxError(p.peek()))
			}
			s.Options[parts[0]] = int64(atoi(parts[2]))
		})
	}
	return s
}

var poolOptions = words(`MIN_CPU_PERCENT MAX_CPU_PERCENT CAP_CPU_PERCENT MIN_MEMORY_PERCENT MAX_MEMORY_PERCENT
	MIN_IOPS_PER_VOLUME MAX_IOPS_PER_VOLUME`)

func (p *parser) resourceGovernor(line at) Statement {
	return &ResourceGovernor{at: line, Action: strings.ToUpper(p.expect("RECONFIGURE", "DISABLE"))}
}

// CreateProcedure is CREATE PROCEDURE.
type CreateProcedure struct {
	at
	Name       Name
	Parameters []Declaration // with their defaults
	Native     bool          // NATIVE_COMPILATION: its body is one atomic block
	Body       []Statement
}

func (p *parser) createProcedure(line at) Statement {
	p.expect("PROCEDURE", "PROC")
	s := &CreateProcedure{at: line, Name: p.name()}
	p.parameters(s)
	if p.word("WITH") != "" {
		p.procedureOptions(s)
	}
	p.expect("AS")
	if s.Native {
		p.must(p.phrase("BEGIN ATOMIC WITH"))
		p.hintList(nil)
		s.Body = p.blockUntil("END")
		p.expect("END")
	} else {
		s.Body = p.statements()
	}
	for p.symbol(";") {
	}
	p.end()
	return s
}

func (p *parser) parameters(s *CreateProcedure) {
	bracketed := p.symbol("(")
	if p.peek().Kind == Variable {
		p.list(func() { s.Parameters = append(s.Parameters, p.declaration()) })
	}
	if bracketed {
		p.expectSymbol(")")
	}
}

func (p *parser) procedureOptions(s *CreateProcedure) {
	p.list(func() {
		switch p.expect("NATIVE_COMPILATION", "SCHEMABINDING", "EXECUTE", "EXEC", "RECOMPILE") {
		case "NATIVE_COMPILATION":
			s.Native = true
		case "EXECUTE", "EXEC":
			p.expect("AS")
			p.expect("OWNER", "CALLER", "SELF")
		}
	})
}
