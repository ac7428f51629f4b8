package cost

import "math"

// LogCache is the cost of a transaction that writes to the log: its own work, and the cache line of the
// LOGCACHE_ACCESS spinlock, which moves to the log writer's CPU and back. Each of the sessions that insert at the
// same time has to wait while the line moves to every other.
//
// Adkin (2014) gives the totals: 10 sessions, 55 and 85 s for 5,000,000 transactions of two rows each, 10.434 and
// 18.388 s for 2,500,000 rows each in a natively compiled procedure; 4.5 and 59 times the spins. How the time
// splits into work and transfers is an assumption: a transfer takes 40 ns within a socket and 100 ns to another.
type LogCache struct {
	HopLocalNS        float64 `yaml:"hop_local_ns"`  // a transfer of the line within one physical node
	HopRemoteNS       float64 `yaml:"hop_remote_ns"` // a transfer from one node to another
	DiskWorkUS        float64 `yaml:"disk_work_us"`  // an INSERT in interpreted T-SQL, without the line
	DiskLines         float64 `yaml:"disk_lines"`    // how often it takes the line
	DiskSpins         float64 `yaml:"disk_spins"`    // spins per INSERT with the log writer on the same node
	DiskSpinsRemote   float64 `yaml:"disk_spins_remote"`
	NativeWorkUS      float64 `yaml:"native_work_us"` // the same in natively compiled procedures
	NativeLines       float64 `yaml:"native_lines"`
	NativeSpins       float64 `yaml:"native_spins"`
	NativeSpinsRemote float64 `yaml:"native_spins_remote"` // factor on them with the log writer on another node
	FlushUS           float64 `yaml:"flush_us"`            // waiting for the log to be written, fully durable
}

func defaultLogCache() LogCache {
	return LogCache{
		HopLocalNS: 40, HopRemoteNS: 100,
		DiskWorkUS: 7, DiskLines: 10, DiskSpins: 20, DiskSpinsRemote: 4.5,
		NativeWorkUS: 2.054, NativeLines: 5.3, NativeSpins: 4.53, NativeSpinsRemote: 59.1,
		FlushUS: 120,
	}
}

// Inserting identifies what one session inserts in a loop. With the same seed, the same Inserting takes the same time.
type Inserting struct {
	Inserts   int64
	Sessions  int     // that insert at the same time
	Commits   int64   // of them durable before they return; 0 with delayed durability
	Remote    float64 // share of the workers' CPUs on another physical node than the log writer
	Native    bool
	Seed      int64
	VM        string
	Boot      int
	Iteration int // loads since that boot
}

// InsertCost is one session's time, and what it adds to the server's counters.
type InsertCost struct {
	Elapsed float64 // microseconds
	Flush   float64 // of them, waiting for the log
	Spins   float64
}

// Inserting is the cost of one session's part.
func (m Model) Inserting(l Inserting) InsertCost {
	c := m.ExpectedInserting(l)
	noise := m.noise(Run{Seed: l.Seed, VM: l.VM, Boot: l.Boot, Iteration: l.Iteration})
	return InsertCost{Elapsed: c.Elapsed * noise, Flush: c.Flush * noise, Spins: math.Round(c.Spins * noise)}
}

// ExpectedInserting is Inserting without noise and drift. With effect none every node counts as local.
func (m Model) ExpectedInserting(l Inserting) InsertCost {
	k := m.LogCache
	work, lines, spins, far := k.DiskWorkUS, k.DiskLines, k.DiskSpins, k.DiskSpinsRemote
	if l.Native {
		work, lines, spins, far = k.NativeWorkUS, k.NativeLines, k.NativeSpins, k.NativeSpinsRemote
	}
	remote := l.Remote
	if m.Effect == None {
		remote = 0
	}
	hop := k.HopLocalNS + remote*(k.HopRemoteNS-k.HopLocalNS)
	each := work + float64(max(l.Sessions, 1))*lines*hop/1000
	flush := float64(l.Commits) * k.FlushUS
	return InsertCost{
		Elapsed: float64(l.Inserts)*each + flush, Flush: flush,
		Spins: float64(l.Inserts) * spins * (1 + remote*(far-1)),
	}
}
