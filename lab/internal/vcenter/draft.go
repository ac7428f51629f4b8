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

const unlimited = int64(-1)

// normalMemoryShares and normalCPUShares are what vSphere computes for the level "normal".
func normalMemoryShares(memoryMB int64) int32 { return int32(10 * memoryMB) }
func normalCPUShares(vcpus int32) int32       { return 1000 * vcpus }

func allocation(shares int32) *types.ResourceAllocationInfo {
	return &types.ResourceAllocationInfo{
		Reservation:           types.NewInt64(0),
		ExpandableReservation: types.NewBool(false),
		Limit:                 types.NewInt64(unlimited),
		Shares:                &types.SharesInfo{Shares: shares, Level: types.SharesLevelNormal},
	}
}

// merged keeps what the request does not set.
func merged(current types.ResourceAllocationInfo, sent *types.ResourceAllocationInfo) types.ResourceAllocationInfo {
	if sent.Reservation != nil {
		current.Reservation = sent.Reservation
	}
	if sent.Limit != nil {
		current.Limit = sent.Limit
	}
	if sent.Shares != nil {
		current.Shares = sent.Shares
	}
	return current
}

// withShares computes the shares of a level; a custom number is kept.
func withShares(info types.ResourceAllocationInfo, normal int32) types.ResourceAllocationInfo {
	shares := *info.Shares
	switch shares.Level {
	case types.SharesLevelLow:
		shares.Shares = normal / 2
	case types.SharesLevelNormal:
		shares.Shares = normal
	case types.SharesLevelHigh:
		shares.Shares = normal * 2
	}
	info.Shares = &shares
	return info
}

// checkAllocation refuses what no release accepts. capacity is the most that the VM can use.
func checkAllocation(field string, info types.ResourceAllocationInfo, capacity int64) {
	reservation, limit := *info.Reservation, *info.Limit
	switch {
	case reservation < 0:
		panic(invalidArgument(field+".reservation", "%d is negative", reservation))
	case reservation > capacity:
		panic(invalidArgument(field+".reservation", "%d is more than %d", reservation, capacity))
	case limit < unlimited:
		panic(invalidArgument(field+".limit", "%d: want -1 or more", limit))
	case limit != unlimited && limit < reservation:
		panic(invalidArgument(field+".limit", "%d is below the reservation of %d", limit, reservation))
	}
	switch info.Shares.Level {
	case types.SharesLevelLow, types.SharesLevelNormal, types.SharesLevelHigh:
	case types.SharesLevelCustom:
		if info.Shares.Shares < 0 {
			panic(invalidArgument(field+".shares", "%d is negative", info.Shares.Shares))
		}
	default:
		panic(invalidArgument(field+".shares.level", "%q is not a level", info.Shares.Level))
	}
}

func allocationChanges(path string, before, after types.ResourceAllocationInfo) []types.PropertyChange {
	var list []types.PropertyChange
	if *before.Reservation != *after.Reservation {
		list = append(list, types.PropertyChange{Name: path + ".reservation", Val: *after.Reservation})
	}
	if *before.Limit != *after.Limit {
		list = append(list, types.PropertyChange{Name: path + ".limit", Val: *after.Limit})
	}
	if *before.Shares != *after.Shares {
		list = append(list, types.PropertyChange{Name: path + ".shares", Val: *after.Shares})
	}
	return list
}

// maxCoresPerSocket is the largest virtual socket that ESXi builds.
const maxCoresPerSocket = 64

// coldOnly refuses what a running VM cannot change, unless hot-add is enabled.
func coldOnly(before, after draft, state types.VirtualMachinePowerState) {
	moreCPUs := before.cpuHotAdd && after.vcpus > before.vcpus
	moreMemory := before.memoryHotAdd && after.memoryMB > before.memoryMB
	if after.perSocket != before.perSocket || after.autoPerSocket != before.autoPerSocket ||
		!slices.Equal(after.cpuAffinity, before.cpuAffinity) || !slices.Equal(after.memoryAffinity, before.memoryAffinity) ||
		after.memoryMB != before.memoryMB && !moreMemory || after.vcpus != before.vcpus && !moreCPUs ||
		after.cpuHotAdd != before.cpuHotAdd || after.memoryHotAdd != before.memoryHotAdd || after.threads != before.threads ||
		after.coresPerNode != before.coresPerNode || after.exposeOnHotAdd != before.exposeOnHotAdd {
		panic(invalidPower(poweredOff, state))
	}
}

