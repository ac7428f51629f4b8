// Package guest describes what a power-on passes from vSphere to the software inside the VM.
package guest

import (
	"sync"
	"time"
)

// Boot is what the guest got at one power-on, decided from the configuration at that moment.
type Boot struct {
	VM             string
	UUID           string // of its firmware
	Number         int    // 1 for the first power-on of this lab's VM
	PoweredOnAt    time.Time
	UpFor          time.Duration // how long it had been up when the lab started
	VCPUs          int
	Sockets        int
	CoresPerSocket int
	MemoryMB       int64
	Nodes          [][]int // vNUMA nodes: vCPU numbers of each
	Affinity       []int32 // logical CPUs, nil = none
	FullyReserved  bool
	HostNodes      []int  // physical NUMA node of each vNUMA node
	Faults         Faults // SQL-side faults of this boot
}

// Faults are the failures of SQL Server that a scenario injects into one boot.
type Faults struct {
	NeverListens       bool          // port stays closed
	RefuseLogins       int           // number of the message that refuses every login, 0 = none
	DropAfterRows      int64         // >0: connection is cut in the middle of a result after this many rows
	SlowFactor         float64       // >0: factor on every timing
	DatabaseRecovering bool          // user databases are not ONLINE
	RecoversAfter      time.Duration // of SQL Server's start; 0: never
	ForeignPages       float64       // share of the pages read that go to another memory node than the reader's
	ForeignLookups     float64       // share of the page lookups that are counted for the wrong node
	PortsElsewhere     bool          // mapped ports lead to other nodes than their masks name
}

// LoginCount is how often an account logged in, was refused, and was locked out after too many refusals.
type LoginCount struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Locked    int `json:"locked"`
}

// LoginCounter is a service that counts the logins of each account since the lab began.
type LoginCounter interface{ Logins() map[string]LoginCount }

// Worker is a service on simulated time: Passed is how far it has advanced its guest's clock in this boot.
type Worker interface{ Passed() time.Duration }

// Service is what runs inside a guest: started at the end of a boot, stopped at power-off.
type Service interface {
	// Start opens the listener (the same address every time); state on disk is kept.
	Start(Boot) error
	// Pause makes it answer nothing, as in a VM that vSphere stops; connections stay open. Resume ends that.
	Pause()
	Resume()
	// Stop closes the listener and every connection at once.
	Stop()
	// Audit is what clients have asked for since the lab started.
	Audit() Audit
	// Addr is host:port, fixed for the VM's life, known before the first Start.
	Addr() string
}

// Audit is what a service's clients have asked for: how many requests, and each statement that is more than a read.
type Audit struct {
	Logins   int64    `json:"logins"`
	Requests int64    `json:"requests"`
	Changes  []string `json:"changes"` // in order; the latest are left out when there are too many
}

// Gate holds up during a pause what waits at it.
type Gate struct {
	mu     sync.Mutex
	paused chan struct{} // closed at its end; nil = not paused
}

// Pause begins a pause, if there is none.
func (g *Gate) Pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused == nil {
		g.paused = make(chan struct{})
	}
}

// Resume ends a pause, if there is one.
func (g *Gate) Resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused != nil {
		close(g.paused)
		g.paused = nil
	}
}

// Await returns at once unless there is a pause.
func (g *Gate) Await() {
	g.mu.Lock()
	paused := g.paused
	g.mu.Unlock()
	if paused != nil {
		<-paused
	}
}
