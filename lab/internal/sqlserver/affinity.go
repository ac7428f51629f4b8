package sqlserver

import (
	"fmt"
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

// bind stores ALTER SERVER CONFIGURATION SET PROCESS AFFINITY: schedulers outside of it go offline at once,
// without a restart, and it is kept over restarts. NUMANODE means memory nodes here. The caller holds mu.
func (i *Instance) bind(value string, line int) error {
	bound, err := i.cpusOf(value)
	if err != nil {
		return tsql.Errorf(5832, line, "The affinity mask specified does not match the CPU mask on this system.")
	}
	i.affinity = value
	i.bound = bound
	return nil
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
					return nil, fmt.Errorf("there is no node %d", n)
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
