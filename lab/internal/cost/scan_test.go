package cost

import (
	"math"
	"testing"
)

func TestAScanFeelsTheDistanceToMemoryMoreThanACrossJoin(t *testing.T) {
	paper, null := Default(), Default()
	null.Effect = None
	one := Scan{Rows: 512 << 10, Bytes: 1 << 30, Run: Run{Guest: Guest{Nodes: 1, Sockets: 1, CoresPerSocket: 16}}}
	eight := one
	eight.Run.Guest = Guest{Nodes: 8, Sockets: 8, CoresPerSocket: 2}

	join := paper.ratio(scanSize, eight.Run.Guest) - 1
	scan := paper.ExpectedScan(eight)/paper.ExpectedScan(one) - 1
	if math.Abs(scan-4*join) > 1e-9 {
		t.Errorf("a scan on 8 nodes takes %.4f longer, not 4 x %.4f", scan, join)
	}
	if null.ExpectedScan(eight) != null.ExpectedScan(one) {
		t.Error("without an effect the topology changes a scan")
	}
}

func TestReadingEveryByteTakesLongerAndFeelsLess(t *testing.T) {
	m := Default()
	run := Run{Guest: Guest{Nodes: 2, Sockets: 2, CoresPerSocket: 8}, Placed: true, RemoteShare: 1}
	sparse := Scan{Rows: 512 << 10, Bytes: 1 << 30, Run: run}
	dense := sparse
	dense.Dense = true
	near := func(s Scan) Scan { s.Run.RemoteShare = 0; return s }

	if m.ExpectedScan(dense) <= m.ExpectedScan(sparse) {
		t.Error("every byte is read faster than a few lines of each row")
	}
	far := func(s Scan) float64 { return m.ExpectedScan(s) / m.ExpectedScan(near(s)) }
	if far(sparse) <= far(dense) || far(dense) <= 1 {
		t.Errorf("remote memory costs %.3f sparse and %.3f dense", far(sparse), far(dense))
	}
}
