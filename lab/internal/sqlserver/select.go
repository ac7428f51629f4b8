package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// selectBlock compiles one SELECT: sources, filter, groups, columns, order, limits.
func (c *compiler) selectBlock(s *tsql.Select, q *tsql.Query) plan {
	b := &block{sel: s, q: q, run: c.run, input: c.from(s)}
	b.at = c.with(&scope{columns: b.input.columns()})
	for _, step := range []func(){b.where, b.group, b.project, b.order} {
		step()
	}
	return b.finish(c)
}

// from compiles the FROM clause; without one there is a single row without columns.
func (c *compiler) from(s *tsql.Select) plan {
	if s.From == nil {
		return &rowsPlan{rows: [][]any{{}}, run: c.run}
	}
	return c.tableRef(s.From)
}

// block is a SELECT while it is compiled.
type block struct {
	sel   *tsql.Select
	q     *tsql.Query
	run   *run
	at    *compiler // resolves names in what has been built so far
	input plan
	exprs []scalar // the select list, then hidden sort keys
	cols  []column
	keys  []sortKey
}

func (b *block) where() {
	if b.sel.Where == nil {
		return
	}
	cond := b.at.expr(b.sel.Where)
	b.seekKey()
	b.input = &filterPlan{step{input: b.input}, cond}
}

// listed are the expressions that may hold aggregates.
func (b *block) listed() []tsql.Expr {
	var out []tsql.Expr
	for _, item := range b.sel.Items {
		if item.X != nil {
			out = append(out, item.X)
		}
	}
	for _, item := range b.q.OrderBy {
		out = append(out, item.X)
	}
	return out
}

// aggregates finds the calls of aggregate functions, each once.
func (b *block) aggregates() []*tsql.Call {
	var out []*tsql.Call
	seen := map[string]bool{}
	for _, x := range b.listed() {
		tsql.Walk(x, func(x tsql.Expr) bool {
			call, ok := x.(*tsql.Call)
			if !ok || len(call.Name.Parts) > 1 || aggregates[fold(call.Name.Object())] == nil {
				return true
			}
			if key := tsql.Format(call); !seen[key] {
				seen[key] = true
				out = append(out, call)
			}
			return false
		})
	}
	return out
}

// group builds the aggregation, if any; afterwards only keys and aggregates can be named.
func (b *block) group() {
	calls := b.aggregates()
	if len(calls) == 0 && b.sel.GroupBy == nil {
		return
	}
	p := &aggregatePlan{step: step{input: b.input}, run: b.run, grouped: b.sel.GroupBy != nil}
	after := &scope{replace: map[string]int{}, before: b.at.scope}
	for i, x := range b.sel.GroupBy {
		key := b.at.expr(x)
		p.keys = append(p.keys, key)
		after.columns = append(after.columns, column{name: keyName(x), typ: key.typ, nullable: key.nullable})
		b.name(after, x, key, i)
	}
	for _, call := range calls {
		agg := b.at.aggregate(call)
		after.replace[tsql.Format(call)] = len(after.columns)
		after.columns = append(after.columns, column{typ: agg.typ, nullable: agg.none == nil})
		p.aggregates = append(p.aggregates, agg)
	}
	p.cols = after.columns
	b.input, b.at = p, b.at.with(after)
}

func keyName(x tsql.Expr) string {
	if ref, ok := x.(*tsql.ColumnRef); ok {
		return ref.Object()
	}
	return ""
}

// name makes a group key found by its text and, for a column, with and without its table.
func (b *block) name(after *scope, x tsql.Expr, key scalar, i int) {
	after.replace[tsql.Format(x)] = i
	if key.ref == 0 {
		return
	}
	col := b.input.columns()[key.ref-1]
	after.replace[tsql.Format(&tsql.ColumnRef{Name: tsql.Name{Parts: []string{col.name}}})] = i
	after.replace[tsql.Format(&tsql.ColumnRef{Name: tsql.Name{Parts: []string{col.table, col.name}}})] = i
}

