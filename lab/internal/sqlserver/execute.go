package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// execute runs one statement.
func (b *batch) execute(st tsql.Statement) (out outcome) {
	b.audit(changing(st))
	switch st := st.(type) {
	case *tsql.SelectStatement:
		return b.selectStatement(st)
	case *tsql.Insert:
		return b.insert(st)
	case *tsql.Delete:
		return b.remove(st)
	case *tsql.CreateTable, *tsql.CreateIndex, *tsql.CreateSchema, *tsql.CreateProcedure, *tsql.Drop:
		out.done = &tds.Done{}
		b.define(st)
	case *tsql.CreateDatabase, *tsql.AlterDatabase, *tsql.AlterServer, *tsql.ResourcePool, *tsql.ResourceGovernor:
		out.done = &tds.Done{}
		b.administer(st)
	case *tsql.InputBuffer:
		b.inputBuffer(st)
	case *tsql.Backup:
		b.backup(st)
	case *tsql.Use:
		b.use(st.Database)
	case *tsql.SetOption:
		return b.setOption(st)
	case *tsql.Exec:
		b.exec(st)
	case *tsql.Accepted:
		b.s.rowCount = 0
		b.s.requireStatement(st)
		if st.What == "DBCC DROPCLEANBUFFERS" {
			b.s.inst.dropBuffers()
		}
	default:
		b.control(st)
	}
	return out
}

// control runs variables, messages and the flow of control.
func (b *batch) control(st tsql.Statement) {
	switch st := st.(type) {
	case *tsql.Declare:
		b.declare(st)
	case *tsql.SetVariable:
		b.assign(st.Name, b.value(st.X))
		b.s.rowCount = 1
	case *tsql.RaiseError:
		b.raise(st)
	case *tsql.Throw:
		number := wholeNumber(b.value(st.Args[0]), typeInt)
		panic(tsql.Errorf(int32(number), st.Line(), "%s", b.text(st.Args[1])))
	case *tsql.WaitFor:
		b.waitFor(st)
	case *tsql.Block:
		b.list(st.Body)
	case *tsql.If:
		if b.value(st.Cond) == true {
			b.statement(st.Then)
		} else if st.Else != nil {
			b.statement(st.Else)
		}
	case *tsql.While:
		b.loop(st)
	}
}

// compiled is what a compilation under the instance's lock gives.
func compiled[T any](r *run, work func(c *compiler) T) T {
	r.inst.mu.Lock()
	defer r.inst.mu.Unlock()
	out := work(&compiler{run: r})
	r.use.check()
	return out
}

// value computes an expression without columns.
func (b *batch) value(x tsql.Expr) any {
	s := compiled(b.newRun(), func(c *compiler) scalar { return c.expr(x) })
	return s.eval(nil)
}

func (b *batch) text(x tsql.Expr) string {
	v := b.value(x)
	if v == nil {
		return ""
	}
	return toText(v)
}

// assign sets a variable, converting to its type.
func (b *batch) assign(name string, v any) {
	target, ok := b.vars[name]
	if !ok {
		panic(tsql.Errorf(137, 0, "Must declare the scalar variable \"%s\".", name))
	}
	target.value = convert(v, target.typ)
}

func (b *batch) declare(st *tsql.Declare) {
	for _, d := range st.Variables {
		b.vars[d.Name] = &variable{typ: resolveType(d.Type, 1)}
		if d.Init != nil {
			b.assign(d.Name, b.value(d.Init))
		}
	}
}

func (b *batch) loop(st *tsql.While) {
	inserts, failed := b.countable(st), b.s.failed
	for pass := 1; b.ctx.Err() == nil && b.w.Err() == nil && !b.aborted && b.value(st.Cond) == true; pass++ {
		var before map[string]int64
		if pass == runPasses {
			before = b.wholeNumbers()
		}
		b.statement(st.Body)
		if pass == runPasses && inserts != nil && b.s.failed == failed && !b.aborted {
			b.skip(st.Cond, inserts, before)
		}
	}
}

// raise is RAISERROR: severities up to 10 are messages.
func (b *batch) raise(st *tsql.RaiseError) {
	number := func(x tsql.Expr) uint8 { return uint8(wholeNumber(b.value(x), typeInt)) }
	failure := &tsql.Error{Number: 50000, Text: b.text(st.Args[0]), Class: number(st.Args[1]), State: number(st.Args[2]), Line: st.Line()}
	if failure.Class > 10 {
		panic(failure)
	}
	b.info(message(failure))
}

func (b *batch) waitFor(st *tsql.WaitFor) {
	text := b.text(st.Delay)
	at, err := time.Parse("15:04:05.999", text)
	if err != nil {
		panic(tsql.Errorf(148, st.Line(), "Incorrect time syntax in time string '%s' used with WAITFOR.", text))
	}
	b.s.inst.pace(at.Sub(at.Truncate(24*time.Hour)), b.ctx.Done())
}
