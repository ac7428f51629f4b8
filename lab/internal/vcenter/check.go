package vcenter

import (
	"slices"

	"github.com/vmware/govmomi/vim25/types"
)

// maxCoresPerSocket is the largest virtual socket that ESXi builds.
const maxCoresPerSocket = 64

// coldOnly refuses what a running VM cannot change, unless hot-add is enabled.
func coldOnly(before, after draft, state types.VirtualMachinePowerState) *refusal {
	moreCPUs := before.cpuHotAdd && after.vcpus > before.vcpus
	moreMemory := before.memoryHotAdd && after.memoryMB > before.memoryMB
	for _, stays := range []bool{
		after.perSocket == before.perSocket && after.autoPerSocket == before.autoPerSocket,
		slices.Equal(after.cpuAffinity, before.cpuAffinity),
		after.memoryMB == before.memoryMB || moreMemory,
		after.cpuHotAdd == before.cpuHotAdd,
		after.memoryHotAdd == before.memoryHotAdd,
		(after.vcpus == before.vcpus || moreCPUs) && after.threads == before.threads,
		slices.Equal(after.memoryAffinity, before.memoryAffinity),
		after.coresPerNode == before.coresPerNode && after.exposeOnHotAdd == before.exposeOnHotAdd,
	} {
		if !stays {
			return invalidPower(types.VirtualMachinePowerStatePoweredOff, state)
		}
	}
	return nil
}

// check refuses an impossible configuration, and sets what follows from the rest.
func (m *machine) check(d *draft) *refusal {
	for _, part := range []func(*draft) *refusal{
		m.checkProcessors, m.checkAffinity, m.checkMemory, m.checkCPUAllocation, checkLatency,
	} {
		if refused := part(d); refused != nil {
			return refused
		}
	}
	return nil
}

func (m *machine) checkProcessors(d *draft) *refusal {
	most := int32(min(maxVCPUs(m.hardware()), m.host().want.Threads()))
	switch {
	case d.vcpus < 1:
		return invalidArgument("spec.numCPUs", "%d: want 1 or more", d.vcpus)
	case d.vcpus > most:
		fault := &types.NumVirtualCpusNotSupported{MaxSupportedVcpusDest: most, NumCpuVm: d.vcpus}
		return &refusal{fault: fault, message: "The number of virtual CPUs is more than this virtual machine or host supports."}
	case d.perSocket < 1:
		return invalidArgument("spec.numCoresPerSocket", "%d: want 1 or more", d.perSocket)
	case d.perSocket > maxCoresPerSocket:
		fault := &types.NumVirtualCoresPerSocketNotSupported{MaxSupportedCoresPerSocketDest: maxCoresPerSocket, NumCoresPerSocketVm: d.perSocket}
		return &refusal{fault: fault, message: "The number of cores per socket is more than the host supports."}
	case d.vcpus%d.perSocket != 0:
		return invalidArgument("spec.numCoresPerSocket", "%d does not divide %d vCPUs", d.perSocket, d.vcpus)
	case d.coresPerNode < 0:
		return invalidArgument("spec.virtualNuma.coresPerNumaNode", "%d is negative", d.coresPerNode)
	case d.threads < 0 || d.threads > 1 && d.vcpus%d.threads != 0:
		return invalidArgument("spec.simultaneousThreads", "%d does not divide %d vCPUs", d.threads, d.vcpus)
	}
	return nil
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
	return 4
}

func (m *machine) checkAffinity(d *draft) *refusal {
	host := m.host().want
	if err := checkIDs("spec.cpuAffinity", d.cpuAffinity, host.Threads()); err != nil {
		return err
	}
	if distinct := len(slices.Compact(slices.Sorted(slices.Values(d.cpuAffinity)))); distinct > 0 && distinct < int(d.vcpus) {
		return invalidArgument("spec.cpuAffinity", "%d logical CPUs for %d vCPUs: want at least as many", distinct, d.vcpus)
	}
	if err := checkIDs("spec.memoryAffinity", d.memoryAffinity, host.NumaNodes); err != nil {
		return err
	}
	return nil
}

func checkIDs(field string, ids []int32, count int) *refusal {
	for _, id := range ids {
		if id < 0 || int(id) >= count {
			return invalidArgument(field, "%d: the host has 0 to %d", id, count-1)
		}
	}
	return nil
}

func (m *machine) checkMemory(d *draft) *refusal {
	if d.memoryMB < 4 || d.memoryMB%4 != 0 {
		return invalidArgument("spec.memoryMB", "%d: want a multiple of 4", d.memoryMB)
	}
	if d.locked {
		if d.sentReservation && *d.memory.Reservation != d.memoryMB {
			return invalidArgument("spec.memoryAllocation.reservation", "locked to the memory of %d MB", d.memoryMB)
		}
		d.memory.Reservation = types.NewInt64(d.memoryMB)
	}
	if most := m.host().want.MemoryMB(); *d.memory.Reservation > most {
		return invalidArgument("spec.memoryAllocation.reservation", "%d MB is more than the host's %d MB", *d.memory.Reservation, most)
	}
	d.memory = withShares(d.memory, normalMemoryShares(d.memoryMB))
	return checkAllocation("spec.memoryAllocation", d.memory, d.memoryMB)
}

func (m *machine) checkCPUAllocation(d *draft) *refusal {
	host := m.host().want
	d.cpu = withShares(d.cpu, normalCPUShares(d.vcpus))
	capacity := int64(host.MHz) * int64(min(int(d.vcpus), host.Cores()))
	return checkAllocation("spec.cpuAllocation", d.cpu, capacity)
}

func checkLatency(d *draft) *refusal {
	switch d.latency {
	case types.LatencySensitivitySensitivityLevelLow, types.LatencySensitivitySensitivityLevelNormal,
		types.LatencySensitivitySensitivityLevelMedium, types.LatencySensitivitySensitivityLevelHigh:
		return nil
	}
	return invalidArgument("spec.latencySensitivity.level", "%q is not a level", d.latency)
}
