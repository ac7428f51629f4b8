package tsql

import "strings"

func (p *parser) createDatabase(line at) Statement {
	d := &CreateDatabase{at: line, Name: p.identifier()}
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
	p.expectSymbol("(")
	for {
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
		if !p.symbol(",") {
			break
		}
	}
	p.expectSymbol(")")
	p.must(f.Name != "")
	return f
}

// fileUnits are the KB of a file's size; without a unit they are MB.
var fileUnits = map[string]int64{"KB": 1, "": 1024, "MB": 1024, "GB": 1024 * 1024, "TB": 1024 * 1024 * 1024}

func readAlter(p *parser, line at) Statement {
	p.next()
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

func (p *parser) databaseOptions() []DatabaseOption {
	var out []DatabaseOption
	for {
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
		if !p.symbol(",") {
			break
		}
	}
	if p.word("WITH") != "" { // termination: no transactions to wait for in the lab
		p.skipTermination()
	}
	return out
}

func (p *parser) skipTermination() {
	switch p.expect("NO_WAIT", "ROLLBACK") {
	case "ROLLBACK":
		if p.expect("IMMEDIATE", "AFTER") == "AFTER" {
			p.integer()
			p.word("SECONDS")
		}
	}
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
	for {
		p.integer()
		if p.word("TO") != "" {
			p.integer()
		}
		if !p.symbol(",") {
			break
		}
	}
	return kind + "=" + strings.ToUpper(strings.TrimSpace(p.text[start:p.tokens[p.pos-1].End]))
}
