package sqlserver

import (
	"slices"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// crossPlan is the product of two inputs; the inner one is computed once.
type crossPlan struct {
	left, right plan
	run         *run

	outerRows, innerRows int64 // of the last run
}

func (p *crossPlan) columns() []column { return joinColumns(p.left, p.right, false) }

// joinColumns are the columns of both sides; those of the right one may be NULL in an outer join.
func joinColumns(left, right plan, outer bool) []column {
	out := append(append([]column(nil), left.columns()...), right.columns()...)
	for i := len(left.columns()); outer && i < len(out); i++ {
		out[i].nullable = true
	}
	return out
}

func (p *crossPlan) each(yield func([]any) error) error {
	inner, err := collect(p.right)
	if err != nil {
		return err
	}
	p.outerRows, p.innerRows = 0, int64(len(inner))
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	return p.left.each(func(row []any) error {
		if err := p.run.ended(); err != nil {
			return err
		}
		p.outerRows++
		copy(buffer, row)
		for _, in := range inner {
			copy(buffer[width:], in)
			if err := yield(buffer); err != nil {
				return err
			}
		}
		return nil
	})
}

// joinPlan is an INNER or LEFT join, by hash if possible, otherwise by nested loops.
type joinPlan struct {
	outer       bool // LEFT
	left, right plan
	on          scalar
	equal       *equalities // nil: nested loops
	run         *run
}

func (p *joinPlan) columns() []column { return joinColumns(p.left, p.right, p.outer) }

// tableRef compiles one source of rows of a FROM clause.
func (c *compiler) tableRef(ref tsql.TableRef) (plan, error) {
	switch ref := ref.(type) {
	case *tsql.Table:
		return c.table(ref)
	case *tsql.Derived:
		p, err := c.query(ref.Query)
		if err != nil {
			return nil, err
		}
		return aliased(p, ref.Alias, ref.Columns, ref.Query.Line)
	case *tsql.Join:
		return c.join(ref)
	}
	return nil, tsql.Unmodelled(0, "this kind of table source")
}

func (c *compiler) join(j *tsql.Join) (plan, error) {
	left, err := c.tableRef(j.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.tableRef(j.Right)
	if err != nil {
		return nil, err
	}
	if j.Kind == "CROSS" {
		return &crossPlan{left: left, right: right, run: c.run}, nil
	}
	p := &joinPlan{outer: j.Kind == "LEFT", left: left, right: right, run: c.run, equal: c.equalities(j.On, left, right)}
	p.on, err = c.with(&scope{columns: p.columns()}).expr(j.On)
	return p, err
}

// renamed is a plan with other column names.
type renamedPlan struct {
	plan
	cols []column
}

func (p *renamedPlan) columns() []column { return p.cols }

// aliased gives a plan an alias and perhaps column names.
func aliased(p plan, alias string, names []string, line int) (plan, error) {
	cols := append([]column(nil), p.columns()...)
	for i := range cols {
		cols[i].table = fold(alias)
		if names != nil {
			cols[i].name = names[i]
		}
		if cols[i].name == "" {
			return nil, tsql.Errorf(8155, line, "No column name was specified for column %d of '%s'.", i+1, alias)
		}
	}
	return &renamedPlan{plan: p, cols: cols}, nil
}

// equalities are the columns that a join compares, by position; nil if its condition is
// anything but equalities of one column of either side.
type equalities struct{ left, right []int }

func (c *compiler) equalities(on tsql.Expr, left, right plan) *equalities {
	switch x := on.(type) {
	case *tsql.Logic:
		if x.Op != "AND" {
			return nil
		}
		one, two := c.equalities(x.L, left, right), c.equalities(x.R, left, right)
		if one == nil || two == nil {
			return nil
		}
		return &equalities{append(one.left, two.left...), append(one.right, two.right...)}
	case *tsql.Compare:
		l, ok := x.L.(*tsql.ColumnRef)
		r, also := x.R.(*tsql.ColumnRef)
		if !ok || !also || x.Op != "=" {
			return nil
		}
		a, b := placeIn(l, left), placeIn(r, right)
		if a < 0 || b < 0 {
			a, b = placeIn(r, left), placeIn(l, right)
		}
		if a < 0 || b < 0 || !sameKey(left.columns()[a], right.columns()[b]) {
			return nil
		}
		return &equalities{[]int{a}, []int{b}}
	}
	return nil
}

func placeIn(ref *tsql.ColumnRef, p plan) int {
	at, err := (&scope{columns: p.columns()}).find(ref)
	if err != nil {
		return -1
	}
	return at
}

// sameKey reports whether equal values of two columns have equal checksums.
func sameKey(a, b column) bool {
	if a.typ.Kind == tds.KindFloat || a.typ.Kind == tds.KindDecimal && a.typ.Scale != b.typ.Scale {
		return false // -0 and 0, 1.0 and 1.00
	}
	return a.typ.Kind == b.typ.Kind || isInteger(a.typ.Kind) && isInteger(b.typ.Kind) || isText(a.typ.Kind) && isText(b.typ.Kind)
}

// chains are the rows of a store by the checksum of some columns: for each remainder of it the first row, and
// for each row the next of the same chain, in the order of the rows. Zero ends a chain; rows count from 1.
type chains struct {
	columns     []int
	first, next []int32
}

// hashed finds rows by the values of some columns. Stores never change: the chains of the last join are kept.
func (s *store) hashed(columns []int) *chains {
	s.joins.Lock()
	defer s.joins.Unlock()
	if s.chains == nil || !slices.Equal(s.chains.columns, columns) {
		s.chains = s.chained(columns)
	}
	return s.chains
}

func (s *store) chained(columns []int) *chains {
	out := &chains{columns: columns, first: make([]int32, s.rows+1), next: make([]int32, s.rows+1)}
	for row := s.rows; row > 0; row-- {
		var sum uint32
		for _, c := range columns {
			sum = foldChecksum(sum, checksumOf(s.cells[c].value(row-1), true))
		}
		at := out.place(sum)
		out.first[at], out.next[row] = int32(row), out.first[at]
	}
	return out
}

// place is the start of a checksum's chain.
func (c *chains) place(sum uint32) uint32 { return mixed(uint64(sum)) % uint32(len(c.first)) }

// each visits the rows whose checksum may be that of the values: those with the values, and a few others.
func (c *chains) each(row []any, columns []int, visit func(row int) error) error {
	var sum uint32
	for _, at := range columns {
		sum = foldChecksum(sum, checksumOf(row[at], true))
	}
	for at := c.first[c.place(sum)]; at != 0; at = c.next[at] {
		if err := visit(int(at) - 1); err != nil {
			return err
		}
	}
	return nil
}

// byHash is the right table of a join if it can be looked up by hash, or nil.
func (p *joinPlan) byHash() *scanPlan {
	if p.equal == nil {
		return nil
	}
	return scanOf(p.right)
}

// candidates are the right rows that may match a left one.
func (p *joinPlan) candidates() (func(left []any, visit func(right []any) error) error, error) {
	if inner := p.byHash(); inner != nil {
		found := inner.rows.hashed(p.equal.right)
		buffer := make([]any, len(inner.cols))
		return func(left []any, visit func([]any) error) error {
			return found.each(left, p.equal.left, func(at int) error {
				inner.rows.read(at, buffer)
				return visit(buffer)
			})
		}, nil
	}
	inner, err := collect(p.right)
	return func(_ []any, visit func([]any) error) error {
		for _, right := range inner {
			if err := visit(right); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// eachTimes yields the join's rows with their number. A hash only finds candidates: the condition decides.
func (p *joinPlan) eachTimes(yield func([]any, int64) error) error {
	candidates, err := p.candidates()
	if err != nil {
		return err
	}
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	return eachTimes(p.left, func(row []any, times int64) error {
		copy(buffer, row)
		matched := false
		err := candidates(row, func(right []any) error {
			copy(buffer[width:], right)
			v, err := p.on.eval(buffer)
			if err != nil || v != true {
				return err
			}
			matched = true
			return yield(buffer, times)
		})
		if err == nil && p.outer && !matched {
			clear(buffer[width:])
			err = yield(buffer, times)
		}
		if err != nil {
			return err
		}
		return p.run.ended()
	})
}

func (p *joinPlan) each(yield func([]any) error) error { return singly(p, yield) }
