package tsql

import "strings"

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
	p.next()
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
