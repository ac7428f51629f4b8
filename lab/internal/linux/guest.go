package linux

import (
	"log/slog"
	"sync"

	"github.com/google/uuid"

	"vnuma.dev/lab/internal/guest"
)

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
		config.Nodes = append(config.Nodes, Node{CPUs: len(vcpus), MemoryMB: memory, UsedMB: memory / usedShare})
	}
	next := New(config)
	if g.machine != nil {
		next.root.children["var"] = g.machine.root.children["var"]
	}
	g.machine = next
	return g.server.listen(next)
}

// Pause makes it answer neither logins nor commands, until Resume or Stop.
func (g *Guest) Pause() { g.server.pause() }

// Resume ends a pause, if there is one.
func (g *Guest) Resume() { g.server.resume() }

// Stop switches it off: its connections break.
func (g *Guest) Stop() {
	g.server.resume()
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
