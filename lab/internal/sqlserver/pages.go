package sqlserver

import (
	"slices"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tds"
)

const (
	pageBytes     = 8060 // of rows in a data page
	pageRowHeader = 11   // bytes of a row in addition to its values
	pageKB        = 8
	rowSample     = 64 // rows whose length represents all
)

// bufferPool is the location of the pages of disk-based tables: for each table, how many on each memory node. A
// boot starts with it empty.
type bufferPool struct {
	pages   map[*table][]int64
	lookups []lookups // by memory node of the worker
}

// lookups count pages that a worker found on its own memory node, and on others.
type lookups struct{ local, remote int64 }

func newBufferPool(memoryNodes int) bufferPool {
	return bufferPool{pages: map[*table][]int64{}, lookups: make([]lookups, max(memoryNodes, 1))}
}

// forget drops the pages of a database, as taking it offline does. The caller holds Instance.mu.
func (p *bufferPool) forget(db *database) {
	for t := range p.pages {
		if t.db == db {
			delete(p.pages, t)
		}
	}
}

// dropBuffers empties the buffer pool; the lab has no dirty pages.
func (i *Instance) dropBuffers() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.pool.pages)
}

// on is how many pages lie on a memory node.
func (p *bufferPool) on(node int) (n int64) {
	for t, pages := range p.pages {
		if t.db.tables[fold(t.schema+"."+t.name)] == t && node < len(pages) {
			n += pages[node]
		}
	}
	return n
}

// pages is the size of a table on disk; 0 for one without pages.
func (t *table) pages() int64 {
	if t.db == nil || t.db.system() || t.memoryOptimized {
		return 0
	}
	rows := t.rows
	if t.repeated != nil {
		rows = t.repeated.rows
	}
	if rows.rows == 0 {
		return 0
	}
	buffer := make([]any, len(rows.cells))
	var bytes, seen int64
	for row := range min(rows.rows, rowSample) {
		rows.read(row, buffer)
		bytes, seen = bytes+rowBytes(buffer, t), seen+1
	}
	perPage := max(pageBytes*seen/bytes, 1)
	return (t.count() + perPage - 1) / perPage
}

// rowBytes is the length of a row; text counts one byte per character, as varchar does.
func rowBytes(row []any, t *table) int64 {
	n := pageRowHeader
	for i, v := range row {
		switch v := v.(type) {
		case string:
			n += tds.LenUTF16(v)
		case nil:
		default:
			n += max(storageBytes(t.columns[i].typ), 0)
		}
	}
	return int64(n)
}

// read loads a table's missing pages to a memory node and looks up all of them from there. A node takes no
// more than its target; the rest goes to the next ones. The caller holds Instance.mu.
func (i *Instance) read(t *table, node int) (seen lookups) {
	pages := i.pool.pages[t]
	if pages == nil {
		pages = make([]int64, max(i.topology.memoryNodes, 1))
		i.pool.pages[t] = pages
	}
	missing := t.pages()
	for _, n := range pages {
		missing -= n
	}
	if elsewhere := i.boot.Faults.ForeignPages; elsewhere > 0 && missing > 0 && len(pages) > 1 {
		foreign := int64(float64(missing) * min(elsewhere, 1))
		pages[(node+1)%len(pages)] += foreign
		missing -= foreign
	}
	for step := 0; missing > 0 && step < len(pages); step++ {
		at := (node + step) % len(pages)
		room := max(i.targetKB()/int64(len(pages))/pageKB-i.pool.on(at), 0)
		placed := min(missing, room)
		pages[at] += placed
		missing -= placed
	}
	for n, count := range pages {
		if n == node {
			seen.local += count
		} else {
			seen.remote += count
		}
	}
	elsewhere := i.boot.Faults.ForeignLookups
	toRemote, toLocal := int64(float64(seen.local)*elsewhere), int64(float64(seen.remote)*elsewhere)
	i.pool.lookups[node].local += seen.local - toRemote + toLocal
	i.pool.lookups[node].remote += seen.remote - toLocal + toRemote
	return seen
}

// pageTime is the cost model's time of a statement that aggregates disk-based tables of a user's database,
// after waiting for as long if the lab simulates in real time; nil for any other statement.
func (b *batch) pageTime(p plan, passed time.Duration) *cost.Timing {
	if !readsWhole(p) {
		return nil
	}
	timing, ok := b.s.inst.scanned(b.s, diskTables(p, nil))
	if !ok {
		return nil
	}
	return b.paced(timing, passed)
}

// readsWhole reports whether a plan, or one below it, groups or counts rows, and so reads whole tables.
func readsWhole(p plan) bool { return within[*aggregatePlan](p) }

// diskTables are the stored tables that a plan reads.
func diskTables(p plan, found []*table) []*table {
	switch p := p.(type) {
	case *scanPlan:
		found = append(found, p.table)
	case *repeatedPlan:
		found = append(found, p.table)
	}
	for _, in := range p.inputs() {
		found = diskTables(in, found)
	}
	return found
}

// scanned is the modelled time of one more scan by a session; ok reports whether any table has pages.
func (i *Instance) scanned(s *Session, tables []*table) (timing cost.Timing, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	tables = slices.DeleteFunc(tables, func(t *table) bool { return t.pages() == 0 })
	if len(tables) == 0 {
		return timing, false
	}
	node := i.memoryNode(s)
	r := cost.PageRun{Streams: 1, Seed: i.config.Seed, VM: i.boot.VM, Boot: i.boot.Number, Stream: s.stream,
		Execution: i.scans[s.stream], CPUs: i.cpusOn(node)}
	for _, t := range tables {
		seen := i.read(t, node)
		r.Local += seen.local
		for n, count := range i.pool.pages[t] {
			if n != node && i.hostNode(n) != i.hostNode(node) {
				r.Remote += count
			} else if n != node {
				r.Local += count // another virtual node on the same physical one
			}
		}
	}
	if s.mapped {
		r.Streams = i.busy(node)
	}
	i.scans[s.stream]++
	return i.slowed(i.config.Cost.Pages(r)), true
}

// busy counts the sessions that mapped ports assigned to a memory node: each counts as one stream.
func (i *Instance) busy(node int) (n int) {
	for _, s := range i.sessions {
		if s.mapped && i.memoryNode(s) == node {
			n++
		}
	}
	return max(n, 1)
}

// cpusOn are the schedulers in use on a memory node.
func (i *Instance) cpusOn(node int) (n int) {
	for _, cpus := range i.topology.nodes {
		if cpus.memoryNode == node {
			n += i.onlineCPUs(cpus)
		}
	}
	return max(n, 1)
}
