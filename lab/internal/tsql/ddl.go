package tsql

import "strings"

func readCreate(p *parser, line at) Statement {
	p.next()
	switch {
	case p.word("TABLE") != "":
		t := &CreateTable{at: line, Name: p.name()}
		p.tableBody(t)
		return t
	case p.word("SCHEMA") != "":
		return &CreateSchema{at: line, Name: p.identifier()}
	case p.word("DATABASE") != "":
		return p.createDatabase(line)
	case p.is("INDEX", "UNIQUE", "CLUSTERED", "NONCLUSTERED"):
		return p.createIndex(line)
	case p.is("PROCEDURE", "PROC"):
		return p.createProcedure(line)
	case p.phrase("RESOURCE POOL"):
		return p.resourcePool(line, false)
	}
	panic(Unmodelled(int(line), "CREATE %s", p.peek().Text))
}

func (p *parser) createIndex(line at) Statement {
	x := IndexDef{Unique: p.word("UNIQUE") != ""}
	x.Clustered = p.word("CLUSTERED", "NONCLUSTERED") == "CLUSTERED"
	p.expect("INDEX")
	x.Name = p.identifier()
	p.expect("ON")
	s := &CreateIndex{at: line, Table: p.name()}
	x.Columns = p.nameList()
	s.Index = x
	return s
}

func (p *parser) tableBody(t *CreateTable) {
	p.expectSymbol("(")
	for {
		p.tableElement(t)
		if !p.symbol(",") || p.isSymbol(")") {
			break
		}
	}
	p.expectSymbol(")")
	if p.word("WITH") != "" {
		p.tableOptions(t)
	}
}

func (p *parser) tableElement(t *CreateTable) {
	name := ""
	if p.word("CONSTRAINT") != "" {
		name = p.identifier()
	}
	switch {
	case p.is("PRIMARY", "UNIQUE"):
		t.Indexes = append(t.Indexes, p.key(name, ""))
	default:
		p.column(t)
	}
}

// key reads PRIMARY KEY or UNIQUE; column is set for a constraint after a column.
func (p *parser) key(name, column string) IndexDef {
	x := IndexDef{Name: name, Unique: true, Primary: p.expect("PRIMARY", "UNIQUE") == "PRIMARY"}
	if x.Primary {
		p.expect("KEY")
		x.Clustered = true
	}
	if column != "" {
		x.Columns = []string{column}
	}
	return p.index(x)
}

// index reads the rest of an index: [NON]CLUSTERED, HASH, columns, WITH (BUCKET_COUNT = n).
func (p *parser) index(x IndexDef) IndexDef {
	x.Unique = p.word("UNIQUE") != "" || x.Unique
	if w := p.word("CLUSTERED", "NONCLUSTERED"); w != "" {
		x.Clustered = w == "CLUSTERED"
	}
	x.Hash = p.word("HASH") != ""
	if p.isSymbol("(") {
		x.Columns = p.nameList()
	}
	if p.word("WITH") != "" {
		p.hintList(func(parts []string) {
			if len(parts) == 3 && parts[0] == "BUCKET_COUNT" {
				x.BucketCount = int64(atoi(parts[2]))
			}
		})
	}
	return x
}

func (p *parser) column(t *CreateTable) {
	c := ColumnDef{Name: p.identifier(), Nullable: true}
	c.Type = p.typeName()
	for p.columnOption(t, &c) {
	}
	t.Columns = append(t.Columns, c)
}

// columnOption reads one option after a column's type.
func (p *parser) columnOption(t *CreateTable, c *ColumnDef) bool {
	name := ""
	switch {
	case p.phrase("NOT NULL"):
		c.Nullable = false
	case p.word("NULL") != "", p.word("ROWGUIDCOL", "SPARSE") != "":
	case p.word("COLLATE") != "":
		p.identifier()
	case p.word("DEFAULT") != "":
		c.Default = p.expr()
	case p.is("PRIMARY", "UNIQUE"):
		x := p.key(name, c.Name)
		c.Nullable = c.Nullable && !x.Primary
		t.Indexes = append(t.Indexes, x)
	default:
		return false
	}
	return true
}

func (p *parser) tableOptions(t *CreateTable) {
	line := p.peek().Line
	p.hintList(func(parts []string) {
		switch strings.Join(parts, " ") {
		case "MEMORY_OPTIMIZED = ON":
			t.MemoryOptimized = true
		case "DURABILITY = SCHEMA_ONLY":
			t.SchemaOnly = true
		case "MEMORY_OPTIMIZED = OFF", "DURABILITY = SCHEMA_AND_DATA",
			"DATA_COMPRESSION = NONE", "DATA_COMPRESSION = ROW", "DATA_COMPRESSION = PAGE":
		default:
			panic(Unmodelled(line, "the table option %s", strings.Join(parts, " ")))
		}
	})
}

func readDrop(p *parser, line at) Statement {
	p.next()
	d := &Drop{at: line, What: p.word("TABLE", "DATABASE", "PROCEDURE", "PROC")}
	if d.What == "" && p.phrase("RESOURCE POOL") {
		d.What = "RESOURCE POOL"
	}
	if d.What == "PROC" {
		d.What = "PROCEDURE"
	}
	if d.What == "" {
		panic(Unmodelled(int(line), "DROP %s", p.peek().Text))
	}
	d.IfExists = p.phrase("IF EXISTS")
	d.Names = []Name{p.name()}
	for p.symbol(",") {
		d.Names = append(d.Names, p.name())
	}
	return d
}
