package tsql

import "strings"

func readCreate(p *parser, line at) Statement {
	switch {
	case p.word("TABLE") != "":
		t := &CreateTable{at: line, Name: p.name()}
		p.tableBody(t)
		return t
	case p.word("SCHEMA") != "":
		return &CreateSchema{at: line, Name: p.identifier()}
	case p.word("DATABASE") != "":
		return &CreateDatabase{at: line, Name: p.identifier()}
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
	table := p.name()
	x.Columns = p.nameList()
	return &CreateIndex{at: line, Table: table, Index: x}
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
	if p.is("PRIMARY", "UNIQUE") {
		t.Indexes = append(t.Indexes, p.key(name, ""))
	} else {
		p.column(t)
	}
}

// key reads PRIMARY KEY or UNIQUE, [NON]CLUSTERED, HASH, columns, WITH (BUCKET_COUNT = n); column is set for a
// constraint after a column.
func (p *parser) key(name, column string) IndexDef {
	x := IndexDef{Name: name, Unique: true, Primary: p.expect("PRIMARY", "UNIQUE") == "PRIMARY"}
	if x.Primary {
		p.expect("KEY")
		x.Clustered = true
	}
	if column != "" {
		x.Columns = []string{column}
	}
	if w := p.word("CLUSTERED", "NONCLUSTERED"); w != "" {
		x.Clustered = w == "CLUSTERED"
	}
	x.Hash = p.word("HASH") != ""
	if p.isSymbol("(") {
		x.Columns = p.nameList()
	}
	if p.word("WITH") != "" {
		p.hintList(nil)
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
	switch {
	case p.phrase("NOT NULL"):
		c.Nullable = false
	case p.word("NULL") != "", p.word("ROWGUIDCOL", "SPARSE") != "":
	case p.word("COLLATE") != "":
		p.identifier()
	case p.word("DEFAULT") != "":
		c.Default = p.expr()
	case p.is("PRIMARY", "UNIQUE"):
		x := p.key("", c.Name)
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
	p.list(func() { d.Names = append(d.Names, p.name()) })
	return d
}

func (p *parser) filegroup() Filegroup {
	g := Filegroup{Name: p.identifier()}
	if p.word("CONTAINS") != "" {
		if p.expect("MEMORY_OPTIMIZED_DATA", "FILESTREAM") == "FILESTREAM" {
			panic(Unmodelled(p.peek().Line, "FILESTREAM filegroups"))
		}
		g.MemoryOptimized = true
	}
	return g
}

// file reads (NAME = n, FILENAME = 'path', SIZE = ..., ...).
func (p *parser) file(group string) File {
	f := File{Filegroup: group}
	read := func() {
		option := p.expect("NAME", "NEWNAME", "FILENAME", "SIZE", "MAXSIZE", "FILEGROWTH", "OFFLINE")
		if p.symbol("=") {
			t := p.next()
			p.must(t.Kind == Word || t.Kind == Quoted || t.Kind == Text || t.Kind == Number)
			switch option {
			case "NAME":
				f.Name = t.Text
			case "FILENAME":
				f.Path = t.Text
			default:
				unit := p.word("KB", "MB", "GB", "TB")
				p.symbol("%")
				if option == "SIZE" {
					f.SizeKB = int64(atoi(t.Text)) * fileUnits[unit]
				}
			}
		}
	}
	p.bracketed(func() { p.list(read) })
	p.must(f.Name != "")
	return f
}

// fileUnits are the KB of a file's size; without a unit they are MB.
var fileUnits = map[string]int64{"KB": 1, "": 1024, "MB": 1024, "GB": 1024 * 1024, "TB": 1024 * 1024 * 1024}

func readAlter(p *parser, line at) Statement {
	switch {
	case p.word("DATABASE") != "":
		return p.alterDatabase(line)
	case p.phrase("SERVER CONFIGURATION SET"):
		return p.alterServer(line)
	case p.phrase("RESOURCE POOL"):
		return p.resourcePool(line, true)
	case p.phrase("RESOURCE GOVERNOR"):
		return p.resourceGovernor(line)
	}
	panic(Unmodelled(int(line), "ALTER %s", p.peek().Text))
}

func (p *parser) alterDatabase(line at) Statement {
	d := &AlterDatabase{at: line}
	if p.word("CURRENT") == "" {
		d.Name = p.identifier()
	}
	switch {
	case p.phrase("ADD FILEGROUP"):
		g := p.filegroup()
		d.Filegroup = &g
	case p.phrase("ADD FILE"):
		f := p.file("PRIMARY")
		if p.phrase("TO FILEGROUP") {
			f.Filegroup = p.identifier()
		}
		d.File = &f
	case p.phrase("MODIFY FILE"):
		f := p.file("")
		d.Modify = &f
	case p.word("SET") != "":
		d.Options = p.databaseOptions()
	default:
		panic(Unmodelled(int(line), "ALTER DATABASE ... %s", p.peek().Text))
	}
	return d
}

// databaseOptionNames are the SET options of a database that the lab stores, or ignores because results do not change.
var databaseOptionNames = words(`RECOVERY COMPATIBILITY_LEVEL MEMORY_OPTIMIZED_ELEVATE_TO_SNAPSHOT DELAYED_DURABILITY
	AUTO_CLOSE AUTO_SHRINK AUTO_CREATE_STATISTICS AUTO_UPDATE_STATISTICS AUTO_UPDATE_STATISTICS_ASYNC PAGE_VERIFY
	READ_COMMITTED_SNAPSHOT ALLOW_SNAPSHOT_ISOLATION PARAMETERIZATION QUERY_STORE TRUSTWORTHY DB_CHAINING
	SINGLE_USER MULTI_USER RESTRICTED_USER READ_ONLY READ_WRITE ONLINE OFFLINE TARGET_RECOVERY_TIME
	ANSI_NULLS ANSI_NULL_DEFAULT ANSI_PADDING ANSI_WARNINGS ARITHABORT QUOTED_IDENTIFIER RECURSIVE_TRIGGERS
	ACCELERATED_DATABASE_RECOVERY`)

func (p *parser) databaseOptions() (out []DatabaseOption) {
	p.list(func() {
		t := p.peek()
		if t.Kind != Word || !databaseOptionNames[t.Upper] {
			p.fail()
		}
		p.next()
		o := DatabaseOption{Name: t.Upper}
		p.symbol("=")
		if p.isSymbol("(") {
			p.hintList(nil)
		} else if v := p.peek(); (v.Kind == Word && !p.is("WITH") && readers[v.Upper] == nil) || v.Kind == Number {
			o.Value = strings.ToUpper(p.next().Text)
			p.word("SECONDS", "MINUTES")
		}
		out = append(out, o)
	})
	if p.word("WITH") != "" { // termination: no transactions to wait for in the lab
		if p.expect("NO_WAIT", "ROLLBACK") == "ROLLBACK" && p.expect("IMMEDIATE", "AFTER") == "AFTER" {
			p.integer()
			p.word("SECONDS")
		}
	}
	return out
}

func (p *parser) alterServer(line at) Statement {
	s := &AlterServer{at: line}
	switch {
	case p.word("SOFTNUMA") != "":
		s.Option, s.Value = "SOFTNUMA", p.expect("ON", "OFF")
	case p.phrase("PROCESS AFFINITY"):
		s.Option = "PROCESS AFFINITY"
		s.Value = p.affinity()
	default:
		panic(Unmodelled(int(line), "ALTER SERVER CONFIGURATION SET %s", p.peek().Text))
	}
	return s
}

// affinity reads CPU = AUTO | ranges, or NUMANODE = ranges.
func (p *parser) affinity() string {
	kind := p.expect("CPU", "NUMANODE")
	p.expectSymbol("=")
	if kind == "CPU" && p.word("AUTO") != "" {
		return "CPU=AUTO"
	}
	start := p.peek().Start
	p.list(func() {
		p.integer()
		if p.word("TO") != "" {
			p.integer()
		}
	})
	return kind + "=" + strings.ToUpper(strings.TrimSpace(p.text[start:p.tokens[p.pos-1].End]))
}