// project compiles the select list.
func (b *block) project() {
	for _, item := range b.sel.Items {
		if item.Star {
			b.star(item)
		} else {
			b.add(b.at.expr(item.X), itemName(item))
		}
	}
}

func (b *block) add(s scalar, name string) {
	if s.typ.Kind == 0 { // an untyped NULL is shown as int
		s.typ = typeInt
	}
	b.exprs = append(b.exprs, s)
	b.cols = append(b.cols, column{name: name, typ: s.typ, nullable: s.nullable})
}

func itemName(item tsql.Item) string {
	if item.Alias != "" {
		return item.Alias
	}
	return keyName(item.X)
}

func (b *block) star(item tsql.Item) {
	if b.at.scope.before != nil {
		panic(tsql.Errorf(8120, b.sel.Line, "Column '*' is invalid in the select list because it is not contained in either "+
			"an aggregate function or the GROUP BY clause."))
	}
	want := ""
	if item.Qualifier != nil {
		want = fold(item.Qualifier[len(item.Qualifier)-1])
	}
	for i, col := range b.at.scope.columns {
		if item.Qualifier == nil || col.table == want {
			b.add(b.at.columnAt(i), col.name)
		}
	}
}

// order compiles ORDER BY: output columns first, then any expression as a hidden column.
func (b *block) order() {
	for _, item := range b.q.OrderBy {
		place := outputPlace(item.X, b.cols)
		if place < 0 {
			if b.sel.Distinct {
				panic(tsql.Errorf(145, b.sel.Line, "ORDER BY items must appear in the select list if SELECT DISTINCT is specified."))
			}
			place = len(b.exprs)
			b.exprs = append(b.exprs, b.at.expr(item.X))
		}
		b.keys = append(b.keys, sortKey{column: place, desc: item.Desc})
	}
}

// projection computes a select list; one that takes all columns unchanged only renames them.
func projection(input plan, exprs []scalar, cols []column) plan {
	whole := len(exprs) == len(input.columns()) && productOf(input) == nil
	for i, s := range exprs {
		whole = whole && s.ref == i+1
	}
	if whole {
		return &renamedPlan{plan: input, cols: cols}
	}
	return &projectPlan{step{input, cols}, exprs}
}

// finish stacks projection, DISTINCT, sort and limit.
func (b *block) finish(c *compiler) plan {
	cols := append([]column(nil), b.cols...)
	for _, hidden := range b.exprs[len(b.cols):] {
		cols = append(cols, column{typ: hidden.typ, nullable: hidden.nullable})
	}
	p := projection(b.input, b.exprs, cols)
	if b.sel.Distinct {
		p = &distinctPlan{step{input: p}}
	}
	if b.keys != nil && !b.readInOrder() {
		p = &sortPlan{step{input: p}, b.keys, b.run}
	}
	p = c.limit(p, b.sel.Top)
	if len(cols) > len(b.cols) {
		p = &cutPlan{step{input: p}, len(b.cols)}
	}
	return p
}

// selectStatement runs a query whose rows go to the client or into a table.
func (b *batch) selectStatement(st *tsql.SelectStatement) outcome {
	r := b.newRun()
	p := compiled(r, func(c *compiler) plan { return c.query(st.Query) })
	started := time.Now()
	form := cost.Client
	var out outcome
	var made *table
	if into := intoTarget(st.Query); into != nil {
		form = cost.Into
		made = b.selectInto(into, st.Query, p, r)
	} else {
		out = b.send(answered(st.Query, p, r), r)
	}
	out.timing = b.modelledTime(p, form, time.Since(started))
	pages := (*cost.Timing)(nil)
	if out.timing == nil && form == cost.Client {
		pages = b.pageTime(p, time.Since(started))
	}
	if made != nil {
		out.done = b.keep(made, r)
	}
	if out.timing != nil {
		b.s.inst.remember(queryStatOf(st, p, r, *out.timing))
	}
	if pages != nil {
		out.timing = pages
	}
	if b.s.options.statisticsXML {
		out.plan = showplanXML(st, p, r)
	}
	return out
}