// check refuses an impossible configuration, and sets what follows from the rest.
func (m *machine) check(d *draft) {
	m.checkProcessors(d)
	m.checkAffinity(d)
	m.checkMemory(d)
	m.checkCPUAllocation(d)
	checkLatency(d)
}

func (m *machine) checkProcessors(d *draft) {
	most := int32(min(maxVCPUs(m.hardware()), m.host().want.Threads()))
	switch {
	case d.vcpus < 1:
		panic(invalidArgument("spec.numCPUs", "%d: want 1 or more", d.vcpus))
	case d.vcpus > most:
		fault := &types.NumVirtualCpusNotSupported{MaxSupportedVcpusDest: most, NumCpuVm: d.vcpus}
		panic(&refusal{fault: fault, message: "The number of virtual CPUs is more than this virtual machine or host supports."})
	case d.perSocket < 1:
		panic(invalidArgument("spec.numCoresPerSocket", "%d: want 1 or more", d.perSocket))
	case d.perSocket > maxCoresPerSocket:
		fault := &types.NumVirtualCoresPerSocketNotSupported{MaxSupportedCoresPerSocketDest: maxCoresPerSocket, NumCoresPerSocketVm: d.perSocket}
		panic(&refusal{fault: fault, message: "The number of cores per socket is more than the host supports."})
	case d.vcpus%d.perSocket != 0:
		panic(invalidArgument("spec.numCoresPerSocket", "%d does not divide %d vCPUs", d.perSocket, d.vcpus))
	case d.coresPerNode < 0:
		panic(invalidArgument("spec.virtualNuma.coresPerNumaNode", "%d is negative", d.coresPerNode))
	case d.threads < 0 || d.threads > 1 && d.vcpus%d.threads != 0:
		panic(invalidArgument("spec.simultaneousThreads", "%d does not divide %d vCPUs", d.threads, d.vcpus))
	}
}

// maxVCPUs follows VMware's "Hardware Features Available with Virtual Machine Compatibility Settings".
func maxVCPUs(hardware int) int {
	switch {
	case hardware >= 18:
		return 768
	case hardware >= 15:
		return 256
	case hardware >= 11:
		return 128
	case hardware >= 9:
		return 64
	}
	return 32
}

func (m *machine) checkAffinity(d *draft) {
	host := m.host().want
	checkIDs("spec.cpuAffinity", d.cpuAffinity, host.Threads())
	if distinct := len(slices.Compact(slices.Sorted(slices.Values(d.cpuAffinity)))); distinct > 0 && distinct < int(d.vcpus) {
		panic(invalidArgument("spec.cpuAffinity", "%d logical CPUs for %d vCPUs: want at least as many", distinct, d.vcpus))
	}
	checkIDs("spec.memoryAffinity", d.memoryAffinity, host.NumaNodes)
}

func checkIDs(field string, ids []int32, count int) {
	for _, id := range ids {
		if id < 0 || int(id) >= count {
			panic(invalidArgument(field, "%d: the host has 0 to %d", id, count-1))
		}
	}
}

func (m *machine) checkMemory(d *draft) {
	if d.memoryMB < 4 || d.memoryMB%4 != 0 {
		panic(invalidArgument("spec.memoryMB", "%d: want a multiple of 4", d.memoryMB))
	}
	if d.locked {
		if d.sentReservation && *d.memory.Reservation != d.memoryMB {
			panic(invalidArgument("spec.memoryAllocation.reservation", "locked to the memory of %d MB", d.memoryMB))
		}
		d.memory.Reservation = types.NewInt64(d.memoryMB)
	}
	if most := m.host().want.MemoryMB(); *d.memory.Reservation > most {
		panic(invalidArgument("spec.memoryAllocation.reservation", "%d MB is more than the host's %d MB", *d.memory.Reservation, most))
	}
	d.memory = withShares(d.memory, normalMemoryShares(d.memoryMB))
	checkAllocation("spec.memoryAllocation", d.memory, d.memoryMB)
}

func (m *machine) checkCPUAllocation(d *draft) {
	host := m.host().want
	d.cpu = withShares(d.cpu, normalCPUShares(d.vcpus))
	capacity := int64(host.MHz) * int64(min(int(d.vcpus), host.Cores()))
	checkAllocation("spec.cpuAllocation", d.cpu, capacity)
}

func checkLatency(d *draft) {
	switch d.latency {
	case types.LatencySensitivitySensitivityLevelLow, types.LatencySensitivitySensitivityLevelNormal,
		types.LatencySensitivitySensitivityLevelMedium, types.LatencySensitivitySensitivityLevelHigh:
		return
	}
	panic(invalidArgument("spec.latencySensitivity.level", "%q is not a level", d.latency))
}
