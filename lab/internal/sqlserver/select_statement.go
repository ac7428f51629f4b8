package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// selectStatement runs a query whose rows go to the client or into a table.
func (b *batch) selectStatement(st *tsql.SelectStatement) (outcome, error) {
	r := b.newRun()
	var p plan
	err := b.compile(r, func(c *compiler) (err error) {
		p, err = c.query(st.Query)
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	started := time.Now()
	form := cost.Client
	var out outcome
	var made *table
	if into := intoTarget(st.Query); into != nil {
		form = cost.Into
		made, err = b.selectInto(into, st.Query, p, r)
	} else {
		out, err = b.send(p, r)
	}
	if err != nil {
		return outcome{}, err
	}
	out.timing = b.modelledTime(p, form, time.Since(started))
	pages := (*cost.Timing)(nil)
	if out.timing == nil && form == cost.Client {
		pages = b.pageTime(p, time.Since(started))
	}
	if made != nil {
		if out.done, err = b.keep(made, r); err != nil {
			return outcome{}, err
		}
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
	return out, nil
}

func intoTarget(q *tsql.Query) *tsql.Name {
	if s, ok := q.Body.(*tsql.Select); ok {
		return s.Into
	}
	return nil
}

// send streams rows to the client. A cross join of whole sides has a fast path, in which each row of
// either side is encoded once.
func (b *batch) send(p plan, r *run) (outcome, error) {
	b.open = true
	b.w.Columns(wireColumns(p.columns()))
	var n int64
	var err error
	if sides := wholeSides(p); sides != nil {
		n, err = b.sendProduct(sides)
	} else {
		err = stoppable(p.each(func(row []any) error {
			b.w.Row(row)
			n++
			return r.ended()
		}))
	}
	b.s.rowCount = n
	return counted(tds.CommandSelect, n), err
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

func (b *batch) sendProduct(s *splitProduct) (int64, error) {
	left, right, err := s.cross.sides()
	if err != nil {
		return 0, err
	}
	n, err := b.w.CrossRows(pick(left, s.left), pick(right, s.right))
	if err != nil {
		return n, errEnded
	}
	return n, nil
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
func (p *crossPlan) sides() (left, right [][]any, err error) {
	if left, err = collect(p.left); err != nil {
		return nil, nil, err
	}
	if right, err = collect(p.right); err != nil {
		return nil, nil, err
	}
	p.outerRows, p.innerRows = int64(len(left)), int64(len(right))
	return left, right, nil
}

// selectInto creates a table from a query. Of a cross join of whole sides only the number of rows is stored.
func (b *batch) selectInto(name *tsql.Name, q *tsql.Query, p plan, r *run) (*table, error) {
	t, err := b.tableFor(*name, p.columns())
	if err != nil {
		return nil, err
	}
	t.rows = t.empty()
	if t.repeated, err = recurring(q, p, r); err != nil || t.repeated != nil {
		return t, err
	}
	sides := wholeSides(p)
	if sides == nil {
		t.rows, err = stored(p, r)
		return t, err
	}
	left, right, err := sides.cross.sides()
	if err != nil {
		return nil, err
	}
	t.counted = int64(len(left)) * int64(len(right))
	return t, nil
}

// keep registers the table of SELECT ... INTO after the time that the statement takes: a request
// that was cancelled meanwhile creates none.
func (b *batch) keep(t *table, r *run) (*tds.Done, error) {
	if err := r.ended(); err != nil {
		return nil, err
	}
	if err := b.addTable(t); err != nil {
		return nil, err
	}
	b.s.rowCount = t.count()
	return &tds.Done{Count: t.count(), HasCount: true, Command: tds.CommandSelect}, nil
}

// tableFor creates an empty table with the columns of a query.
func (b *batch) tableFor(name tsql.Name, cols []column) (*table, error) {
	def := &tsql.CreateTable{Name: name}
	seen := map[string]bool{}
	t := &table{}
	for i, c := range cols {
		if c.name == "" {
			return nil, tsql.Errorf(1038, name.Line, "An object or column name is missing or empty. For SELECT INTO statements, verify "+
				"each column has a name (column %d).", i+1)
		}
		if seen[fold(c.name)] {
			return nil, tsql.Errorf(2705, name.Line, "Column names in each table must be unique. Column name '%s' in table '%s' is "+
				"specified more than once.", c.name, name.Object())
		}
		seen[fold(c.name)] = true
		c.table = ""
		t.columns = append(t.columns, tableColumn{column: c, def: tsql.ColumnDef{Name: c.name, Nullable: c.nullable}})
	}
	if err := b.locate(t, def.Name); err != nil {
		return nil, err
	}
	return t, b.absent(t)
}
