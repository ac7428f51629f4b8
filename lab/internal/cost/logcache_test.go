package cost

import (
	"math"
	"testing"
)

func inserting(native bool, inserts int64, remote float64) Inserting {
	return Inserting{Inserts: inserts, Sessions: 10, Remote: remote, Native: native, Seed: 1, VM: "sql16", Boot: 1}
}

// Ten sessions take the published times, and spin as often as published.
func TestAdkinsFigures(t *testing.T) {
	m := Default()
	for _, c := range []struct {
		native              bool
		inserts             int64
		near, far, moreSpin float64
	}{{false, 5_000_000, 55, 85, 4.5}, {true, 2_500_000, 10.434, 18.388, 6_692_284_057.0 / 113_246_628}} {
		near, far := m.ExpectedInserting(inserting(c.native, c.inserts, 0)), m.ExpectedInserting(inserting(c.native, c.inserts, 1))
		if s := near.Elapsed / 1e6; math.Abs(s/c.near-1) > 0.002 {
			t.Errorf("native %v: %g s beside the log writer, published %g", c.native, s, c.near)
		}
		if s := far.Elapsed / 1e6; math.Abs(s/c.far-1) > 0.002 {
			t.Errorf("native %v: %g s away from it, published %g", c.native, s, c.far)
		}
		if ratio := far.Spins / near.Spins; math.Abs(ratio/c.moreSpin-1) > 0.002 {
			t.Errorf("native %v: %g times the spins, published %g", c.native, ratio, c.moreSpin)
		}
	}
	spins := 10 * m.ExpectedInserting(inserting(true, 2_500_000, 0)).Spins
	if math.Abs(spins/113_246_628-1) > 0.002 {
		t.Errorf("%g spins beside the log writer, published 113,246,628", spins)
	}
}

// Without any effect it does not matter where the log writer is.
func TestNoEffectOfTheLogWritersPlace(t *testing.T) {
	m := Default()
	m.Effect = None
	if near, far := m.Inserting(inserting(true, 1000, 0)), m.Inserting(inserting(true, 1000, 1)); near != far {
		t.Errorf("near %+v, far %+v", near, far)
	}
}

// Waiting for the log at every commit hides most of what the spinlock costs.
func TestFullDurabilityHidesTheSpinlock(t *testing.T) {
	m := Default()
	ratio := func(commits int64) float64 {
		near, far := inserting(false, 1000, 0), inserting(false, 1000, 1)
		near.Commits, far.Commits = commits, commits
		return m.ExpectedInserting(far).Elapsed / m.ExpectedInserting(near).Elapsed
	}
	if delayed, full := ratio(0), ratio(1000); delayed < 1.5 || full > 1.1 {
		t.Errorf("ratios are %g delayed and %g fully durable", delayed, full)
	}
}

// Half of the CPUs on the other node cost half of the difference.
func TestTheDifferenceGrowsWithTheShareOfRemoteCPUs(t *testing.T) {
	m := Default()
	near, half, far := m.ExpectedInserting(inserting(false, 1000, 0)), m.ExpectedInserting(inserting(false, 1000, 0.5)), m.ExpectedInserting(inserting(false, 1000, 1))
	if want := (near.Elapsed + far.Elapsed) / 2; math.Abs(half.Elapsed/want-1) > 1e-9 {
		t.Errorf("half way it takes %g, want %g", half.Elapsed, want)
	}
}
