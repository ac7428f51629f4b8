package sqlserver

// scanPlan reads a table as it was when the statement was compiled.
type scanPlan struct {
	cols  []column
	table *table // for its names and keys; rows are the snapshot
	rows  *store
	index *uniqueKey // read in the order of this key
	order *keyOrder
	seek  *seek // reads only these rows
	run   *run
}

func (p *scanPlan) columns() []column { return p.cols }

func (p *scanPlan) each(yield func([]any) error) error {
	buffer := make([]any, len(p.cols))
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
		if err := yield(buffer); err != nil {
			return err
		}
	}
	return nil
}

// scanOf is the table that a plan reads, possibly under other names.
func scanOf(p plan) *scanPlan {
	switch p := p.(type) {
	case *scanPlan:
		return p
	case *renamedPlan:
		return scanOf(p.plan)
	}
	return nil
}

// readInOrder makes the scan below a SELECT yield its rows in the wanted order, if a key has that order:
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
