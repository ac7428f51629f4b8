package vcenter

import (
	"net"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

// addresses are what Tools report: the one on which the guest's SQL Server listens, unless the scenario sets others.
func (m *machine) addresses() []string {
	if m.scenario.Around.GuestAddresses != nil || m.service == nil {
		return m.scenario.Around.GuestAddresses
	}
	address, _, err := net.SplitHostPort(m.service.Addr())
	if err != nil { // it comes from a listener
		panic(err)
	}
	return []string{address}
}

// network is the guest's one network card with these addresses.
func network(addresses []string) []types.GuestNicInfo {
	card := types.GuestNicInfo{
		Network: "VM Network", IpAddress: addresses, MacAddress: "00:50:56:00:00:01", Connected: true, DeviceConfigId: 4000,
		IpConfig: &types.NetIpConfigInfo{},
	}
	for _, address := range addresses {
		card.IpConfig.IpAddress = append(card.IpConfig.IpAddress, types.NetIpConfigInfoIpAddress{
			IpAddress: address, PrefixLength: 8, State: string(types.NetIpConfigInfoIpAddressStatusPreferred),
		})
	}
	return []types.GuestNicInfo{card}
}

func powerState(state types.VirtualMachinePowerState) []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "runtime.powerState", Val: state},
		{Name: "summary.runtime.powerState", Val: state},
	}
}

// guestOff is what vCenter shows of a guest without running Tools: nothing remains of an earlier boot.
func guestOff() []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning)},
		{Name: "guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsNotRunning},
		{Name: "guest.toolsVersionStatus2", Val: string(types.VirtualMachineToolsVersionStatusGuestToolsCurrent)},
		{Name: "guest.guestState", Val: string(types.VirtualMachineGuestStateNotRunning)},
		{Name: "guest.guestOperationsReady", Val: false},
		{Name: "guest.ipAddress", Val: ""},
		{Name: "guest.net", Val: []types.GuestNicInfo(nil)},
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
	addresses, first := m.addresses(), ""
	if len(addresses) > 0 {
		first = addresses[0]
	}
	return []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
		{Name: "guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsOk},
		{Name: "guest.guestState", Val: string(types.VirtualMachineGuestStateRunning)},
		{Name: "guest.guestOperationsReady", Val: true},
		{Name: "guest.guestId", Val: string(os.id)},
		{Name: "guest.guestFamily", Val: string(types.VirtualMachineGuestOsFamilyWindowsGuest)},
		{Name: "guest.guestFullName", Val: os.name},
		{Name: "guest.ipAddress", Val: first},
		{Name: "guest.net", Val: network(addresses)},
		{Name: "guest.hostName", Val: hostName},
		{Name: "guestHeartbeatStatus", Val: types.ManagedEntityStatusGreen},
		{Name: "summary.guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
		{Name: "summary.guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsOk},
		{Name: "summary.guest.guestFullName", Val: os.name},
		{Name: "summary.guest.ipAddress", Val: first},
		{Name: "summary.guest.hostName", Val: hostName},
	}
}
