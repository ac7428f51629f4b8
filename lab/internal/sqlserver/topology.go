package sqlserver

import (
	"fmt"
	"math/rand/v2"

	"vnuma.dev/lab/internal/guest"
)

// topology is SQL Server's view of the guest: its nodes, schedulers and the licence limit.
type topology struct {
	nodes       []cpuNode // SQL CPU nodes: vNUMA nodes, or soft-NUMA nodes within them
	memoryNodes int       // vNUMA nodes
	soft        bool      // soft-NUMA split at least one node
	online      map[int]bool
	xtpShare    []float64 // share of the memory-optimised pages on each memory node
}

// cpuNode is one SQLOS node with its CPUs.
type cpuNode struct {
	memoryNode int
	cpus       []int
}

// softNUMALimit is the number of cores above which automatic soft-NUMA splits a node; the parts have
// five to nine cores, ideally eight (Microsoft, "Soft-NUMA (SQL Server)").
const (
	softNUMALimit  = 8
	leastSoftCores = 5
)

// softNodes is the number of soft-NUMA nodes into which a node with this many cores is split.
func softNodes(cores int) int {
	parts := (cores + softNUMALimit - 1) / softNUMALimit
	if parts > 1 && cores/parts < leastSoftCores {
		parts--
	}
	return max(parts, 1)
}

// layout derives the topology of a boot. The caller holds mu.
func (i *Instance) layout(b guest.Boot) topology {
	t := topology{memoryNodes: len(b.Nodes)}
	for m, cpus := range b.Nodes {
		parts := 1
		if i.softNUMA {
			parts = softNodes(len(cpus))
		}
		t.soft = t.soft || parts > 1
		for p := range parts {
			node := cpuNode{memoryNode: m}
			for k := p; k < len(cpus); k += parts { // soft nodes interleave the CPUs
				node.cpus = append(node.cpus, cpus[k])
			}
			t.nodes = append(t.nodes, node)
		}
	}
	t.online = i.licensed(b)
	t.xtpShare = xtpPlacement(len(b.Nodes), i.config.Seed, b.Number)
	return t
}

// licensed is the set of CPUs that the edition may use: whole sockets first, then a number of cores.
func (i *Instance) licensed(b guest.Boot) map[int]bool {
	sockets, cores := licenceLimit(i.engineEdition(), i.version.major)
	online := map[int]bool{}
	for _, cpus := range b.Nodes {
		for _, cpu := range cpus {
			socket := 0
			if b.CoresPerSocket > 0 {
				socket = cpu / b.CoresPerSocket
			}
			if (sockets == 0 || socket < sockets) && (cores == 0 || len(online) < cores) {
				online[cpu] = true
			}
		}
	}
	return online
}

// licenceLimit is "the lesser of" sockets and cores of an edition; 0 = no limit.
func licenceLimit(engineEdition int64, major int) (sockets, cores int) {
	switch {
	case engineEdition == 2 && major >= 17:
		return 4, 32
	case engineEdition == 2 && major >= 13:
		return 4, 24
	case engineEdition == 2:
		return 4, 16
	case engineEdition == 4:
		return 1, 4
	}
	return 0, 0
}

// xtpPlacement decides where recovery put the memory-optimised pages: mostly on one node, random per boot.
func xtpPlacement(nodes int, seed int64, boot int) []float64 {
	share := make([]float64, nodes)
	draw := rand.New(rand.NewPCG(uint64(seed), uint64(boot)<<8|3))
	home := draw.IntN(nodes)
	most := 1.0
	if nodes > 1 {
		most = 0.85 + 0.15*draw.Float64()
	}
	for n := range share {
		share[n] = (1 - most) / float64(max(nodes-1, 1))
	}
	share[home] = most
	return share
}

// mask is the CPU mask of a node.
func (n cpuNode) mask() int64 {
	var m int64
	for _, cpu := range n.cpus {
		m |= 1 << (cpu % 64)
	}
	return m
}

// errorLog are the lines of the error log on the topology.
func (i *Instance) errorLog() []string {
	b := i.boot
	lines := []string{
		i.banner(),
		"System Manufacturer: 'VMware, Inc.', System Model: 'VMware Virtual Platform'.",
		fmt.Sprintf("SQL Server detected %d sockets with %d cores per socket and %d logical processors per socket, %d total logical "+
			"processors; using %d logical processors based on SQL Server licensing. This is an informational message; no user "+
			"action is required.", b.Sockets, b.CoresPerSocket, b.CoresPerSocket, b.VCPUs, len(i.topology.online)),
		fmt.Sprintf("Detected %d MB of RAM. This is an informational message; no user action is required.", b.MemoryMB),
	}
	if i.topology.soft {
		lines = append(lines, "Automatic soft-NUMA was enabled because SQL Server has detected hardware NUMA nodes with greater "+
			"than 8 physical cores.")
	}
	for n, node := range i.topology.nodes {
		lines = append(lines, fmt.Sprintf("Node configuration: node %d: CPU mask: 0x%016x:0 Active CPU mask: 0x%016x:0. This message "+
			"provides a description of the NUMA configuration for this computer. This is an informational message only. No user "+
			"action is required.", n, node.mask(), node.mask()))
	}
	return append(lines, "SQL Server is now ready for client connections. This is an informational message; no user action is required.")
}
