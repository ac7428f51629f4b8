package linux

import (
	"errors"
	"slices"

	"vnuma.dev/lab/internal/scenario"
)

// pageKB is the size of a page.
const pageKB = 4

// The memory policies of numactl(8).
type policyKind int

const (
	local      policyKind = iota // the reader's node first, then the others
	bind                         // only these nodes
	interleave                   // evenly over these nodes
)

type policy struct {
	kind  policyKind
	nodes []int // of local: the reader's node
}

// errNoMemory is what a program gets whose policy leaves it no page.
var errNoMemory = errors.New("Cannot allocate memory")

// memory is the page cache: which file has how much on which node, in KB.
type memory struct {
	hosts           []int // the physical node of each
	totalKB, usedKB []int64
	held            map[*entry][]int64
}

func newMemory(nodes []scenario.MachineNode, hosts []int) *memory {
	m := &memory{held: map[*entry][]int64{}, hosts: hosts}
	for number, node := range nodes {
		if hosts == nil {
			m.hosts = append(m.hosts, number)
		}
		m.totalKB = append(m.totalKB, int64(node.MemoryMB)*1024)
		m.usedKB = append(m.usedKB, int64(node.UsedMB)*1024)
	}
	return m
}

// filePagesKB is the memory of files on a node, and how much of it is of files that exist only in memory.
func (m *memory) filePagesKB(node int) (all, shared int64) {
	for file, by := range m.held {
		all += by[node]
		if file.inMemory {
			shared += by[node]
		}
	}
	return all, shared
}

func (m *memory) freeKB(node int) int64 {
	all, _ := m.filePagesKB(node)
	return m.totalKB[node] - m.usedKB[node] - all
}

// cachedKB is a file's size in the page cache.
func (m *memory) cachedKB(file *entry) int64 {
	var all int64
	for _, kb := range m.held[file] {
		all += kb
	}
	return all
}

// far is the share of a file's cached pages that are on other physical nodes than this node.
func (m *memory) far(file *entry, node int) float64 {
	all := m.cachedKB(file)
	if all == 0 {
		return 0
	}
	var near int64
	for other, kb := range m.held[file] {
		if m.hosts[other] == m.hosts[node] {
			near += kb
		}
	}
	return 1 - float64(near)/float64(all)
}

// drop frees the pages of files that are on a disk.
func (m *memory) drop() {
	for file := range m.held {
		if !file.inMemory {
			delete(m.held, file)
		}
	}
}

func (m *memory) forget(file *entry) { delete(m.held, file) }

// hold brings up to `bytes` more of a file into the cache and returns how many KB were added.
func (m *memory) hold(file *entry, bytes int64, by policy) (int64, error) {
	wanted := min((bytes+1023)/1024, (file.size+1023)/1024-m.cachedKB(file))
	wanted = (wanted + pageKB - 1) / pageKB * pageKB
	if wanted <= 0 {
		return 0, nil
	}
	if m.held[file] == nil {
		m.held[file] = make([]int64, len(m.totalKB))
	}
	left := wanted
	if by.kind == interleave {
		left = m.spread(file, left, by.nodes)
	}
	for _, node := range m.order(by) {
		left -= m.take(file, left, node)
	}
	if left > 0 {
		return wanted - left, errNoMemory
	}
	return wanted, nil
}

// order is the nodes in which pages are allocated, in order.
func (m *memory) order(by policy) []int {
	if by.kind == bind {
		return by.nodes
	}
	order := slices.Clone(by.nodes)
	for node := range m.totalKB {
		if !slices.Contains(order, node) {
			order = append(order, node)
		}
	}
	return order
}

// take uses up to `kb` of a node's free memory for a file.
func (m *memory) take(file *entry, kb int64, node int) int64 {
	taken := max(0, min(kb, m.freeKB(node)/pageKB*pageKB))
	m.held[file][node] += taken
	return taken
}

// spread puts pages on the nodes in turn, and returns how many KB did not fit.
func (m *memory) spread(file *entry, kb int64, nodes []int) int64 {
	left := kb
	for i, node := range nodes {
		share := left / int64(len(nodes)-i) / pageKB * pageKB
		if i == len(nodes)-1 {
			share = left
		}
		left -= m.take(file, share, node)
	}
	return left
}
