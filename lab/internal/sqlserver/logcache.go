package sqlserver

import "vnuma.dev/lab/internal/cost"

func init() {
	addView("sys.dm_os_spinlock_stats", "", "name nvarchar(256), collisions bigint, spins bigint, backoffs bigint", spinlockStats)
}

// logCache are the counters of log writes since the boot.
type logCache struct {
	spins   float64 // on LOGCACHE_ACCESS
	inserts int64
	commits int64
	flushMS float64
}

func (l *logCache) book(c cost.InsertCost, inserts, commits int64) {
	l.spins += c.Spins
	l.inserts += inserts
	l.commits += commits
	l.flushMS += c.Flush / 1000
}

// Spins in the other columns, and the inserts' spins on other spinlocks wherever the log writer is: assumptions.
const (
	spinsPerCollision  = 250
	collisionsPerSleep = 10
)

var otherSpinlocks = []struct {
	name      string
	standing  int64
	perInsert float64
}{{"LOCK_HASH", 4200, 0.02}, {"LOGFLUSHQ", 900, 0.05}, {"SOS_OBJECT_STORE", 12_000, 0.001}, {"XDESMGR", 300, 0.4}}

func spinlockStats(v *viewContext) []viewRow {
	row := func(name string, spins int64) viewRow {
		collisions := spins / spinsPerCollision
		return viewRow{"name": name, "collisions": collisions, "spins": spins, "backoffs": collisions / collisionsPerSleep}
	}
	l := v.inst().logCache
	out := []viewRow{row("LOGCACHE_ACCESS", int64(l.spins))}
	for _, other := range otherSpinlocks {
		out = append(out, row(other.name, other.standing+int64(other.perInsert*float64(l.inserts))))
	}
	return out
}

// logWriters are the CPUs of the log writers: one up to 2014, since 2016 one per memory node, at most four. They run
// on hidden schedulers of node 0, unless the lab is set to spread them. The caller holds mu.
func (i *Instance) logWriters() []logWriter {
	count := 1
	if i.version.major >= 13 {
		count = min(max(i.topology.memoryNodes, 1), 4)
	}
	var out []logWriter
	for n := range count {
		node := 0
		if i.config.LogWritersSpread {
			node = n % max(i.topology.memoryNodes, 1)
		}
		cpus := i.boot.Nodes[node]
		out = append(out, logWriter{scheduler: hiddenScheduler + 1 + n, cpu: cpus[n%len(cpus)], memoryNode: node})
	}
	return out
}

// logWriter is one of the threads that write the log.
type logWriter struct{ scheduler, cpu, memoryNode int }

// farFromLogWriter is the share of the CPUs in use on another physical node than the log writer, averaged over all of
// them. The caller holds mu.
func (i *Instance) farFromLogWriter() float64 {
	far, pairs := 0, 0
	for _, w := range i.logWriters() {
		for n, cpus := range i.boot.Nodes {
			for _, cpu := range cpus {
				if !i.usable(cpu) {
					continue
				}
				pairs++
				if i.hostNode(n) != i.hostNode(w.memoryNode) {
					far++
				}
			}
		}
	}
	return float64(far) / float64(pairs)
}

// nodeOf is the SQL CPU node of a CPU. The caller holds mu.
func (i *Instance) nodeOf(cpu int) int {
	for n, node := range i.topology.nodes {
		for _, own := range node.cpus {
			if own == cpu {
				return n
			}
		}
	}
	return 0
}
