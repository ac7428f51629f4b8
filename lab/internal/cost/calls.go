package cost

import (
	"math"
)

// Calls is the model of short calls over the network: a closed loop of callers, each of which sends its next call
// when the last one is answered. A call takes time in transit, on the one CPU that handles the network card's
// interrupts, and on a worker. If the worker and that CPU are on different vNUMA nodes, handing over the call makes
// its interrupt work more expensive, so that this CPU saturates earlier.
//
// The figures are Chang's (2005): 16 processors in four cells served 17,000 calls/s with one CPU near 100%, four
// processors more than twice as many; one processor of an Itanium served 13,500, two 16,500, four no more; a seek
// cost 15% more than no operation. The microseconds are chosen to reproduce those figures.
type Calls struct {
	InterruptUS  float64 `yaml:"interrupt_us" within:"0.1 1e6"` // a call's work on the interrupted CPU, if its worker is on the same node
	WorkerUS     float64 `yaml:"worker_us" within:"0.1 1e6"`    // a call's work on a worker
	SeekUS       float64 `yaml:"seek_us"`                       // added by a read of a table
	TransitUS    float64 `yaml:"transit_us"`                    // network and client, while nothing in the server waits
	Handover     float64 `yaml:"handover" within:"0 100"`       // by how much interrupt work grows if all workers are on other nodes
	OthersPerSec float64 `yaml:"others_per_sec"`                // requests of other clients, which cost nothing in this model
}

// DefaultCalls are the values of scenario chang2005.
func DefaultCalls() Calls {
	return Calls{InterruptUS: 27, WorkerUS: 6, SeekUS: 5, TransitUS: 120, Handover: 1.6}
}

// Load is what calls a server and what the server answers with.
type Load struct {
	Callers    int     // connections that call without pause
	CPUs       int     // schedulers in use
	OtherNodes float64 // share of them on other vNUMA nodes than the interrupted CPU
	Reads      bool    // the procedure reads a table
}

// CallTimes is what one call of a load takes, in microseconds, without noise.
type CallTimes struct {
	Interval  float64 // between two calls: a second divided by the rate
	Interrupt float64 // CPU time on the interrupted CPU
	Worker    float64 // CPU time on a worker
}

// Call computes a load's times by mean value analysis of a closed network with one queue at the bottleneck:
// the interrupted CPU, or all CPUs together (Reiser and Lavenberg, 1980).
func (m Model) Call(l Load) CallTimes {
	c := m.Calls
	t := CallTimes{Interrupt: c.InterruptUS, Worker: c.WorkerUS}
	if m.Effect != None {
		t.Interrupt *= 1 + c.Handover*l.OtherNodes
	}
	if l.Reads {
		t.Worker += c.SeekUS
	}
	all := t.Interrupt + t.Worker
	narrowest := math.Max(t.Interrupt, all/float64(max(l.CPUs, 1)))
	elsewhere := c.TransitUS + all - math.Min(narrowest, all)
	queue, rate := 0.0, 0.0
	for k := 1; k <= max(l.Callers, 1); k++ {
		response := narrowest * (1 + queue)
		rate = float64(k) / (elsewhere + response)
		queue = rate * response
	}
	t.Interval = 1 / rate
	return t
}

// CallNoise is the factor on the intervals of one load: the boot's effect and the load's own.
func (m Model) CallNoise(seed int64, vm string, boot, load int) float64 {
	return m.noise(Run{Seed: seed, VM: vm, Boot: boot, Iteration: load})
}
