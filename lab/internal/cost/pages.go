package cost

import "math"

// PageRun identifies one scan of disk-based tables whose pages are all in the buffer pool.
type PageRun struct {
	Local, Remote int64 // pages on the worker's physical node and on others
	Streams       int   // sessions that scan at the same time on the worker's memory node
	CPUs          int   // schedulers of that node
	Seed          int64
	VM            string
	Boot          int // number of the power-on
	Stream        int // which of the sessions
	Execution     int // scans of that stream since the boot
}

// saturation is the number of streams at which remote pages cost most, as in the published study.
const saturation = 32

// Pages is the time of one scan. A page costs PageMicros of CPU time on the worker's node and, at `saturation`
// streams, PagePenalty more on another; with fewer or more streams the penalty falls as the square root of
// the ratio. Streams share the node's CPUs evenly.
func (m Model) Pages(r PageRun) Timing {
	pages := float64(r.Local + r.Remote)
	ms := pages * m.PageMicros / 1000 * m.pagePenalty(r) * m.deviation(r.Seed, r.VM, "scan", r.Boot, r.Stream, r.Execution)
	return Milliseconds(ms, ms*math.Max(1, float64(r.Streams)/float64(max(r.CPUs, 1))))
}

func (m Model) pagePenalty(r PageRun) float64 {
	pages := r.Local + r.Remote
	if pages == 0 || m.Effect == None {
		return 1
	}
	streams := float64(max(r.Streams, 1))
	load := math.Sqrt(math.Min(streams/saturation, saturation/streams))
	return 1 + m.PagePenalty*load*float64(r.Remote)/float64(pages)
}
