package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// execute runs one statement.
func (b *batch) execute(st tsql.Statement) (outcome, error) {
	b.audit(changing(st))
	switch st := st.(type) {
	case *tsql.SelectStatement:
		return b.selectStatement(st)
	case *tsql.Insert:
		return b.insert(st)
	case *tsql.Delete:
		return b.remove(st)
	case *tsql.CreateTable, *tsql.CreateIndex, *tsql.CreateSchema, *tsql.CreateProcedure, *tsql.Drop:
		return outcome{done: &tds.Done{}}, b.define(st)
	case *tsql.CreateDatabase, *tsql.AlterDatabase, *tsql.AlterServer, *tsql.ResourcePool, *tsql.ResourceGovernor:
		return outcome{done: &tds.Done{}}, b.administer(st)
	case *tsql.InputBuffer:
		return outcome{}, b.inputBuffer(st)
	case *tsql.Backup:
		return outcome{}, b.backup(st)
	case *tsql.Use:
		return outcome{}, b.use(st.Database)
	case *tsql.SetOption:
		return b.setOption(st)
	case *tsql.Exec:
		return b.exec(st)
	case *tsql.Accepted:
		b.s.rowCount = 0
		if err := b.s.requireStatement(st); err != nil {
			return outcome{}, err
		}
		if st.What == "DBCC DROPCLEANBUFFERS" {
			b.s.inst.dropBuffers()
		}
		return outcome{}, nil
	}
	return b.control(st)
}

// control runs variables, messages and the flow of control.
func (b *batch) control(st tsql.Statement) (outcome, error) {
	switch st := st.(type) {
	case *tsql.Declare:
		return outcome{}, b.declare(st)
	case *tsql.SetVariable:
		v, err := b.value(st.X)
		if err == nil {
			err = b.assign(st.Name, v)
		}
		b.s.rowCount = 1
		return outcome{}, err
	case *tsql.RaiseError:
		return outcome{}, b.raise(st)
	case *tsql.Throw:
		return outcome{}, b.throw(st)
	case *tsql.WaitFor:
		return outcome{}, b.waitFor(st)
	case *tsql.Block:
		b.list(st.Body)
		return outcome{silent: true}, nil
	case *tsql.If:
		return outcome{silent: true}, b.choose(st)
	case *tsql.While:
		return outcome{silent: true}, b.loop(st)
	}
	return outcome{}, tsql.Unmodelled(st.Line(), "this statement")
}

// compile runs a compilation under the instance's lock.
func (b *batch) compile(r *run, work func(c *compiler) error) error {
	err := func() error {
		b.s.inst.mu.Lock()
		defer b.s.inst.mu.Unlock()
		return work(&compiler{run: r})
	}()
	if err != nil {
		return err
	}
	return r.use.check()
}

// value computes an expression without columns.
func (b *batch) value(x tsql.Expr) (any, error) {
	r := b.newRun()
	var s scalar
	err := b.compile(r, func(c *compiler) (err error) {
		s, err = c.expr(x)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.eval(nil)
}

func (b *batch) text(x tsql.Expr) (string, error) {
	v, err := b.value(x)
	if err != nil || v == nil {
		return "", err
	}
	return toText(v)
}

// assign sets a variable, converting to its type.
func (b *batch) assign(name string, v any) error {
	target, ok := b.vars[name]
	if !ok {
		return tsql.Errorf(137, 0, "Must declare the scalar variable \"%s\".", name)
	}
	converted, err := convert(v, target.typ)
	target.value = converted
	return err
}

func (b *batch) declare(st *tsql.Declare) error {
	for _, d := range st.Variables {
		typ, err := resolveType(d.Type, 1)
		if err != nil {
			return err
		}
		b.vars[d.Name] = &variable{typ: typ}
		if d.Init == nil {
			continue
		}
		value, err := b.value(d.Init)
		if err == nil {
			err = b.assign(d.Name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) condition(x tsql.Expr) (bool, error) {
	v, err := b.value(x)
	return v == true, err
}

func (b *batch) choose(st *tsql.If) error {
	holds, err := b.condition(st.Cond)
	switch {
	case err != nil:
		return err
	case holds:
		b.statement(st.Then)
	case st.Else != nil:
		b.statement(st.Else)
	}
	return nil
}

func (b *batch) loop(st *tsql.While) error {
	inserts, failed := b.countable(st), b.s.failed
	for pass := 1; b.ctx.Err() == nil && b.w.Err() == nil && !b.aborted; pass++ {
		holds, err := b.condition(st.Cond)
		if err != nil || !holds {
			return err
		}
		var before map[string]int64
		if pass == runPasses {
			before = b.wholeNumbers()
		}
		b.statement(st.Body)
		if pass == runPasses && inserts != nil && b.s.failed == failed && !b.aborted {
			if err := b.skip(st.Cond, inserts, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// raise is RAISERROR: severities up to 10 are messages.
func (b *batch) raise(st *tsql.RaiseError) error {
	text, err := b.text(st.Args[0])
	if err != nil {
		return err
	}
	var numbers [2]int64
	for i := range numbers {
		v, err := b.value(st.Args[i+1])
		if err != nil {
			return err
		}
		if numbers[i], err = wholeNumber(v, typeInt); err != nil {
			return err
		}
	}
	failure := &tsql.Error{Number: 50000, Class: uint8(numbers[0]), State: uint8(numbers[1]), Line: st.Line(), Text: text}
	if numbers[0] > 10 {
		return failure
	}
	b.info(message(failure))
	return nil
}

func (b *batch) throw(st *tsql.Throw) error {
	number, err := b.value(st.Args[0])
	if err != nil {
		return err
	}
	n, err := wholeNumber(number, typeInt)
	if err != nil {
		return err
	}
	text, err := b.text(st.Args[1])
	if err != nil {
		return err
	}
	return tsql.Errorf(int32(n), st.Line(), "%s", text)
}

func (b *batch) waitFor(st *tsql.WaitFor) error {
	text, err := b.text(st.Delay)
	if err != nil {
		return err
	}
	at, err := time.Parse("15:04:05.999", text)
	if err != nil {
		return tsql.Errorf(148, st.Line(), "Incorrect time syntax in time string '%s' used with WAITFOR.", text)
	}
	b.s.inst.pace(at.Sub(at.Truncate(24*time.Hour)), b.ctx.Done())
	return nil
}
