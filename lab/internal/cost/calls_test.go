package cost

import (
	"math"
	"testing"
)

func rate(m Model, l Load) float64 { return 1e6 / m.Call(l).Interval }

// Chang's figures: 16 processors in four cells serve 17,000 calls/s, four processors more than twice as many.
func TestFourProcessorsServeMoreThanTwiceTheCallsOfSixteenInFourCells(t *testing.T) {
	m := Default()
	four := rate(m, Load{Callers: 20, CPUs: 4})
	sixteen := rate(m, Load{Callers: 20, CPUs: 16, OtherNodes: 0.75})
	if four/sixteen <= 2 || math.Abs(sixteen/17000-1) > 0.02 {
		t.Errorf("4 processors: %.0f calls/s, 16: %.0f", four, sixteen)
	}
}

// One processor of an Itanium to two is 13.5k to 16.5k, and four are no faster.
func TestASecondProcessorBringsAFifthAndTheNextNothing(t *testing.T) {
	m := Default()
	one, two, four := rate(m, Load{Callers: 40, CPUs: 1}), rate(m, Load{Callers: 40, CPUs: 2}), rate(m, Load{Callers: 40, CPUs: 4})
	if math.Abs(two/one/(16.5/13.5)-1) > 0.01 || math.Abs(four/two-1) > 0.01 {
		t.Errorf("1, 2, 4 processors: %.0f, %.0f, %.0f calls/s", one, two, four)
	}
}

// A seek costs 15% more than no operation.
func TestASeekCostsAFewPercentMore(t *testing.T) {
	m := Default()
	noop, seek := m.Call(Load{Callers: 20, CPUs: 4}), m.Call(Load{Callers: 20, CPUs: 4, Reads: true})
	if got := (seek.Interrupt + seek.Worker) / (noop.Interrupt + noop.Worker); math.Abs(got-1.15) > 0.005 {
		t.Errorf("a seek costs %.3f of a call without one", got)
	}
}

// Without an effect of the topology the nodes do not matter.
func TestCallsWithoutEffect(t *testing.T) {
	m := Default()
	m.Effect = None
	four, sixteen := rate(m, Load{Callers: 20, CPUs: 4}), rate(m, Load{Callers: 20, CPUs: 16, OtherNodes: 0.75})
	if math.Abs(four/sixteen-1) > 1e-9 {
		t.Errorf("4 processors: %g calls/s, 16: %g", four, sixteen)
	}
}

// More callers never make fewer calls, and no rate passes what the interrupted CPU can do.
func TestRatesGrowToTheNarrowestPlace(t *testing.T) {
	m := Default()
	last := 0.0
	for callers := 1; callers <= 64; callers++ {
		got := rate(m, Load{Callers: callers, CPUs: 16, OtherNodes: 0.5})
		if got < last*(1-1e-9) || got > 1e6/m.Call(Load{Callers: 1, CPUs: 16, OtherNodes: 0.5}).Interrupt*(1+1e-9) {
			t.Errorf("%d callers: %g calls/s after %g", callers, got, last)
		}
		last = got
	}
}
