package cost

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Form is how the result of a cross join is consumed.
type Form string

// Forms.
const (
	Client Form = "client" // every row is sent to the client
	Server Form = "server" // aggregated on the server
	Into   Form = "into"   // written to a table
)

// Guest is the topology that the guest effectively has.
type Guest struct {
	Nodes          int // vNUMA nodes
	Sockets        int
	CoresPerSocket int
}

// Run identifies one execution: the same Run always takes the same time under the same seed.
type Run struct {
	Outer, Inner int64 // rows of either side
	Form         Form
	Guest        Guest
	Seed         int64
	VM           string
	Boot         int // number of the power-on
	Iteration    int // executions of cross joins since that boot

	// Placed: process affinity keeps the worker on one memory node, and RemoteShare of the tables' pages is
	// on other physical nodes. Otherwise both are left to chance, and the topology's effect includes them.
	Placed      bool
	RemoteShare float64
}

// Timing is what SET STATISTICS TIME reports, in whole milliseconds, and the same in microseconds as in
// sys.dm_exec_query_stats.
type Timing struct{ CPU, Elapsed, CPUMicros, ElapsedMicros int64 }

// Milliseconds converts milliseconds to a Timing; only the microseconds keep fractions.
func Milliseconds(cpu, elapsed float64) Timing {
	return Timing{CPU: int64(math.Round(cpu)), Elapsed: int64(math.Round(elapsed)),
		CPUMicros: int64(math.Round(cpu * 1000)), ElapsedMicros: int64(math.Round(elapsed * 1000))}
}

// Scaled multiplies a timing by a factor.
func (t Timing) Scaled(factor float64) Timing {
	return Milliseconds(float64(t.CPUMicros)/1000*factor, float64(t.ElapsedMicros)/1000*factor)
}

// CrossJoin is the time of one execution.
func (m Model) CrossJoin(r Run) Timing {
	ms := m.Expected(r) * m.noise(r)
	return Milliseconds(ms*m.CPUShare, ms)
}

// Expected is the time in milliseconds without noise and drift.
func (m Model) Expected(r Run) float64 {
	n := math.Sqrt(float64(r.Outer) * float64(r.Inner))
	effect := m.ratio(n, r.Guest) - 1
	if r.Placed {
		effect = m.placed(n, r) - 1
	}
	switch r.Form {
	case Server:
		return baseMS(n) * m.ServerShare * (1 + m.ServerEffect*effect)
	case Into:
		return baseMS(n) * m.IntoShare * (1 + m.IntoEffect*effect)
	default:
		return baseMS(n) * (1 + effect)
	}
}

func (m Model) ratio(n float64, g Guest) float64 {
	nodes := float64(max(g.Nodes, 1))
	switch m.Effect {
	case Paper:
		p := math.Log2(nodes)
		if g.CoresPerSocket == 1 { // the paper's 16x1: many sockets, however many nodes
			p = math.Max(p, math.Log2(float64(max(g.Sockets, 1))))
		}
		return paperRatio(n, p)
	case Nodes:
		return paperRatio(n, math.Log2(nodes))
	case Remote:
		return 1 + m.RemotePenalty*(1-1/nodes)
	default:
		return 1
	}
}

// placed is the ratio for a pinned worker and placed pages: the penalty by the share of remote pages.
// In scenario remote it replaces the topology's average effect; without any effect it is 1.
func (m Model) placed(n float64, r Run) float64 {
	penalty := 1 + m.RemotePenalty*r.RemoteShare
	switch m.Effect {
	case None:
		return 1
	case Remote:
		return penalty
	default:
		return m.ratio(n, r.Guest) * penalty
	}
}

// noise is the factor of one execution: boot effect, iteration noise, drift and outliers.
func (m Model) noise(r Run) float64 {
	return m.deviation(r.Seed, r.VM, "iteration", r.Boot, r.Iteration)
}

// deviation is the noise of one draw within a boot.
func (m Model) deviation(seed int64, vm, draw string, boot int, numbers ...int) float64 {
	whole := random(seed, vm, "boot", boot)
	iteration := random(seed, vm, draw, append([]int{boot}, numbers...)...)
	log := whole.NormFloat64()*m.BootSD + iteration.NormFloat64()*m.IterationSD
	log += m.DriftPerBoot * float64(max(boot-1, 0))
	if iteration.Float64() < m.OutlierRate {
		log += math.Log(m.OutlierFactor)
	}
	return math.Exp(log)
}

