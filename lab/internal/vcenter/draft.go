package vcenter

import (
	"maps"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

// draft is the part of a VM's configuration that a reconfigure may change. A reconfigure edits a
// copy, checks the result as a whole and then publishes it: all or nothing.
type draft struct {
	name, annotation, guestID string

	vcpus, perSocket int32
	autoPerSocket    bool
	threads          int32
	memoryMB         int64
	cpuHotAdd        bool
	memoryHotAdd     bool
	cpuAffinity      []int32
	memoryAffinity   []int32
	memory, cpu      types.ResourceAllocationInfo
	locked           bool
	latency          types.LatencySensitivitySensitivityLevel
	coresPerNode     int32 // 0 = automatic
	exposeOnHotAdd   bool
	rebootOff        bool
	extraConfig      map[string]string // keys to set, empty = to remove
	sentReservation  bool
}

func (m *machine) draft() draft {
	c := m.Config
	d := draft{
		name: m.Name, annotation: c.Annotation, guestID: c.GuestId,
		vcpus: c.Hardware.NumCPU, perSocket: 1, autoPerSocket: isTrue(c.Hardware.AutoCoresPerSocket),
		threads: c.Hardware.SimultaneousThreads, memoryMB: int64(c.Hardware.MemoryMB),
		cpuHotAdd: isTrue(c.CpuHotAddEnabled), memoryHotAdd: isTrue(c.MemoryHotAddEnabled),
		cpuAffinity: affinitySet(c.CpuAffinity), memoryAffinity: affinitySet(c.MemoryAffinity),
		memory: *c.MemoryAllocation, cpu: *c.CpuAllocation, locked: isTrue(c.MemoryReservationLockedToMax),
		latency: latencyLevel(c), rebootOff: m.rebootOff, extraConfig: map[string]string{},
	}
	if c.Hardware.NumCoresPerSocket != nil && !d.autoPerSocket {
		d.perSocket = *c.Hardware.NumCoresPerSocket
	}
	if info := c.NumaInfo; info != nil {
		d.exposeOnHotAdd = isTrue(info.VnumaOnCpuHotaddExposed)
		if !isTrue(info.AutoCoresPerNumaNode) && info.CoresPerNumaNode != nil {
			d.coresPerNode = *info.CoresPerNumaNode
		}
	}
	return d
}

// changes lists what differs between two drafts, as properties.
func (m *machine) changes(before, d draft) []types.PropertyChange {
	var list []types.PropertyChange
	set := func(changed bool, value any, paths ...string) {
		for _, path := range paths {
			if changed {
				list = append(list, types.PropertyChange{Name: path, Val: value})
			}
		}
	}
	set(d.name != before.name, d.name, "name", "config.name", "summary.config.name")
	set(d.annotation != before.annotation, d.annotation, "config.annotation", "summary.config.annotation")
	set(d.guestID != before.guestID, d.guestID, "config.guestId", "summary.config.guestId")
	set(d.vcpus != before.vcpus, d.vcpus, "config.hardware.numCPU", "summary.config.numCpu")
	set(d.perSocket != before.perSocket || d.autoPerSocket != before.autoPerSocket,
		d.perSocket, "config.hardware.numCoresPerSocket")
	set(d.autoPerSocket != before.autoPerSocket, d.autoPerSocket, "config.hardware.autoCoresPerSocket")
	set(d.threads != before.threads, d.threads, "config.hardware.simultaneousThreads")
	set(d.memoryMB != before.memoryMB, int32(d.memoryMB), "config.hardware.memoryMB", "summary.config.memorySizeMB")
	set(d.cpuHotAdd != before.cpuHotAdd, d.cpuHotAdd, "config.cpuHotAddEnabled")
	set(d.memoryHotAdd != before.memoryHotAdd, d.memoryHotAdd, "config.memoryHotAddEnabled")
	set(!slices.Equal(d.cpuAffinity, before.cpuAffinity), affinityValue(d.cpuAffinity), "config.cpuAffinity")
	set(!slices.Equal(d.memoryAffinity, before.memoryAffinity), affinityValue(d.memoryAffinity), "config.memoryAffinity")
	set(d.locked != before.locked, d.locked, "config.memoryReservationLockedToMax")
	set(d.latency != before.latency, types.LatencySensitivity{Level: d.latency}, "config.latencySensitivity")
	set(d.coresPerNode != before.coresPerNode || d.exposeOnHotAdd != before.exposeOnHotAdd,
		numaInfo(d.coresPerNode, d.exposeOnHotAdd), "config.numaInfo")
	set(d.rebootOff != before.rebootOff, d.rebootOff, "config.rebootPowerOff")
	list = append(list, allocationChanges("config.memoryAllocation", before.memory, d.memory)...)
	list = append(list, allocationChanges("config.cpuAllocation", before.cpu, d.cpu)...)
	set(*d.memory.Reservation != *before.memory.Reservation, int32(*d.memory.Reservation), "summary.config.memoryReservation")
	set(*d.cpu.Reservation != *before.cpu.Reservation, int32(*d.cpu.Reservation), "summary.config.cpuReservation")
	if len(d.extraConfig) > 0 {
		config := withExtraConfig(m.Config.ExtraConfig, d.extraConfig)
		set(!maps.Equal(m.extraConfig(), optionMap(config)), config, "config.extraConfig")
	}
	return append(list, m.version()...)
}

// version changes with every reconfigure.
func (m *machine) version() []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "config.changeVersion", Val: m.nextChangeVersion()},
		{Name: "config.modified", Val: time.Now()},
	}
}

// latencyLevel is the level; without one it is normal.
func latencyLevel(c *types.VirtualMachineConfigInfo) types.LatencySensitivitySensitivityLevel {
	if c.LatencySensitivity == nil {
		return types.LatencySensitivitySensitivityLevelNormal
	}
	return c.LatencySensitivity.Level
}

func affinityValue(set []int32) any {
	if len(set) == 0 {
		return nil
	}
	return types.VirtualMachineAffinityInfo{AffinitySet: set}
}

func affinitySet(info *types.VirtualMachineAffinityInfo) []int32 {
	if info == nil {
		return nil
	}
	return slices.Clone(info.AffinitySet)
}

// numaInfo is what can be read of a VM that is off; 0 cores are automatic: a power-on assigns them.
func numaInfo(coresPerNode int32, exposed bool) *types.VirtualMachineVirtualNumaInfo {
	info := &types.VirtualMachineVirtualNumaInfo{
		AutoCoresPerNumaNode: types.NewBool(coresPerNode == 0), VnumaOnCpuHotaddExposed: &exposed,
	}
	if coresPerNode != 0 {
		info.CoresPerNumaNode = &coresPerNode
	}
	return info
}

func optionMap(config []types.BaseOptionValue) map[string]string {
	options := make(map[string]string, len(config))
	for _, option := range config {
		value := option.GetOptionValue()
		options[value.Key], _ = value.Value.(string)
	}
	return options
}
