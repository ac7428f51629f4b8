package sqlserver

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// response is where a batch sends its results; *tds.Writer is one.
type response interface {
	Columns([]tds.Column)
	Row([]any)
	CrossRows(outer, inner [][]any) (int64, error)
	Info(tds.Message)
	Error(tds.Message)
	Done(tds.Done)
	Database(now, before string)
	Err() error
}

// batch is one request while it runs.
type batch struct {
	ctx     context.Context
	s       *Session
	w       response
	vars    map[string]*variable
	aborted bool // after an error that ends the batch
	open    bool // something was sent since the last DONE
	sent    bool // a DONE was sent
	nesting int  // of EXEC

	procedure *userProcedure // of the body being run
	returned  int64          // the return value of a procedure of the system
	remote    bool           // the request is a remote procedure call
}

// variable is a local variable or parameter.
type variable struct {
	typ   tds.Type
	value any
}

// run is what plans and expressions need of their statement.
type run struct {
	s     *Session
	inst  *Instance
	batch *batch
	now   time.Time
	use   touched

	random *float64 // of RAND in this statement
}

// errEnded means that the client no longer waits for the answer.
var errEnded = &tsql.Error{Text: "the request has ended"}

const maxNesting = 32

func newBatch(ctx context.Context, s *Session, w response) *batch {
	return &batch{ctx: ctx, s: s, w: w, vars: map[string]*variable{}}
}

func (b *batch) newRun() *run {
	return &run{s: b.s, inst: b.s.inst, batch: b, now: b.s.clock()}
}

// ended makes a statement stop whose client cancelled or has disconnected.
func (r *run) ended() {
	if r.batch.ctx.Err() != nil || r.batch.w.Err() != nil {
		panic(errEnded)
	}
}

// check is ended for a loop, at some of its rows.
func (r *run) check(row int) {
	if row&1023 == 1023 {
		r.ended()
	}
}

// outcome is the part of a statement's result that its caller sends.
type outcome struct {
	done   *tds.Done    // nil = the statement sends no DONE
	timing *cost.Timing // modelled times; nil = as measured
	silent bool         // no 3612: containers and SET STATISTICS TIME
	plan   string       // showplan, when SET STATISTICS XML is on
}

func counted(command uint16, n int64) outcome {
	return outcome{done: &tds.Done{Count: n, HasCount: true, Command: command}}
}

// runAll runs statements; SET STATISTICS TIME reports the compilation of the batch first.
func (b *batch) runAll(statements []tsql.Statement) {
	if b.s.options.statisticsTime && len(statements) > 0 {
		b.info(compileTimes(0, 0))
	}
	b.list(statements)
}

// list runs statements until one of them ends the batch.
func (b *batch) list(statements []tsql.Statement) {
	for _, st := range statements {
		b.statement(st)
		if b.aborted || b.ctx.Err() != nil || b.w.Err() != nil {
			return
		}
	}
}

// close ends the response with a DONE, when the last thing sent was something else.
func (b *batch) close() {
	if b.open || !b.sent {
		b.done(tds.Done{})
	}
}

func (b *batch) info(m tds.Message) {
	b.open = true
	b.w.Info(m)
}

func (b *batch) done(d tds.Done) {
	b.open, b.sent = false, true
	if b.s.options.noCount {
		d.HasCount = false
	}
	b.w.Done(d)
}

// statement runs one statement and sends its messages in the server's order: rows, DONE, 3612.
func (b *batch) statement(st tsql.Statement) {
	times := b.s.options.statisticsTime
	if times && autoParameterised(st) {
		b.info(compileTimes(0, 0))
	}
	started := time.Now()
	var out outcome
	err := tsql.Catch(func() { out = b.execute(st) })
	if err == errEnded {
		// A cancelled statement has no error number; what it had sent is in ROWCOUNT_BIG().
		b.s.lastError = 0
		return
	}
	switch st.(type) {
	case *tsql.Block, *tsql.If, *tsql.While:
		out.silent = true
	}
	times = times && !out.silent
	if err != nil {
		b.fail(st, at(err, st.Line()), times, started)
		return
	}
	if !out.silent {
		b.s.lastError = 0
	}
	if out.done != nil {
		b.done(*out.done)
	}
	if out.plan != "" {
		b.showPlan(out.plan)
	}
	if times {
		b.info(executionTimes(out.measured(started)))
	}
}