// random is a generator for one named draw, so that no draw depends on the order of the others.
func random(seed int64, vm, draw string, numbers ...int) *rand.Rand {
	h := fnv.New128a()
	word := func(n int64) {
		_ = binary.Write(h, binary.LittleEndian, n) // a hash's Write never fails
	}
	word(seed)
	h.Write([]byte(vm + "\x00" + draw))
	for _, n := range numbers {
		word(int64(n))
	}
	sum := h.Sum(nil)
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])))
}

// The times of scans of memory-optimised rows are an assumption of the lab, for want of published figures.
const (
	sparseMSPerRow  = 0.25e-3     // a few cache lines of a row, each from memory
	denseMSPerByte  = 1e3 / 1.6e9 // every byte, 1.6 GB/s for one worker
	denseShare      = 0.6         // of the effect: prefetching hides part of the latency
	scanEffectShare = 4           // effect of a scan / of the client's cross join, which stays in the CPU cache
	scanSize        = 2000        // rows a side at which Table 1's ratio is taken
)

// Scan is one aggregate over a whole table that exceeds every cache. Dense reads every byte of its rows, otherwise
// only a few cache lines of each are read.
type Scan struct {
	Rows, Bytes int64
	Dense       bool
	Run         Run // guest, seed, boot, iteration and placement; its sides and form are ignored
}

// Scan is the time of one execution.
func (m Model) Scan(s Scan) Timing {
	ms := m.ExpectedScan(s) * m.noise(s.Run)
	return Milliseconds(ms, ms)
}

// ExpectedScan is the time in milliseconds without noise and drift.
func (m Model) ExpectedScan(s Scan) float64 {
	effect := m.ratio(scanSize, s.Run.Guest) - 1
	if s.Run.Placed {
		effect = m.placed(scanSize, s.Run) - 1
	}
	if m.Effect == Paper || m.Effect == Nodes {
		effect *= scanEffectShare
	}
	if s.Dense {
		return float64(s.Bytes) * denseMSPerByte * (1 + denseShare*effect)
	}
	return float64(s.Rows) * sparseMSPerRow * (1 + effect)
}

// sizes are the rows per side of Table 1.
var sizes = [...]float64{500, 1000, 2000, 3000}

// table1 holds median elapsed milliseconds: a row per size, a column per arm 1x16, 2x8, 4x4, 8x2, 16x1.
var table1 = [len(sizes)][5]float64{
	{4994, 5003, 5017, 5093, 5130},
	{19354, 19590, 19906, 19965, 20350},
	{76592, 76920, 78152, 78487, 79324},
	{173080, 173126, 175256, 176099, 178193},
}

// baseMS is the time of the client form on one node with n rows per side. Between the sizes of the
// paper the time per output row is interpolated over log n; outside them it is constant.
func baseMS(n float64) float64 {
	var perRow [len(sizes)]float64
	for i, size := range sizes {
		perRow[i] = table1[i][0] / (size * size)
	}
	return interpolate(perRow[:], n) * n * n
}

// paperRatio is the time at arm position p (0 = one node ... 4 = sixteen) over that at position 0.
// Positions between the paper's arms (3 or 6 nodes) are interpolated; beyond 4 the ratio is constant.
func paperRatio(n, p float64) float64 {
	var ratio [len(sizes)]float64
	low := int(math.Min(math.Floor(p), 3))
	part := math.Min(p-float64(low), 1)
	for i, row := range table1 {
		ratio[i] = (row[low]*(1-part) + row[low+1]*part) / row[0]
	}
	return interpolate(ratio[:], n)
}

// interpolate reads a value given at the sizes of the paper, linear in log n, constant outside.
func interpolate(values []float64, n float64) float64 {
	if n <= sizes[0] {
		return values[0]
	}
	for i := 1; i < len(sizes); i++ {
		if n <= sizes[i] {
			part := math.Log(n/sizes[i-1]) / math.Log(sizes[i]/sizes[i-1])
			return values[i-1]*(1-part) + values[i]*part
		}
	}
	return values[len(values)-1]
}
