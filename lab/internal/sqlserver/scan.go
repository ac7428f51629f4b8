package sqlserver

import (
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// scanPlan reads a table as it was when the statement was compiled.
type scanPlan struct {
	cols  []column
	table *table // for its names and keys; rows are the snapshot
	rows  *store
	index *uniqueKey // read in the order of this key
	order *keyOrder
	seek  *seek // reads these rows alone
	run   *run

	read int64 // rows read by the last run
}

func (p *scanPlan) columns() []column { return p.cols }

func (p *scanPlan) each(_ *frame, yield func([]any) error) error {
	buffer := make([]any, len(p.cols))
	p.read = 0
	from, to, order := 0, p.rows.rows, p.order
	if p.seek != nil {
		var err error
		if from, to, err = p.seek.rows(p.rows, p.run); err != nil {
			return err
		}
		order = p.seek.order
	}
	for place := from; place < to; place++ {
		if place&1023 == 1023 {
			if err := p.run.ended(); err != nil {
				return err
			}
		}
		row := place
		if order != nil {
			row = order.at(place)
		}
		p.rows.read(row, buffer)
		p.read++
		if err := yield(buffer); err != nil {
			return err
		}
	}
	return nil
}

// scanOf is the table that a plan reads, under other names perhaps.
func scanOf(p plan) *scanPlan {
	switch p := p.(type) {
	case *scanPlan:
		return p
	case *renamedPlan:
		return scanOf(p.plan)
	}
	return nil
}

// readInOrder makes the scan below a SELECT give its rows in the order asked for, if a key has that order:
// TOP then reads no more rows than it needs. The caller holds Instance.mu.
func (b *block) readInOrder() bool {
	input := b.input
	if filter, ok := input.(*filterPlan); ok {
		input = filter.input
	}
	scan := scanOf(input)
	if scan == nil || b.sel.Distinct {
		return false
	}
	columns := make([]int, len(b.keys))
	for i, key := range b.keys {
		if columns[i] = b.exprs[key.column].ref - 1; columns[i] < 0 || key.desc {
			return false
		}
	}
	if scan.index = scan.table.ordered(columns); scan.index == nil {
		return false
	}
	scan.order = scan.index.inOrder(scan.rows)
	return true
}

// scanKernel is the value of an integer expression for a row of a store.
type scanKernel func(row int) (n int64, null bool)

// overScan computes the aggregates over a whole table from its columns, without building rows; ok is false
// when the query does not have that form.
func (p *aggregatePlan) overScan() (row []any, ok bool, err error) {
	scan := scanOf(p.input)
	if scan == nil || p.grouped {
		return nil, false, nil
	}
	for _, a := range p.aggregates {
		if a.arg == nil {
			row = append(row, int64(scan.rows.rows))
			continue
		}
		if !a.onPairs() {
			return nil, false, nil
		}
		value := scan.kernel(a.at, a.call.Args[0])
		if value == nil {
			return nil, false, nil
		}
		v, err := a.overRows(value, scan.rows.rows)
		if err != nil {
			return nil, false, err
		}
		row = append(row, v)
	}
	return row, true, p.run.ended()
}

func (a *aggregate) overRows(value scanKernel, rows int) (any, error) {
	var t tally
	for i := range rows {
		if n, null := value(i); !null {
			t.add(n)
		}
	}
	return t.result(a)
}

// kernel compiles integer columns, checksums of columns, and conversions of either to a wider integer; nil for
// anything else.
func (p *scanPlan) kernel(at *compiler, x tsql.Expr) scanKernel {
	switch x := x.(type) {
	case *tsql.ColumnRef:
		place, err := at.scope.find(x)
		if err != nil || place < 0 {
			return nil
		}
		return wholeKernel(p.rows.cells[place])
	case *tsql.Cast:
		if t, err := resolveType(x.Type, 30); err != nil || t.Kind != tds.KindInt64 {
			return nil
		}
		return p.kernel(at, x.X)
	case *tsql.Call:
		return p.checksumKernel(at, x)
	}
	return nil
}

// wholeKernel reads a column of integers; nil for any other.
func wholeKernel(c cells) scanKernel {
	switch c := c.(type) {
	case *numbers[int16]:
		return func(row int) (int64, bool) { return int64(c.list[row]), c.nulls.at(row) }
	case *numbers[int32]:
		return func(row int) (int64, bool) { return int64(c.list[row]), c.nulls.at(row) }
	}
	return nil
}

func (p *scanPlan) checksumKernel(at *compiler, x *tsql.Call) scanKernel {
	name := fold(x.Name.Object())
	if name != "checksum" && name != "binary_checksum" || x.Star || x.Over != nil {
		return nil
	}
	sums := make([]uint32, p.rows.rows)
	for k, arg := range x.Args {
		ref, ok := arg.(*tsql.ColumnRef)
		if !ok {
			return nil
		}
		place, err := at.scope.find(ref)
		if err != nil || place < 0 {
			return nil
		}
		p.rows.cells[place].checksums(sums, 4*(len(x.Args)-1-k), name == "checksum")
	}
	return func(row int) (int64, bool) { return int64(int32(sums[row])), false }
}