func intoTarget(q *tsql.Query) *tsql.Name {
	if s, ok := q.Body.(*tsql.Select); ok {
		return s.Into
	}
	return nil
}

// send streams rows to the client. A cross join of whole sides has a fast path, in which each row of
// either side is encoded once.
func (b *batch) send(p plan, r *run) outcome {
	b.open = true
	b.w.Columns(wireColumns(p.columns()))
	var n int64
	defer func() { b.s.rowCount = n }() // of a cancelled statement as well
	if sides := wholeSides(p); sides != nil {
		left, right := sides.cross.sides()
		var err error
		if n, err = b.w.CrossRows(pick(left, sides.left), pick(right, sides.right)); err != nil {
			panic(errEnded)
		}
		return counted(tds.CommandSelect, n)
	}
	for row := range p.each {
		b.w.Row(row)
		n++
		r.ended()
	}
	return counted(tds.CommandSelect, n)
}

// splitProduct is a projection of a cross product whose first columns come from one side and whose
// others come from the other side.
type splitProduct struct {
	cross       *crossPlan
	left, right []int // columns taken from either side
}

// wholeSides recognises a splitProduct by its plan.
func wholeSides(p plan) *splitProduct {
	project, ok := p.(*projectPlan)
	if !ok {
		return nil
	}
	cross := productOf(project.input)
	if cross == nil {
		return nil
	}
	width := len(cross.left.columns())
	out := &splitProduct{cross: cross}
	for _, s := range project.exprs {
		switch {
		case s.ref == 0:
			return nil
		case s.ref-1 >= width:
			out.right = append(out.right, s.ref-1-width)
		case out.right != nil:
			return nil
		default:
			out.left = append(out.left, s.ref-1)
		}
	}
	return out
}

// pick takes columns out of rows.
func pick(rows [][]any, places []int) [][]any {
	out := make([][]any, len(rows))
	cells := make([]any, len(rows)*len(places))
	for i, row := range rows {
		out[i], cells = cells[:len(places):len(places)], cells[len(places):]
		for k, at := range places {
			out[i][k] = row[at]
		}
	}
	return out
}

// sides computes both inputs and records their sizes for the cost model.
func (p *crossPlan) sides() (left, right [][]any) {
	left, right = collect(p.left), collect(p.right)
	p.outerRows, p.innerRows = int64(len(left)), int64(len(right))
	return left, right
}

// selectInto creates a table from a query. Of a cross join of whole sides only the number of rows is stored.
func (b *batch) selectInto(name *tsql.Name, q *tsql.Query, p plan, r *run) *table {
	t := b.tableFor(*name, p.columns())
	t.rows, t.repeated = t.empty(), recurring(q, p, r)
	sides := wholeSides(p)
	switch {
	case t.repeated != nil:
	case sides != nil:
		left, right := sides.cross.sides()
		t.counted = int64(len(left)) * int64(len(right))
	default:
		t.rows = stored(p, r)
	}
	return t
}

// keep registers the table of SELECT ... INTO after the time that the statement takes: a request
// that was cancelled meanwhile creates none.
func (b *batch) keep(t *table, r *run) *tds.Done {
	r.ended()
	b.addTable(t)
	b.s.rowCount = t.count()
	return &tds.Done{Count: t.count(), HasCount: true, Command: tds.CommandSelect}
}

// tableFor creates an empty table with the columns of a query.
func (b *batch) tableFor(name tsql.Name, cols []column) *table {
	seen := map[string]bool{}
	t := &table{}
	for i, c := range cols {
		if c.name == "" {
			panic(tsql.Errorf(1038, name.Line, "An object or column name is missing or empty. For SELECT INTO statements, verify "+
				"each column has a name (column %d).", i+1))
		}
		if seen[fold(c.name)] {
			panic(tsql.Errorf(2705, name.Line, "Column names in each table must be unique. Column name '%s' in table '%s' is "+
				"specified more than once.", c.name, name.Object()))
		}
		seen[fold(c.name)] = true
		c.table = ""
		t.columns = append(t.columns, tableColumn{column: c})
	}
	b.locate(t, name)
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	b.s.free(t)
	return t
}
