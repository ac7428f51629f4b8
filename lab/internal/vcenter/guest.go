package vcenter

import (
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

// guestAddress is what Tools report: the guest's SQL Server listens on this machine.
const guestAddress = "127.0.0.1"

func powerState(state types.VirtualMachinePowerState) []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "runtime.powerState", Val: state},
		{Name: "summary.runtime.powerState", Val: state},
	}
}

// guestOff is what vCenter shows of a guest without running Tools: nothing is left of an earlier boot.
func guestOff() []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning)},
		{Name: "guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsNotRunning},
		{Name: "guest.toolsVersionStatus2", Val: string(types.VirtualMachineToolsVersionStatusGuestToolsCurrent)},
		{Name: "guest.guestState", Val: string(types.VirtualMachineGuestStateNotRunning)},
		{Name: "guest.guestOperationsReady", Val: false},
		{Name: "guest.ipAddress", Val: ""},
		{Name: "guest.hostName", Val: ""},
		{Name: "guestHeartbeatStatus", Val: types.ManagedEntityStatusGray},
		{Name: "summary.guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning)},
		{Name: "summary.guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsNotRunning},
		{Name: "summary.guest.ipAddress", Val: ""},
		{Name: "summary.guest.hostName", Val: ""},
	}
}

func (m *machine) guestRunning() []types.PropertyChange {
	os := m.host().guestOS()
	hostName := strings.ToUpper(m.Name)
	if m.scenario.Around.GuestName != "" {
		hostName = m.scenario.Around.GuestName
	}
	return []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
		{Name: "guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsOk},
		{Name: "guest.guestState", Val: string(types.VirtualMachineGuestStateRunning)},
		{Name: "guest.guestOperationsReady", Val: true},
		{Name: "guest.guestId", Val: string(os.id)},
		{Name: "guest.guestFamily", Val: string(types.VirtualMachineGuestOsFamilyWindowsGuest)},
		{Name: "guest.guestFullName", Val: os.name},
		{Name: "guest.ipAddress", Val: guestAddress},
		{Name: "guest.hostName", Val: hostName},
		{Name: "guestHeartbeatStatus", Val: types.ManagedEntityStatusGreen},
		{Name: "summary.guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
		{Name: "summary.guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsOk},
		{Name: "summary.guest.guestFullName", Val: os.name},
		{Name: "summary.guest.ipAddress", Val: guestAddress},
		{Name: "summary.guest.hostName", Val: hostName},
	}
}
