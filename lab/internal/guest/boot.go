// Package guest holds what a power-on hands from vSphere to the software inside the VM.
package guest

import "time"

// Boot is what one power-on gave the guest: decided from the configuration at that moment.
type Boot struct {
	VM             string
	Number         int // 1 for the first power-on of this lab's VM
	PoweredOnAt    time.Time
	UpFor          time.Duration // how long it had been up when the lab began
	VCPUs          int
	Sockets        int
	CoresPerSocket int
	MemoryMB       int64
	Nodes          [][]int // vNUMA nodes: vCPU numbers of each
	Affinity       []int32 // logical CPUs, nil = none
	FullyReserved  bool
	HostNodes      []int  // physical NUMA node behind each vNUMA node, as placed
	Faults         Faults // SQL-side faults that hit this boot
}

// Faults are the failures of SQL Server that a scenario injects into one boot.
type Faults struct {
	NeverListens       bool    // port stays closed
	RefuseLogins       int     // number of the message that refuses every login, 0 = none
	DropAfterRows      int64   // >0: connection is cut in the middle of a result after so many rows
	SlowFactor         float64 // >0: every timing multiplied
	DatabaseRecovering bool    // user databases never ONLINE
	ForeignPages       float64 // share of the pages read that land on another memory node than the reader's
	ForeignLookups     float64 // share of the page lookups that are counted on the other side
	PortsElsewhere     bool    // mapped ports lead to the nodes that their masks do not name
}

// LoginCount is how often an account logged in, was refused, and was locked for being refused too often.
type LoginCount struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Locked    int `json:"locked"`
}

// LoginCounter is a service that counts the logins of each account since the lab began.
type LoginCounter interface{ Logins() map[string]LoginCount }

// Worker is a service that works without real time: Passed is how far that has moved its guest's clock in this boot.
type Worker interface{ Passed() time.Duration }

// Service is what runs inside a guest: started at the end of a boot, stopped at power-off.
type Service interface {
	// Start opens the listener (same address every time); state on disk survives.
	Start(Boot) error
	// Stop closes the listener and every connection at once.
	Stop()
	// Audit is what clients have asked since the lab began.
	Audit() Audit
	// Addr is host:port, fixed for the VM's life, known before the first Start.
	Addr() string
}

// Audit is what a service's clients have asked for: how many requests, and each statement that is not only a read.
type Audit struct {
	Logins   int64    `json:"logins"`
	Requests int64    `json:"requests"`
	Changes  []string `json:"changes"` // in order; the latest of them are left out when there are too many
}
