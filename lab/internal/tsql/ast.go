package tsql

// Name is an object name of one to four parts, the last part first meaningful: db.schema.object.
type Name struct {
	Parts []string
	Line  int
}

// Object is the last part.
func (n Name) Object() string { return n.Parts[len(n.Parts)-1] }

// Qualifier is the part `back` places before the object, or "".
func (n Name) Qualifier(back int) string {
	if i := len(n.Parts) - 1 - back; i >= 0 {
		return n.Parts[i]
	}
	return ""
}

// TypeName is a data type as written: decimal(38,6), nvarchar(max) (Args[0] = -1).
type TypeName struct {
	Name string // lower case, without schema
	Args []int
	Line int
}

// Expr is a scalar expression or a predicate.
type Expr interface{ expr() }

// Expressions.
type (
	// NumberLit is a numeric literal as written.
	NumberLit struct{ Text string }
	// TextLit is a character literal.
	TextLit struct{ Value string }
	// BinaryLit is 0x....
	BinaryLit struct{ Value []byte }
	// NullLit is NULL.
	NullLit struct{}
	// VarRef is @name or @@name, lower case, marks included.
	VarRef struct {
		Name string
		Line int
	}
	// ColumnRef is a column, perhaps qualified.
	ColumnRef struct{ Name }
	// Arith is an arithmetic, bit or concatenation operator.
	Arith struct {
		Op   string
		L, R Expr
		Line int
	}
	// Compare is =, <>, <, <=, >, >=.
	Compare struct {
		Op   string
		L, R Expr
	}
	// Logic is AND or OR.
	Logic struct {
		Op   string
		L, R Expr
	}
	// Not is NOT x.
	Not struct{ X Expr }
	// IsNull is x IS [NOT] NULL.
	IsNull struct {
		X   Expr
		Not bool
	}
	// In is x IN (query).
	In struct {
		X     Expr
		Query *Query
	}
	// Like is x LIKE pattern.
	Like struct{ X, Pattern Expr }
	// Case is both forms of CASE; Operand is nil in the searched form.
	Case struct {
		Operand Expr
		Whens   []When
		Else    Expr
	}
	// Cast is CAST.
	Cast struct {
		X    Expr
		Type TypeName
	}
	// Call is a function or aggregate.
	Call struct {
		Name Name
		Args []Expr
		Star bool // COUNT(*)
	}
	// Subquery is a scalar subquery.
	Subquery struct{ Query *Query }
)

// When is one branch of CASE.
type When struct{ Cond, Then Expr }

// OrderItem is one key of ORDER BY.
type OrderItem struct {
	X    Expr
	Desc bool
}

func (*NumberLit) expr() {}
func (*TextLit) expr()   {}
func (*BinaryLit) expr() {}
func (*NullLit) expr()   {}
func (*VarRef) expr()    {}
func (*ColumnRef) expr() {}
func (*Arith) expr()     {}
func (*Compare) expr()   {}
func (*Logic) expr()     {}
func (*Not) expr()       {}
func (*IsNull) expr()    {}
func (*In) expr()        {}
func (*Like) expr()      {}
func (*Case) expr()      {}
func (*Cast) expr()      {}
func (*Call) expr()      {}
func (*Subquery) expr()  {}

// Query is a query expression with its CTEs, order and hints.
type Query struct {
	With    []CTE
	Body    Body
	OrderBy []OrderItem
	Hints   Hints
	Line    int
}

// Hints are the OPTION (...) of a query, and what the lab uses of them.
type Hints struct {
	All                []string // each as written, upper case
	MaxDOP             int      // 0 = not given
	NoPerformanceSpool bool
}

// CTE is one common table expression.
type CTE struct {
	Name    string
	Columns []string
	Query   *Query
}

// Body is a SELECT, a UNION or a VALUES list.
type Body interface{ body() }

// Bodies.
type (
	// Select is one SELECT ... block.
	Select struct {
		Distinct bool
		Top      Expr // of TOP (n), nil without
		Items    []Item
		Into     *Name
		From     TableRef // nil: none
		Where    Expr
		GroupBy  []Expr
		Line     int
	}
	// Union is UNION [ALL].
	Union struct {
		All         bool
		Left, Right Body
	}
	// Values is VALUES (...), (...).
	Values struct{ Rows [][]Expr }
)

func (*Select) body() {}
func (*Union) body()  {}
func (*Values) body() {}

// Item is one entry of a select list: an expression or a star.
type Item struct {
	X         Expr
	Alias     string
	Star      bool
	Qualifier []string // of a.*
}

// TableRef is a source of rows.
type TableRef interface{ tableRef() }

// Sources of rows.
type (
	// Table is a named table, view or CTE.
	Table struct {
		Name  Name
		Alias string
	}
	// Derived is (query) AS alias (columns).
	Derived struct {
		Query   *Query
		Alias   string
		Columns []string
	}
	// Join is a join; Kind is INNER, LEFT or CROSS.
	Join struct {
		Kind        string
		Left, Right TableRef
		On          Expr
	}
)

func (*Table) tableRef()   {}
func (*Derived) tableRef() {}
func (*Join) tableRef()    {}
