package sqlserver

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/tsql"
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

// bind stores ALTER SERVER CONFIGURATION SET PROCESS AFFINITY: schedulers outside of it go offline at once,
// without a restart, and it is kept over restarts. NUMANODE means memory nodes here. The caller holds mu.
func (i *Instance) bind(value string, line int) {
	bound, err := i.cpusOf(value)
	if err != nil {
		panic(tsql.Errorf(5832, line, "The affinity mask specified does not match the CPU mask on this system."))
	}
	i.affinity, i.bound = value, bound
}

// cpusOf is the set of CPUs that an affinity allows; nil = all of them.
func (i *Instance) cpusOf(value string) (map[int]bool, error) {
	kind, list, _ := strings.Cut(value, "=")
	if value == "" || list == "AUTO" {
		return nil, nil
	}
	bound := map[int]bool{}
	for _, part := range strings.Split(list, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "TO")
		if !ranged {
			to = from
		}
		first, err1 := strconv.Atoi(strings.TrimSpace(from))
		last, err2 := strconv.Atoi(strings.TrimSpace(to))
		if err1 != nil || err2 != nil || first > last {
			return nil, fmt.Errorf("%q is no range", part)
		}
		for n := first; n <= last; n++ {
			cpus := []int{n}
			if kind == "NUMANODE" {
				if n >= len(i.boot.Nodes) {
					return nil, fmt.Errorf("node %d does not exist", n)
				}
				cpus = i.boot.Nodes[n]
			} else if n >= i.boot.VCPUs {
				return nil, fmt.Errorf("there is no CPU %d", n)
			}
			for _, cpu := range cpus {
				bound[cpu] = true
			}
		}
	}
	return bound, nil
}

// usable reports whether licence and affinity permit work on a CPU.
func (i *Instance) usable(cpu int) bool {
	return i.topology.online[cpu] && (i.bound == nil || i.bound[cpu])
}

// usableSchedulers are the ids of the schedulers that are in use, in order.
func (i *Instance) usableSchedulers() []int {
	var ids []int
	id := 0
	for _, node := range i.topology.nodes {
		for _, cpu := range node.cpus {
			if i.usable(cpu) {
				ids = append(ids, id)
			}
			id++
		}
	}
	return ids
}

// boundNode is the one memory node in the affinity, -1 if there are several.
func (i *Instance) boundNode() int {
	found := -1
	for n, cpus := range i.boot.Nodes {
		for _, cpu := range cpus {
			if i.bound[cpu] && found != n {
				if found >= 0 {
					return -1
				}
				found = n
			}
		}
	}
	return found
}

// place puts the pages of memory-optimised rows on the node of the worker that inserts them, if the
// affinity has only one; otherwise they stay as the boot placed them.
func (i *Instance) place() {
	node := i.boundNode()
	if i.bound == nil || node < 0 {
		return
	}
	for n := range i.topology.xtpShare {
		i.topology.xtpShare[n] = 0
	}
	i.topology.xtpShare[node] = 1
}

// remoteShare is the share of memory-optimised pages on other physical nodes than the one
// memory node in the affinity; ok reports whether there is such a node.
func (i *Instance) remoteShare() (share float64, ok bool) {
	worker := i.boundNode()
	if i.bound == nil || worker < 0 {
		return 0, false
	}
	for n, pages := range i.topology.xtpShare {
		if i.hostNode(n) != i.hostNode(worker) {
			share += pages
		}
	}
	return share, true
}

// hostNode is the physical node of a vNUMA node; nodes that were not placed count as separate.
func (i *Instance) hostNode(node int) int {
	if node < len(i.boot.HostNodes) {
		return i.boot.HostNodes[node]
	}
	return node
}
