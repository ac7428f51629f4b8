package cost

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
