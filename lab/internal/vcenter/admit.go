package vcenter

import (
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vnuma"
)

// admit returns ESXi's refusal to power on with this configuration on this host, or nil.
func (m *machine) admit() *refusal {
	if refused := m.host().admits(); refused != nil {
		return refused
	}
	shape := m.shape()
	host := m.host().want
	if shape.VCPUs > host.Threads() {
		return cannotPowerOn("%d vCPUs on a host with %d logical CPUs.", shape.VCPUs, host.Threads())
	}
	if refused := checkTopology(shape); refused != nil {
		return refused
	}
	if slices.Contains(m.scenario.Around.Devices, scenario.Passthrough) && !m.allMemoryReserved() {
		return memoryNotReserved()
	}
	if latencyLevel(m.Config) == types.LatencySensitivitySensitivityLevelHigh {
		if refused := m.admitLatencySensitive(shape.VCPUs); refused != nil {
			return refused
		}
	}
	return m.admitMemory(m.memoryReservation())
}

// admits refuses every power-on on a host that vCenter has lost, or that is in maintenance mode, in which a
// virtual machine cannot be powered on (vSphere Web Services API, HostSystem.EnterMaintenanceMode_Task).
func (h *host) admits() *refusal {
	switch {
	case h.Runtime.ConnectionState != types.HostSystemConnectionStateConnected:
		return &refusal{fault: &types.HostNotConnected{}, message: "Unable to communicate with the remote host, since it is disconnected."}
	case h.Runtime.InMaintenanceMode:
		return &refusal{fault: &types.InvalidState{}, message: "The operation is not allowed in the current state: the host is in maintenance mode."}
	}
	return nil
}

// admitLatencySensitive requires all memory to be reserved, and a core's clock for each vCPU (vSphere 8.0 Resource
// Management, "Latency Sensitivity": numVcpus x cpuFrequency).
func (m *machine) admitLatencySensitive(vcpus int) *refusal {
	if !m.allMemoryReserved() {
		return memoryNotReserved()
	}
	needed := int64(vcpus) * int64(m.host().want.MHz)
	if *m.Config.CpuAllocation.Reservation < needed {
		return cannotPowerOn("Invalid CPU reservation for the latency-sensitive VM, (sched.cpu.min) should be at least %d MHz.", needed)
	}
	return nil
}

func (m *machine) allMemoryReserved() bool {
	return m.memoryReservation() == int64(m.Config.Hardware.MemoryMB)
}

// memoryNotReserved refuses a VM whose devices or latency need all of its memory (vSphere 8.0, "Add a PCI Device to a
// Virtual Machine": all memory must be reserved for DirectPath I/O).
func memoryNotReserved() *refusal {
	return cannotPowerOn("Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize.")
}

// checkTopology has the rules for an explicit virtualNuma: it is stored as it is, and an invalid one makes the
// power-on fail.
func checkTopology(shape vnuma.VM) *refusal {
	perNode, perSocket := shape.CoresPerNumaNode, shape.CoresPerSocket
	switch {
	case perNode == 0:
		return nil
	case shape.AutoCoresPerSocket:
		return cannotPowerOn("coresPerNumaNode is %d, but cores per socket are automatic.", perNode)
	case shape.VCPUs%perNode != 0:
		return cannotPowerOn("%d vCPUs do not divide into nodes of %d.", shape.VCPUs, perNode)
	case perNode%perSocket != 0 && perSocket%perNode != 0:
		return cannotPowerOn("coresPerNumaNode %d is neither a multiple nor a divisor of %d cores per socket.", perNode, perSocket)
	}
	return nil
}

// admitMemory refuses a reservation that exceeds what the host has left after other running VMs.
func (m *machine) admitMemory(reservationMB int64) *refusal {
	free := m.host().want.MemoryMB() - hypervisorMB
	for _, other := range m.lab.order {
		if other != m && other.host() == m.host() {
			free -= other.reservedWhileOn.Load()
		}
	}
	if reservationMB <= free {
		return nil
	}
	fault := &types.InsufficientMemoryResourcesFault{Unreserved: free << 20, Requested: reservationMB << 20}
	return &refusal{fault: fault, message: "The host does not have sufficient memory resources to satisfy the reservation."}
}