func (o outcome) measured(started time.Time) cost.Timing {
	if o.timing != nil {
		return *o.timing
	}
	passed := time.Since(started)
	ms, micros := passed.Milliseconds(), passed.Microseconds()
	return cost.Timing{CPU: ms, Elapsed: ms, CPUMicros: micros, ElapsedMicros: micros}
}

// at is an error in a line, unless it has one.
func at(err *tsql.Error, line int) *tsql.Error {
	located := *err
	located.Line = cmp.Or(err.Line, line)
	return &located
}

// continuing errors end their statement, not the batch.
var continuing = map[int32]bool{8134: true, 2627: true, 2601: true, 515: true, 8152: true, 2628: true, 8115: true, 220: true,
	3701: true, 2714: true, 1801: true, 15151: true, 911: true, 50000: true, 41317: true, 547: true}

// fail reports an error.
func (b *batch) fail(st tsql.Statement, err *tsql.Error, times bool, started time.Time) {
	b.s.lastError, b.s.rowCount = err.Number, 0
	b.open = true
	b.s.failed++
	b.w.Error(message(err))
	if times {
		b.info(executionTimes(outcome{}.measured(started)))
	}
	if changesData(st) {
		b.info(tds.Message{Number: 3621, State: 0, Class: 0, Line: int32(err.Line), Text: "The statement has been terminated."})
	}
	b.done(tds.Done{Error: true})
	_, thrown := st.(*tsql.Throw)
	if b.s.options.xactAbort || thrown || !continuing[err.Number] {
		b.aborted = true
	}
}

// reporting sends an error that ends the batch outside of its statements.
func (b *batch) reporting(run func()) {
	if err := tsql.Catch(run); err != nil {
		b.s.lastError, b.s.rowCount = err.Number, 0
		b.w.Error(message(at(err, 1)))
		b.done(tds.Done{Error: true})
	}
}

func message(e *tsql.Error) tds.Message {
	return tds.Message{Number: e.Number, State: e.State, Class: e.Class, Text: e.Text, Line: int32(e.Line)}
}

func changesData(st tsql.Statement) bool {
	switch st := st.(type) {
	case *tsql.Insert, *tsql.Delete:
		return true
	case *tsql.SelectStatement:
		s, ok := st.Query.Body.(*tsql.Select)
		return ok && s.Into != nil
	}
	return false
}

// The texts of SET STATISTICS TIME, with the server's spaces and line feeds.
func compileTimes(cpu, elapsed int64) tds.Message {
	return tds.Message{Number: 3613, State: 1, Class: 0, Line: 1, Text: fmt.Sprintf(
		"SQL Server parse and compile time: \n   CPU time = %d ms, elapsed time = %d ms.", cpu, elapsed)}
}

func executionTimes(t cost.Timing) tds.Message {
	return tds.Message{Number: 3612, State: 1, Class: 0, Line: 1, Text: fmt.Sprintf(
		"\n SQL Server Execution Times:\n   CPU time = %d ms,  elapsed time = %d ms.", t.CPU, t.Elapsed)}
}

// autoParameterised reports whether simple parameterisation replaces a literal: the server then compiles
// twice and reports 3613 twice.
func autoParameterised(st tsql.Statement) bool {
	switch st := st.(type) {
	case *tsql.Insert:
		values, ok := st.Source.Body.(*tsql.Values)
		return ok && len(values.Rows) == 1 && hasLiteral(values.Rows[0]...)
	case *tsql.Delete:
		return hasLiteral(st.Where)
	case *tsql.SelectStatement:
		s, ok := st.Query.Body.(*tsql.Select)
		if !ok || s.Top != nil || s.Distinct || s.GroupBy != nil || s.Into != nil ||
			st.Query.With != nil || st.Query.Hints.All != nil {
			return false
		}
		_, plain := s.From.(*tsql.Table)
		return plain && hasLiteral(s.Where)
	}
	return false
}

// hasLiteral finds a literal, and no subquery or alternative, which prevent simple parameterisation.
func hasLiteral(list ...tsql.Expr) bool {
	found := false
	for _, x := range list {
		simple := true
		tsql.Walk(x, func(x tsql.Expr) bool {
			switch x := x.(type) {
			case *tsql.NumberLit, *tsql.TextLit, *tsql.BinaryLit:
				found = true
			case *tsql.Subquery, *tsql.In:
				simple = false
			case *tsql.Logic:
				simple = x.Op == "AND"
			}
			return simple
		})
		if !simple {
			return false
		}
	}
	return found
}
