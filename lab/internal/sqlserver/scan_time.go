package sqlserver

import (
	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tsql"
)

// largeScan is the size in bytes from which on a scan's time is modelled: about the last-level cache of one processor;
// below it the lab's actual time is good enough.
const largeScan = 16 << 20

// wideColumn is the size in bytes from which on reading a column counts as reading its whole row.
const wideColumn = 256

// largeScanOf finds an aggregate over the whole of a large memory-optimised table; nil for any other plan.
func largeScanOf(p plan) (*scanPlan, *aggregatePlan) {
	for p != nil {
		if at, ok := p.(*aggregatePlan); ok {
			scan := scanOf(at.input)
			if scan == nil || at.grouped || !scan.table.memoryOptimized || scan.bytes() < largeScan {
				return nil, nil
			}
			return scan, at
		}
		inputs := inputsOf(p)
		if len(inputs) != 1 {
			return nil, nil
		}
		p = inputs[0]
	}
	return nil, nil
}

// scanTime is the modelled time of one more large scan on this boot.
func (i *Instance) scanTime(scan *scanPlan, over *aggregatePlan) cost.Timing {
	i.mu.Lock()
	defer i.mu.Unlock()
	t := i.config.Cost.Scan(cost.Scan{Rows: int64(scan.rows.rows), Bytes: scan.bytes(), Dense: over.readsWide(), Run: i.nextRun()})
	if slow := i.boot.Faults.SlowFactor; slow > 0 {
		t = t.Scaled(slow)
	}
	return t
}

// bytes is the size of the table's rows by their declared widths; columns without a limit count as zero.
func (p *scanPlan) bytes() int64 {
	width := int64(rowHeader)
	for _, c := range p.cols {
		width += int64(max(storageBytes(c.typ), 0))
	}
	return width * int64(p.rows.rows)
}

// rowHeader is the header of a memory-optimised row with one index.
const rowHeader = 32

// readsWide reports whether an aggregate reads a column that is most of its row.
func (p *aggregatePlan) readsWide() bool {
	for _, a := range p.aggregates {
		for _, arg := range a.call.Args {
			if a.readsWide(arg) {
				return true
			}
		}
	}
	return false
}

func (a *aggregate) readsWide(x tsql.Expr) bool {
	if ref, ok := x.(*tsql.ColumnRef); ok {
		place, err := a.at.scope.find(ref)
		return err == nil && place >= 0 && storageBytes(a.at.scope.columns[place].typ) >= wideColumn
	}
	for _, child := range tsql.Children(x) {
		if a.readsWide(child) {
			return true
		}
	}
	return false
}
