// Package vmlog writes the vmware.log of a power-on: the lines on vNUMA in the form of each ESXi
// release, as in published logs, among a few others that every such file has.
package vmlog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vnuma.dev/lab/internal/vnuma"
)

// PowerOn is the content of one power-on's log.
type PowerOn struct {
	At      time.Time
	Release vnuma.Release
	Version string // such as 8.0.3
	Build   string
	Name    string

	VCPUs, Sockets, CoresPerSocket int
	MemoryMB                       int64
	Sizes                          []int // vCPUs of each vNUMA node
	Clients                        []int // vCPUs of each NUMA client, a physical domain
	HotAdd, ExposeOnHotAdd         bool
	ExtraConfig                    map[string]string // at the power-on
	Stored                         map[string]string // added by the power-on
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
	physical, domains := spread(p.Clients), len(p.Clients)
	for vcpu, node := range spread(p.Sizes) {
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
	w.line("numaHost: NUMA config: consolidation= %d preferHT= %d%s", p.flag("numa.consolidate", 1), p.flag("numa.vcpu.preferHT", 0), partition)
	if p.Release.AtLeast(8, 0) {
		w.line("numa: coresPerSocket = %d maxVcpusPerVPD = %d", p.CoresPerSocket, slices.Max(p.Sizes))
	}
	physical, domains := spread(p.Clients), len(p.Clients)
	w.line("numaHost: %d VCPUs %d VPDs %d PPDs", p.VCPUs, len(p.Sizes), domains)
	for vcpu, node := range spread(p.Sizes) {
		w.line("numaHost: VCPU %d VPD %d PPD %d%s", vcpu, node, physical[vcpu], mask)
	}
	if p.Release.AtLeast(8, 0) {
		w.line("numaHost: %d mem slices", domains)
	}
}

// flag is an advanced setting that is TRUE or FALSE, 1 or 0; not set it is the default.
func (p PowerOn) flag(name string, unset int) int {
	for key, value := range p.ExtraConfig {
		switch {
		case !strings.EqualFold(key, name):
		case strings.EqualFold(value, "TRUE") || value == "1":
			return 1
		default:
			return 0
		}
	}
	return unset
}

// spread is the part that each vCPU belongs to: sizes 2, 1 give 0 0 1.
func spread(sizes []int) []int {
	var parts []int
	for part, size := range sizes {
		parts = append(parts, slices.Repeat([]int{part}, size)...)
	}
	return parts
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
