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
