// Package vmlog writes vmware.log as a power-on leaves it: the lines on vNUMA in the form of each ESXi
// release, as published logs show them, among a few others that every such file has.
package vmlog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vnuma.dev/lab/internal/vnuma"
)

// PowerOn is what one power-on has to tell.
type PowerOn struct {
	At      time.Time
	Release vnuma.Release
	Version string // such as 8.0.3
	Build   string
	Name    string

	VCPUs, Sockets, CoresPerSocket int
	MemoryMB                       int64
	Sizes                          []int // vCPUs of each vNUMA node
	CoresPerNode                   int   // of the host
	HotAdd, ExposeOnHotAdd         bool
	ExtraConfig                    map[string]string // as the power-on found it
	Stored                         map[string]string // what the power-on then stored
}

// Text is the log of that power-on.
func Text(p PowerOn) string {
	w := &writer{at: p.At.UTC(), release: p.Release}
	w.line("Log for VMware ESX pid=2100127 version=%s build=build-%s option=Release", p.Version, p.Build)
	w.line("Hostname=localhost")
	p.dictionary(w)
	if p.Release.AtLeast(6, 5) {
		p.layout(w)
	} else {
		p.oldLayout(w)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Stored)) {
		w.line("ConfigDB: Setting %s = %q", key, p.Stored[key])
	}
	w.line("NumVCPUs %d", p.VCPUs)
	w.line("PowerOn")
	return w.text.String()
}

// dictionary is the configuration. Keys that ESXi sizes itself are still those of the power-on before.
func (p PowerOn) dictionary(w *writer) {
	w.setting("displayName", p.Name)
	w.setting("numvcpus", fmt.Sprint(p.VCPUs))
	w.setting("memSize", fmt.Sprint(p.MemoryMB))
	w.setting("cpuid.coresPerSocket", fmt.Sprint(p.CoresPerSocket))
	if p.HotAdd {
		w.setting("vcpu.hotadd", "TRUE")
	}
	for _, key := range slices.Sorted(maps.Keys(p.ExtraConfig)) {
		w.setting(key, p.ExtraConfig[key])
	}
}

// oldLayout is the form up to 6.0.
func (p PowerOn) oldLayout(w *writer) {
	switch {
	case p.CoresPerSocket == 1 && len(p.Sizes) > 1:
		w.line("numa: Exposing multicore topology with cpuid.coresPerSocket = %d is suggested for best performance", p.Sizes[0])
	case p.CoresPerSocket > 1 && p.CoresPerSocket == p.Sizes[0]:
		w.line("numa: Setting.vcpu.maxPerVirtualNode=%d to match cpuid.coresPerSocket", p.CoresPerSocket)
	}
	physical, domains := p.physical()
	for vcpu, node := range p.nodes() {
		w.line("numa: VCPU %d: VPD %d (PPD %d)", vcpu, node, physical[vcpu])
	}
	w.line("numaHost: %d virtual nodes, %d virtual sockets, %d physical domains", len(p.Sizes), p.Sockets, domains)
}

// layout is the form since 6.5, with what 7.0 and 8.0 added to it.
func (p PowerOn) layout(w *writer) {
	if p.Release.AtLeast(7, 0) && p.HotAdd && !p.ExposeOnHotAdd {
		w.line("numa: Hot add is enabled and vNUMA hot add is disabled, forcing UMA.")
	}
	partition, mask := "", ""
	if p.Release.AtLeast(8, 0) {
		partition, mask = " partitionByMemory = 0", " NodeMask ffffffffffffffff"
	}
	w.line("numaHost: NUMA config: consolidation= 1 preferHT= %d%s", p.preferHT(), partition)
	if p.Release.AtLeast(8, 0) {
		w.line("numa: coresPerSocket = %d maxVcpusPerVPD = %d", p.CoresPerSocket, slices.Max(p.Sizes))
	}
	physical, domains := p.physical()
	w.line("numaHost: %d VCPUs %d VPDs %d PPDs", p.VCPUs, len(p.Sizes), domains)
	for vcpu, node := range p.nodes() {
		w.line("numaHost: VCPU %d VPD %d PPD %d%s", vcpu, node, physical[vcpu], mask)
	}
	if p.Release.AtLeast(8, 0) {
		w.line("numaHost: %d mem slices", domains)
	}
}

func (p PowerOn) preferHT() int {
	for key, value := range p.ExtraConfig {
		if strings.EqualFold(key, "numa.vcpu.preferHT") && (strings.EqualFold(value, "TRUE") || value == "1") {
			return 1
		}
	}
	return 0
}

// nodes is the vNUMA node of each vCPU.
func (p PowerOn) nodes() []int {
	var nodes []int
	for node, size := range p.Sizes {
		nodes = append(nodes, slices.Repeat([]int{node}, size)...)
	}
	return nodes
}

// physical is the physical domain of each vCPU, and how many there are: one for each vNUMA node, more
// for a node that is larger than a node of the host.
func (p PowerOn) physical() ([]int, int) {
	var domains []int
	next := 0
	for _, size := range p.Sizes {
		parts := (size + p.CoresPerNode - 1) / p.CoresPerNode
		for vcpu := range size {
			domains = append(domains, next+vcpu*parts/size)
		}
		next += parts
	}
	return domains, next
}

// writer puts the release's prefix before each line.
type writer struct {
	text    strings.Builder
	at      time.Time
	release vnuma.Release
}

func (w *writer) line(format string, arguments ...any) {
	source := "| vmx| I125: "
	switch {
	case w.release.AtLeast(8, 0):
		source = " In(05) vmx - "
	case w.release.AtLeast(7, 0):
		source = "| vmx| I005: "
	}
	w.text.WriteString(w.at.Format("2006-01-02T15:04:05.000Z") + source + fmt.Sprintf(format, arguments...) + "\n")
	w.at = w.at.Add(37 * time.Microsecond)
}

func (w *writer) setting(key, value string) { w.line("DICT %24s = %q", key, value) }
