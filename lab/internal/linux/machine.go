// Package linux simulates a Linux machine with several NUMA nodes: its page cache by node, the programs and kernel
// files that a study of the page cache uses, a POSIX shell, and an SSH server.
//
// Where pages are follows the kernel's documented policies (numa_memory_policy, numactl(8)); how long a read takes
// comes from the cost model. Nothing of the machine that the lab runs on is read or changed.
package linux

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
)

// Config is a machine's state when the lab starts.
type Config struct {
	scenario.Machine

	Scenario  string
	HostNodes []int  // the physical nodes of a VM's nodes; nil: each node is its own
	UUID      string // of the VM's firmware; empty: none is shown
	Cost      cost.Model
	Seed      int64
}

// Machine is one running machine.
type Machine struct {
	config  Config
	started time.Time
	boot    string // the kernel's number of this boot

	mu      sync.Mutex
	changed *sync.Cond // a named pipe got a line, or a program ended
	memory  *memory
	root    *entry
	nextPID int
	running map[int]*process
	passed  time.Duration // simulated time since the start beyond real time
	passes  int           // how often the caches were dropped
	reads   int           // commands that have read a file since then

	writtenBytes int // of its files
	pipeWait     time.Duration
}

// New is a machine that has just started.
func New(config Config) *Machine {
	m := &Machine{config: config, started: time.Now(), boot: uuid.NewString(), memory: newMemory(config.Nodes, config.HostNodes), nextPID: 400, running: map[int]*process{}, pipeWait: longestPipe}
	m.changed = sync.NewCond(&m.mu)
	m.root = m.files()
	m.root.fix()
	return m
}

// uptime is the machine's clock for a process that is `ahead` of it.
func (m *Machine) uptime(ahead time.Duration) string {
	seconds := (time.Since(m.started) + ahead).Seconds() + 420 // it has been up for 7 minutes
	return fmt.Sprintf("%.2f %.2f\n", seconds, seconds*float64(len(m.config.Nodes)))
}

// stat is the CPUs' time in ticks of 10 ms, all of it idle: the machine runs nothing else.
func (m *Machine) stat(ahead time.Duration) string {
	ticks := int64((time.Since(m.started)+ahead).Seconds()*100) * int64(m.cpus())
	return fmt.Sprintf("cpu  100 0 100 %d 0 0 0 0 0 0\n", ticks)
}

// dropCaches is a write to /proc/sys/vm/drop_caches, and starts a pass.
func (m *Machine) dropCaches(string) error {
	m.memory.drop()
	m.passes++
	m.reads = 0
	if m.config.OtherReader != nil {
		m.root.each(func(file *entry) {
			m.memory.hold(file, file.size, policy{kind: local, nodes: []int{*m.config.OtherReader}})
		})
	}
	return nil
}

// cpuList is a node's CPUs as the kernel lists them.
func (m *Machine) cpuList(node int) string {
	first := 0
	for _, before := range m.config.Nodes[:node] {
		first += before.CPUs
	}
	return span(first, first+m.config.Nodes[node].CPUs-1)
}

// nodeList is all nodes as the kernel lists them.
func (m *Machine) nodeList() string { return span(0, len(m.config.Nodes)-1) }

func span(first, last int) string {
	switch {
	case last < first:
		return ""
	case first == last:
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// distances are those of a node, as in the firmware's table of a machine with one hop between packages.
func (m *Machine) distances(node int) string {
	row := make([]string, len(m.config.Nodes))
	for other := range row {
		row[other] = "20"
		if other == node {
			row[other] = "10"
		}
	}
	return strings.Join(row, " ")
}

// usedShare is the part of a guest's memory that its programs use.
const usedShare = 16

// Guest is the machine inside a VM: it starts anew with the nodes of each boot. Its disk stays; its kernel settings and
// page cache do not.
type Guest struct {
	config Config
	server *Server

	mu      sync.Mutex
	machine *Machine
}

// NewGuest reserves the address on which its SSH server listens while the VM is on.
func NewGuest(config Config, address, folder string, log *slog.Logger) (*Guest, error) {
	server, err := newServer(config.Name, address, folder, log)
	if err != nil {
		return nil, err
	}
	return &Guest{config: config, server: server}, nil
}

// Start boots it with the VM's shape.
func (g *Guest) Start(boot guest.Boot) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if boot.Faults.NeverListens {
		return nil
	}
	config := g.config
	config.UUID, config.HostNodes, config.Nodes = boot.UUID, boot.HostNodes, nil
	for _, vcpus := range boot.Nodes {
		memory := int(boot.MemoryMB) * len(vcpus) / boot.VCPUs
		config.Nodes = append(config.Nodes, scenario.MachineNode{CPUs: len(vcpus), MemoryMB: memory, UsedMB: memory / usedShare})
	}
	next := New(config)
	if g.machine != nil {
		next.root.children["var"] = g.machine.root.children["var"]
	}
	g.machine = next
	return g.server.listen(next)
}

// Pause is that of its server, as Resume is.
func (g *Guest) Pause() { g.server.Pause() }

// Resume ends a pause, if there is one.
func (g *Guest) Resume() { g.server.Resume() }

// Stop switches it off: its connections break.
func (g *Guest) Stop() {
	g.server.Resume()
	g.server.Close()
}

// Audit is empty: a shell's commands are not kept.
func (g *Guest) Audit() guest.Audit { return guest.Audit{} }

// Addr is where its SSH server listens.
func (g *Guest) Addr() string { return g.server.address }

// Server has the key and the file of known hosts with which a client logs in.
func (g *Guest) Server() *Server { return g.server }

// firmwareUUID is a VM's UUID as Linux shows it: the first three fields are little-endian since SMBIOS 2.6.
func firmwareUUID(vm string) string {
	id, err := uuid.Parse(vm)
	if err != nil {
		return vm
	}
	for _, field := range [][2]int{{0, 4}, {4, 6}, {6, 8}} {
		for i, j := field[0], field[1]-1; i < j; i, j = i+1, j-1 {
			id[i], id[j] = id[j], id[i]
		}
	}
	return id.String()
}
