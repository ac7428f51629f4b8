package cost

import (
	"math"
	"sort"
	"testing"
)

var arms = []Guest{{1, 1, 16}, {2, 2, 8}, {4, 4, 4}, {8, 8, 2}, {1, 16, 1}}

func run(n int64, form Form, g Guest, seed int64, boot, iteration int) Run {
	return Run{Outer: n, Inner: n, Form: form, Guest: g, Seed: seed, VM: "sql16", Boot: boot, Iteration: iteration}
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

// The medians over many seeds are those of Table 1, arm by arm and size by size.
func TestPaperMediansAreTable1(t *testing.T) {
	m := Default()
	for i, size := range sizes {
		for j, guest := range arms {
			var times []float64
			for seed := range int64(801) {
				times = append(times, float64(m.CrossJoin(run(int64(size), Client, guest, seed, 1, 0)).Elapsed))
			}
			if got, want := median(times), table1[i][j]; math.Abs(got/want-1) > 0.003 {
				t.Errorf("%g rows, %+v: median %.0f ms, want %.0f ms", size, guest, got, want)
			}
		}
	}
}

// Without noise, scenario null gives every arm the same time, and drift only grows with the boot.
func TestNullAndDriftHaveNoTopologyEffect(t *testing.T) {
	for name, drift := range map[string]float64{"null": 0, "drift": 0.009} {
		m := Default()
		m.Effect, m.DriftPerBoot, m.BootSD, m.IterationSD = None, drift, 0, 0
		first := m.CrossJoin(run(1000, Client, arms[0], 1, 1, 0)).Elapsed
		for _, guest := range arms {
			if got := m.CrossJoin(run(1000, Client, guest, 1, 1, 0)).Elapsed; got != first {
				t.Errorf("%s: %+v took %d ms, the first arm %d ms", name, guest, got, first)
			}
		}
		fifth := m.CrossJoin(run(1000, Client, arms[0], 1, 5, 0)).Elapsed
		if want := math.Exp(4 * m.DriftPerBoot); math.Abs(float64(fifth)/float64(first)/want-1) > 1e-4 {
			t.Errorf("%s: fifth boot / first boot = %g, want %g", name, float64(fifth)/float64(first), want)
		}
	}
}

// On the default of ESXi 8 a guest with one node takes the same time whatever its cores per socket.
func TestCoresPerSocketAloneIsCosmeticOnESXi8(t *testing.T) {
	m := Default()
	m.Effect = Nodes
	want := m.Expected(run(2000, Client, arms[0], 1, 1, 0))
	if got := m.Expected(run(2000, Client, Guest{1, 16, 1}, 1, 1, 0)); got != want {
		t.Errorf("16x1 on one node: %g ms, want %g ms", got, want)
	}
	if got := m.Expected(run(2000, Client, arms[3], 1, 1, 0)); got <= want {
		t.Errorf("eight nodes: %g ms, want more than %g ms", got, want)
	}
}

// The server form is about 12% of the client form and shows a larger relative effect; into lies between.
func TestFormsOfTheJoin(t *testing.T) {
	m := Default()
	ratio := func(form Form) (base, effect float64) {
		base = m.Expected(run(3000, form, arms[0], 1, 1, 0))
		return base, m.Expected(run(3000, form, arms[4], 1, 1, 0)) / base
	}
	client, clientEffect := ratio(Client)
	server, serverEffect := ratio(Server)
	into, intoEffect := ratio(Into)
	if share := server / client; math.Abs(share-0.12) > 1e-9 {
		t.Errorf("server form is %g of the client form, want 0.12", share)
	}
	if !(server < into && into < client) || !(serverEffect > intoEffect && intoEffect > clientEffect) {
		t.Errorf("times %g %g %g, effects %g %g %g are not in order", client, into, server, clientEffect, intoEffect, serverEffect)
	}
}

// The spread between boots and between iterations is what the model says.
func TestNoiseHasTheStatedSize(t *testing.T) {
	m := Default()
	sd := func(draw func(i int) Run) float64 {
		var sum, squares float64
		const n = 4000
		for i := range n {
			x := math.Log(m.noise(draw(i)))
			sum += x
			squares += x * x
		}
		return math.Sqrt(squares/n - sum/n*sum/n)
	}
	within := sd(func(i int) Run { return run(500, Client, arms[0], 7, 1, i) })
	total := sd(func(i int) Run { return run(500, Client, arms[0], 7, i+1, 0) })
	if math.Abs(within/0.003-1) > 0.05 || math.Abs(total/(0.003*math.Sqrt2)-1) > 0.05 {
		t.Errorf("SD within a boot %g, over boots %g", within, total)
	}
}

// Times grow with the size, also between and outside the sizes of the paper, and a run repeats exactly.
func TestTimeGrowsWithSizeAndRepeats(t *testing.T) {
	m := Default()
	last := 0.0
	for n := int64(1); n < 20000; n += 37 {
		ms := m.Expected(run(n, Client, arms[2], 1, 1, 0))
		if ms <= last {
			t.Fatalf("%d rows take %g ms, fewer rows %g ms", n, ms, last)
		}
		last = ms
	}
	r := run(750, Server, arms[1], 3, 2, 5)
	if first := m.CrossJoin(r); m.CrossJoin(r) != first {
		t.Error("the same run took two different times")
	}
}

// Outliers appear at their rate and with their factor.
func TestOutliers(t *testing.T) {
	m := Default()
	m.BootSD, m.IterationSD, m.OutlierRate = 0, 0, 0.1
	slow := 0
	for i := range 2000 {
		if m.noise(run(500, Client, arms[0], 1, 1, i)) > 1.29 {
			slow++
		}
	}
	if slow < 140 || slow > 260 {
		t.Errorf("%d of 2000 iterations are outliers, want about 200", slow)
	}
}

// A model from a scenario file is checked before it is used.
func TestValidate(t *testing.T) {
	m := Default()
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	m.BootSD, m.Calls.WorkerUS, m.LogCache.FlushUS, m.FileCache.PathGBs = -1, 0.05, 2e6, math.NaN()
	want := "cost: boot_sd = -1 is not within 0..1; calls.worker_us = 0.05 is not within 0.1..1e+06; " +
		"log_cache.flush_us = 2e+06 is not within 0..1e+06; file_cache.path_gb_s = NaN is not within 0.001..100000"
	if err := m.Validate(); err == nil || err.Error() != want {
		t.Errorf("impossible values: %v", err)
	}
}

// A scenario's section changes what it names, keeps the rest and refuses unknown keys.
func TestFromYAML(t *testing.T) {
	m, err := FromYAML([]byte("effect: none\ndrift_per_boot: 0.009\n"))
	want := Default()
	want.Effect, want.DriftPerBoot = None, 0.009
	if err != nil || m != want {
		t.Errorf("read %+v, %v", m, err)
	}
	if m, err := FromYAML(nil); err != nil || m != Default() {
		t.Errorf("an empty section gives %+v, %v", m, err)
	}
	if _, err := FromYAML([]byte("efect: none\n")); err == nil {
		t.Error("a misspelt key was accepted")
	}
}
