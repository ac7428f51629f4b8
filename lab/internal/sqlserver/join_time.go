package sqlserver

import (
	"iter"
	"slices"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tsql"
)

// modelledTime is the cost model's time of a cross join of stored tables or of a large scan, after waiting for it; nil for
// any other statement.
func (b *batch) modelledTime(p plan, form cost.Form, passed time.Duration) *cost.Timing {
	if scan, over := largeScanOf(p); scan != nil {
		return b.paced(b.s.inst.scanTime(scan, over), passed)
	}
	cross, aggregated := storedProduct(p)
	if cross == nil {
		return nil
	}
	if aggregated && form == cost.Client {
		form = cost.Server
	}
	timing := b.s.inst.crossJoin(form, cross.outerRows, cross.innerRows)
	if form == cost.Client {
		b.s.waitForClient(timing, cross.outerRows*cross.innerRows)
	}
	return b.paced(timing, passed)
}

// paced waits for what is left of a modelled time, if the lab simulates in real time.
func (b *batch) paced(timing cost.Timing, passed time.Duration) *cost.Timing {
	b.s.inst.pace(time.Duration(timing.Elapsed)*time.Millisecond-passed, b.ctx.Done())
	return &timing
}

// slowed is a modelled time with this boot's fault. The caller holds mu.
func (i *Instance) slowed(t cost.Timing) cost.Timing {
	if slow := i.boot.Faults.SlowFactor; slow > 0 {
		return t.Scaled(slow)
	}
	return t
}

// along yields a plan, what it reads, and so on, as long as each reads one other.
func along(p plan) iter.Seq[plan] {
	return func(yield func(plan) bool) {
		for yield(p) {
			inputs := p.inputs()
			if len(inputs) != 1 {
				return
			}
			p = inputs[0]
		}
	}
}

// within reports whether a plan, or one below it, is such a one.
func within[T plan](p plan) bool {
	_, is := p.(T)
	return is || slices.ContainsFunc(p.inputs(), within[T])
}

// storedProduct finds the cross product of stored tables below a plan, and whether it is aggregated.
func storedProduct(p plan) (cross *crossPlan, aggregated bool) {
	for at := range along(p) {
		switch at := at.(type) {
		case *aggregatePlan:
			aggregated = true
		case *crossPlan:
			if within[*scanPlan](at.left) && within[*scanPlan](at.right) {
				return at, aggregated
			}
		}
	}
	return nil, false
}

// crossJoin is the modelled time of one more cross join on this boot.
func (i *Instance) crossJoin(form cost.Form, outer, inner int64) cost.Timing {
	i.mu.Lock()
	defer i.mu.Unlock()
	run := i.nextRun()
	run.Outer, run.Inner, run.Form = outer, inner, form
	return i.slowed(i.config.Cost.CrossJoin(run))
}

// nextRun identifies one more execution on this boot for the cost model. The caller holds i.mu.
func (i *Instance) nextRun() cost.Run {
	remote, placed := i.remoteShare()
	run := cost.Run{
		Placed: placed, RemoteShare: remote, Seed: i.config.Seed, VM: i.boot.VM, Boot: i.boot.Number, Iteration: i.joins,
		Guest: cost.Guest{Nodes: len(i.boot.Nodes), Sockets: i.boot.Sockets, CoresPerSocket: i.boot.CoresPerSocket},
	}
	i.joins++
	return run
}

// rowsPerPacket is approximately how many joined rows fill a packet of 4 KB.
const rowsPerPacket = 20

// waitForClient adds the part of the elapsed time that was no CPU time to the waits for the network.
func (s *Session) waitForClient(t cost.Timing, rows int64) {
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	s.networkWaits += rows/rowsPerPacket + 1
	s.networkWaitMS += max(t.Elapsed-t.CPU, 0)
}

// largeScan is the size in bytes from which on a scan's time is modelled: about the last-level cache of one processor;
// below it the lab's actual time is good enough.
const largeScan = 16 << 20

// wideColumn is the size in bytes from which on reading a column counts as reading its whole row.
const wideColumn = 256

// largeScanOf finds an aggregate over the whole of a large memory-optimised table; nil for any other plan.
func largeScanOf(p plan) (*scanPlan, *aggregatePlan) {
	for at := range along(p) {
		if over, ok := at.(*aggregatePlan); ok {
			scan := scanOf(over.input)
			if scan == nil || over.grouped || !scan.table.memoryOptimized || scan.bytes() < largeScan {
				return nil, nil
			}
			return scan, over
		}
	}
	return nil, nil
}

// scanTime is the modelled time of one more large scan on this boot.
func (i *Instance) scanTime(scan *scanPlan, over *aggregatePlan) cost.Timing {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.slowed(i.config.Cost.Scan(cost.Scan{Rows: int64(scan.rows.rows), Bytes: scan.bytes(), Dense: over.readsWide(), Run: i.nextRun()}))
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
func (p *aggregatePlan) readsWide() (wide bool) {
	for _, a := range p.aggregates {
		tsql.Walk(a.call, func(x tsql.Expr) bool {
			if ref, ok := x.(*tsql.ColumnRef); ok {
				place := a.at.scope.find(ref)
				wide = wide || place >= 0 && storageBytes(a.at.scope.columns[place].typ) >= wideColumn
			}
			return true
		})
	}
	return wide
}
