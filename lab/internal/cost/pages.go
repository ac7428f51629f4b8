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

// FileCache gives the time to read files on a Linux machine: from the page cache of the reader's node, from another
// node's, or from disk.
type FileCache struct {
	LocalGBs      float64 `yaml:"local_gb_s" within:"0.001 1e4"` // one reader, pages on its own node
	RemotePenalty float64 `yaml:"remote_penalty" within:"0 100"` // added time when all pages are on other nodes
	PathGBs       float64 `yaml:"path_gb_s" within:"0.001 1e5"`  // all readers of a node together, from that node's pages
	DiskGBs       float64 `yaml:"disk_gb_s"`                     // data outside the page cache
	WriteGBs      float64 `yaml:"write_gb_s"`                    // writing zeros to a file
}

// Closson (2009): 1,472,114,768 bytes in 0.244703 s from the node that held them and 0.30021 s from the other; zeros
// were written at 1.0 GB/s. The path's width and the disk are assumptions, as the text does not give them.
func defaultFileCache() FileCache {
	return FileCache{LocalGBs: 6.016, RemotePenalty: 0.30021/0.244703 - 1, PathGBs: 18, DiskGBs: 0.1, WriteGBs: 1}
}

// FileRead is one read of a file, or of a part of it.
type FileRead struct {
	Cached, FromDisk int64   // bytes
	Far              float64 // share of the cached bytes on other nodes than the reader
	Readers          int     // number that read from the same node at the same time, including this one
	Seed             int64
	Machine          string
	Pass, Read, Part int // number of the pass since the start, of its read, and of that read's part
}

// ReadFile is the time of a read in seconds. Readers of one node share its path to memory evenly.
func (m Model) ReadFile(r FileRead) float64 {
	rate := min(m.FileCache.LocalGBs, m.FileCache.PathGBs/float64(max(r.Readers, 1))) * 1e9
	cached := float64(r.Cached) / rate
	if m.Effect != None {
		cached *= 1 + m.FileCache.RemotePenalty*r.Far
	}
	disk := float64(r.FromDisk) / (m.FileCache.DiskGBs * 1e9)
	return (cached + disk) * m.deviation(r.Seed, r.Machine, "file", r.Pass, r.Read, r.Part)
}
