package tsql

// Statement is one statement of a batch.
type Statement interface{ Line() int }

type at int

// Line is where the statement starts, 1 = first line of the batch.
func (a at) Line() int { return int(a) }

// Statements.
type (
	// SelectStatement is a query as a statement, INTO and variable assignment included.
	SelectStatement struct {
		at
		Query *Query
	}
	// Insert is INSERT ... VALUES, SELECT or DEFAULT VALUES (Source nil).
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
	Name        string
	Columns     []string
	Primary     bool
	Unique      bool
	Hash        bool
	Clustered   bool
	BucketCount int64
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
